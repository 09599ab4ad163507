package clusterdb

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/clusterdb/cas"
)

func putIf(key string, rev int64, value string) cas.Change {
	return cas.Change{If: []cas.Cond{{Key: key, Rev: rev}}, Do: []cas.Write{{Key: key, Value: []byte(value)}}}
}

func names(keys []cas.Value) (out []string) {
	for _, k := range keys {
		out = append(out, k.Key)
	}
	return out
}

// TestCommitFirst checks that the first change whose conditions hold is carried out as a whole, and no other.
func TestCommitFirst(t *testing.T) {
	db := openEmbedded(t, t.TempDir())
	must := func(want int, changes ...cas.Change) int64 {
		t.Helper()
		i, rev, err := db.CommitFirst(t.Context(), changes...)
		if err != nil || i != want {
			t.Fatalf("change %d, %v, want %d", i, err, want)
		}
		return rev
	}
	a := must(0, putIf("/a", 0, "1"))
	must(cas.None, putIf("/a", 0, "2"))
	must(2, putIf("/a", 0, "2"), putIf("/a", a-1, "3"), putIf("/b", 0, "b"), putIf("/c", 0, "c"))
	must(0, cas.Change{
		If: []cas.Cond{{Key: "/a", Rev: a}, {Key: "/c"}},
		Do: []cas.Write{{Key: "/a"}, {Key: "/c", Value: []byte("c")}, {Key: "/d", Value: []byte{}}},
	})
	must(cas.None, cas.Change{If: []cas.Cond{{Key: "/b"}, {Key: "/x"}}, Do: []cas.Write{{Key: "/x", Value: []byte("x")}}})
	values, rev, err := db.List(t.Context(), "/")
	keys, rev2, err2 := db.Keys(t.Context(), "/", 0)
	early, _, err3 := db.Keys(t.Context(), "/", a)
	if got := fmt.Sprintf("%s %s %d %v", names(keys), names(early), len(values), errors.Join(err, err2, err3)); rev != rev2 ||
		got != "[/b /c /d] [/a] 3 <nil>" || keys[0].Rev != a+1 || keys[0].Value != nil {
		t.Errorf("keys, early keys, values: %s at %d and %d", got, rev, rev2)
	}
	if v, err := db.Get(t.Context(), "/a"); err != nil || v.Rev != 0 || v.Key != "/a" {
		t.Errorf("a deleted key: %+v, %v", v, err)
	}
	if v, err := db.Get(t.Context(), "/b"); err != nil || string(v.Value) != "b" || v.Rev == 0 {
		t.Errorf("/b: %+v, %v", v, err)
	}
}

// TestCommitLimit checks that a commit with the maximum number of operations succeeds, and that a larger one is an
// error before it is sent.
func TestCommitLimit(t *testing.T) {
	db := openEmbedded(t, t.TempDir())
	if _, _, err := db.CommitFirst(t.Context(), putIf("/taken", 0, "x")); err != nil {
		t.Fatal(err)
	}
	var changes []cas.Change
	for i := range cas.MaxOps {
		key := "/taken"
		if i == cas.MaxOps-1 {
			key = "/free"
		}
		changes = append(changes, putIf(key, 0, "x"))
	}
	if i, _, err := db.CommitFirst(t.Context(), changes...); err != nil || i != cas.MaxOps-1 {
		t.Errorf("change %d, %v", i, err)
	}
	if _, _, err := db.CommitFirst(t.Context(), append(changes, changes[0])...); !errors.Is(err, errTooMany) {
		t.Errorf("one too many: %v", err)
	}
	if _, _, err := db.CommitFirst(t.Context()); err == nil {
		t.Error("a commit of nothing works")
	}
}

// TestTimeToLive checks that etcd deletes the key by itself, and that a commit that is not carried out leaves no
// lease.
func TestTimeToLive(t *testing.T) {
	db := openEmbedded(t, t.TempDir())
	change := putIf("/temporary", 0, "x")
	change.Do[0].TTL = 900 * time.Millisecond
	change.Do = append(change.Do, cas.Write{Key: "/stays", Value: []byte("y")})
	began := time.Now()
	for _, want := range []int{0, cas.None} {
		if i, _, err := db.CommitFirst(t.Context(), change); err != nil || i != want {
			t.Fatalf("change %d, %v, want %d", i, err, want)
		}
	}
	if resp, err := db.client.Leases(t.Context()); err != nil || len(resp.Leases) != 1 {
		t.Errorf("leases %v, %v", resp, err)
	}
	until(t, "the end of the key", func() bool {
		v, err := db.Get(t.Context(), "/temporary")
		return err == nil && v.Rev == 0
	})
	if took := time.Since(began); took < 800*time.Millisecond {
		t.Errorf("it was there for %s", took)
	}
	if v, err := db.Get(t.Context(), "/stays"); err != nil || v.Rev == 0 {
		t.Errorf("the other key: %+v, %v", v, err)
	}
}

func TestCommitWithoutServer(t *testing.T) {
	conf := testConf()
	conf.Endpoints, conf.OperationTimeout = []string{"127.0.0.1:1"}, 100*time.Millisecond
	db := open(t, conf)
	withTTL := putIf("/a", 0, "1")
	withTTL.Do[0].TTL = time.Second
	for _, c := range []cas.Change{putIf("/a", 0, "1"), withTTL, {}} {
		if _, _, err := db.CommitFirst(t.Context(), c); err == nil {
			t.Error("a commit works without a server")
		}
	}
	if _, err := db.Get(t.Context(), "/a"); err == nil {
		t.Error("Get works without a server")
	}
	if _, _, err := db.List(t.Context(), "/"); err == nil {
		t.Error("List works without a server")
	}
	if _, _, err := db.Keys(t.Context(), "/", 0); err == nil {
		t.Error("Keys works without a server")
	}
	if db.Private() {
		t.Error("a database on the network is private")
	}
}

// TestOwnData checks that the node's own values survive the replacement of the shared state and a restart.
func TestOwnData(t *testing.T) {
	path := localPath(t)
	l, err := OpenLocalCopy(path, quiet())
	if err != nil {
		t.Fatal(err)
	}
	if v, err := l.LoadOwn("identity"); err != nil || v != nil {
		t.Errorf("%q, %v before anything was saved", v, err)
	}
	if err := l.SaveOwn("identity", []byte("me")); err != nil {
		t.Fatal(err)
	}
	if err := l.Replace(map[string][]byte{"a": []byte("1")}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = localCopy(t, path)
	if v, err := l.LoadOwn("identity"); err != nil || string(v) != "me" {
		t.Errorf("%q, %v after a restart", v, err)
	}
	if values, err := l.Load(); err != nil || len(values) != 1 {
		t.Errorf("the shared state has %v, %v", values, err)
	}
}

func TestPrivate(t *testing.T) {
	for endpoint, want := range map[string]bool{"unix:///run/etcd.sock": true, "127.0.0.1:2379": false, "https://etcd:2379": false} {
		if got := (Config{Endpoints: []string{endpoint}}).private(); got != want {
			t.Errorf("%s: %v", endpoint, got)
		}
	}
	if !(Config{}).private() {
		t.Error("the embedded etcd is not private")
	}
}
