package scheduler

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
)

// peer is a backend whose process may be replaced.
type peer struct {
	present string // the process that is there now; empty for none
	pinned  string
}

func (p *peer) Flush(context.Context)  {}
func (p *peer) Pin()                   { p.pinned = p.present }
func (p *peer) Peer() (string, bool)   { return p.pinned, p.pinned != "" && p.pinned == p.present }
func isRetriable(err error) bool       { return err != nil && IsRetriable(err) }
func isOfValues(err error) bool        { var e *txn.Error; return errors.As(err, &e) }
func revert(values ...txn.KV) *txn.Txn { return &txn.Txn{Values: values, Revert: true, NoRetry: true} }

// Until the new process is completely dumped, the errors of transactions do not depend on their values.
func TestReplacedPeer(t *testing.T) {
	fatal := errors.New("no such table")
	m := newMock(t)
	p := &peer{present: "1"}
	r := newRig(t, m, func(c *Config) { c.Backends = append(c.Backends, p) })
	failing := func(hit func()) func() {
		m.fault = func(action, key string) *fault {
			if action != "create" || key != "a/bad" {
				return nil
			}
			hit()
			return &fault{err: fatal}
		}
		return func() { m.fault = nil }
	}
	heal := failing(func() {})
	if _, err := r.commit(revert(kv("a/bad", &obj{}))); isRetriable(err) || !isOfValues(err) {
		t.Errorf("before any resync: %v", err)
	}
	r.must(&txn.Txn{Kind: txn.FullResync, Values: []txn.KV{kv("a/1", &obj{})}})
	if _, err := r.commit(revert(kv("a/bad", &obj{}))); isRetriable(err) || !errors.Is(err, fatal) {
		t.Errorf("the process that was dumped: %v", err)
	}

	p.present = "2"
	m.log = nil
	rec, err := r.commit(revert(kv("a/2", &obj{})))
	if !isRetriable(err) || isOfValues(err) || rec != nil || len(m.log) > 0 {
		t.Errorf("all or nothing, on an unknown process: %v, record %v, operations %q", err, rec, m.log)
	}
	if _, err := r.commit(update(kv("a/bad", &obj{}))); !isRetriable(err) || !errors.Is(err, fatal) || !isOfValues(err) {
		t.Errorf("on an unknown process: %v", err)
	}
	r.must(update(kv("a/3", &obj{}))) // a transaction that succeeds returns no error
	heal()
	r.must(&txn.Txn{Kind: txn.DownstreamResync})
	if m.log = nil; r.must(revert(kv("a/2", &obj{}))) == nil || !slices.Equal(m.log, []string{"create a/2"}) {
		t.Errorf("after the resync: %q", m.log)
	}

	heal = failing(func() { p.present = "3" })
	defer heal()
	r.must(update(kv("a/bad", nil)))
	_, err = r.commit(revert(kv("a/bad", &obj{})))
	if !isRetriable(err) || !errors.Is(err, fatal) || !isOfValues(err) {
		t.Errorf("replaced in the middle: %v", err)
	}
	r.must(&txn.Txn{Kind: txn.DownstreamResync})
	p.present = ""
	if _, err := r.commit(update(kv("a/bad", &obj{}))); !isRetriable(err) {
		t.Errorf("there is no process: %v", err)
	}
	p.present = "3"
	if _, err := r.commit(&txn.Txn{Kind: txn.FullResync, Values: []txn.KV{kv("a/bad", &obj{})}}); isRetriable(err) {
		t.Errorf("the same process again: %v", err)
	}
}

// A value whose outcome was unknown on the old process is found missing on the new one, and so are its dependencies. The first retry,
// transaction or dry run on the new process assumes no state of the old process.
func TestNothingIsKnownOfANewPeer(t *testing.T) {
	for _, first := range []string{"retry", "transaction", "dry run"} {
		t.Run(first, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMock(t)
				m.peer = &peer{present: "1"}
				r := newRig(t, m, func(c *Config) { c.Backends = append(c.Backends, m.peer) })
				r.must(&txn.Txn{Kind: txn.FullResync, Values: []txn.KV{kv("b/1", &obj{}), kv("b/2", &obj{})}})
				m.fault = func(string, string) *fault {
					m.replace()
					return &fault{err: OutcomeUnknown(errors.New("lost"))}
				}
				user := kv("a/1", &obj{Deps: []string{"b/1"}})
				if _, err := r.commit(update(user)); !isRetriable(err) {
					t.Fatal(err)
				}
				m.sync(func() { m.fault, m.log = nil, nil })
				want := []string{"create b/1", "create b/2", "create a/1"}
				switch first {
				case "retry":
					time.Sleep(time.Minute)
					synctest.Wait()
				case "transaction":
					r.must(update(kv("a/1", &obj{Deps: []string{"b/1"}, Rev: 1})))
				default:
					plan, err := r.Plan(t.Context(), update(user))
					if err != nil || len(plan) != len(want) || len(m.log) > 0 {
						t.Errorf("plan %v, %v; operations %q", plan, err, m.log)
					}
					r.must(update(user))
				}
				if !slices.Equal(m.log, want) {
					t.Errorf("operations %q, want %q", m.log, want)
				}
				if ops := r.ops(&txn.Txn{Kind: txn.DownstreamResync}); ops != "" {
					t.Errorf("nothing is left to do, but: %s", ops)
				}
			})
		})
	}
}

// A value that does not validate is invalid on any process.
func TestInvalidValueOnReplacedPeer(t *testing.T) {
	p := &peer{present: "1"}
	r := newRig(t, newMock(t), func(c *Config) { c.Backends = append(c.Backends, p) })
	r.must(&txn.Txn{Kind: txn.FullResync})
	p.present = ""
	if _, err := r.commit(revert(kv("a/1", &obj{Bad: true}))); err == nil || isRetriable(err) {
		t.Errorf("%v: want an error that is final", err)
	}
}
