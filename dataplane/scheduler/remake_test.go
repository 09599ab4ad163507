package scheduler

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
)

func again(keys ...string) *txn.Txn { return &txn.Txn{Description: "again", Recreate: keys} }

func actions(ops []txn.Op) string {
	lines := make([]string, len(ops))
	for i, op := range ops {
		lines[i] = string(op.Action) + " " + op.Key
	}
	return strings.Join(lines, "\n")
}

// A value that is created again takes along the values that depend on it, and no others.
func TestRecreateOnDemand(t *testing.T) {
	r := newRig(t, newMock(t), nil)
	r.must(update(kv("p/1", &obj{Items: []item{{Name: "x"}}}), kv("c/1", deps("item:p/1:x")), kv("c/2", &obj{})))
	want := `
		delete c/1
		delete item:p/1:x
		delete p/1
		recreate p/1
		recreate item:p/1:x
		recreate c/1`
	planned, err := r.Plan(t.Context(), again("p/1"))
	if err != nil {
		t.Fatal(err)
	}
	expectOps(t, actions(planned), want)
	expectOps(t, r.ops(update(kv("c/2", nil))), "delete c/2") // the dry run left no changes
	expectOps(t, actions(r.must(again("p/1")).Executed), want)
	r.expectThings("p/1", "item:p/1:x", "c/1")
	if ops := r.ops(again("p/2", "c/2")); ops != "" {
		t.Errorf("values that are not there: %s", ops)
	}
	if ops := r.ops(&txn.Txn{Kind: txn.DownstreamResync}); ops != "" {
		t.Errorf("a resync afterwards: %s", ops)
	}
}

// A transaction with Revert cannot request it: there is no former state to restore.
func TestRecreateIsNotReverted(t *testing.T) {
	r := newRig(t, newMock(t), nil)
	r.must(update(kv("p/1", &obj{})))
	for _, tx := range []*txn.Txn{
		{Recreate: []string{"p/1"}, Revert: true}, {Recreate: []string{"p/1"}, Kind: txn.UpstreamResync},
	} {
		if _, err := r.commit(tx); !errors.Is(err, errRemake) {
			t.Errorf("commit: %v", err)
		}
		if _, err := r.Plan(t.Context(), tx); !errors.Is(err, errRemake) {
			t.Errorf("plan: %v", err)
		}
	}
	r.expectState("p/1", Configured)
}

// When the creation fails, the retry creates the value and the values that depend on it; likewise when the deletion fails.
func TestRecreateIsRetried(t *testing.T) {
	for _, action := range []string{"delete", "create"} {
		t.Run(action, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMock(t)
				r := newRig(t, m, nil)
				defer r.stop()
				r.must(update(kv("p/1", &obj{}), kv("c/1", deps("p/1"))))
				m.sync(func() {
					m.fault = func(a, key string) *fault {
						if a == action && key == "p/1" {
							m.fault = nil
							return &fault{err: Retry(errors.New("not now"))}
						}
						return nil
					}
				})
				if _, err := r.commit(again("p/1")); err == nil {
					t.Fatal("the failure is not told")
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				r.expectState("p/1", Configured)
				r.expectState("c/1", Configured)
				r.expectThings("p/1", "c/1")
			})
		})
	}
}
