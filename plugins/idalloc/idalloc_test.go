package idalloc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"contiv.dev/vswitch/internal/clusterdb/cas"
	"contiv.dev/vswitch/internal/clusterdb/castest"
	controller "contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/idalloc/idallocation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testNode is an IDAlloc with an event loop that the test drives.
type testNode struct {
	*IDAlloc
	t  *testing.T
	db *castest.Memory

	mu    sync.Mutex
	queue []controller.Event
	full  bool
	seen  []string
}

func newNode(t *testing.T, name string, db *castest.Memory) *testNode {
	t.Helper()
	n := &testNode{t: t, db: db}
	n.IDAlloc = NewPlugin(Deps{Node: name, EventLoop: n, DB: db})
	if err := n.Init(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	n.pool("vni", 5000, 1<<24)
	return n
}

func (n *testNode) pool(name string, low, high uint32) {
	n.t.Helper()
	if err := n.InitPool(name, Range{low, high}); err != nil {
		n.t.Fatal(err)
	}
}

func (n *testNode) PushEvent(ev controller.Event) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.full {
		return controller.ErrQueueFull
	}
	n.queue = append(n.queue, ev)
	return nil
}

func (n *testNode) PushFollowUp(_, ev controller.Event) error { return n.PushEvent(ev) }

// turn lets the jobs run until they block, and handles their events.
func (n *testNode) turn() {
	n.t.Helper()
	for {
		synctest.Wait()
		n.mu.Lock()
		events := n.queue
		n.queue = nil
		n.mu.Unlock()
		if len(events) == 0 {
			return
		}
		for _, ev := range events {
			if !n.HandlesEvent(ev) {
				n.t.Errorf("idalloc does not handle its own event %s", ev)
			}
			n.seen = append(n.seen, ev.String())
			if _, err := n.Update(ev, nil); err != nil {
				n.t.Error(err)
			}
		}
	}
}

// take returns the events that were handled, and clears the list.
func (n *testNode) take() []string {
	out := n.seen
	n.seen = nil
	return out
}

func (n *testNode) pending(pool, label string) {
	n.t.Helper()
	if id, err := n.GetOrAllocateID(pool, label); !errors.Is(err, ErrPending) {
		n.t.Errorf("%s: ID %d, %v, want it to be pending", label, id, err)
	}
}

func (n *testNode) get(pool, label string) uint32 {
	n.t.Helper()
	id, err := n.GetOrAllocateID(pool, label)
	if err != nil {
		n.t.Errorf("%s: %v", label, err)
	}
	return id
}

// obtain allocates and waits.
func (n *testNode) obtain(pool, label string) uint32 {
	n.t.Helper()
	n.pending(pool, label)
	n.turn()
	return n.get(pool, label)
}

// resync runs a resync with the contents of the database.
func (n *testNode) resync() {
	n.t.Helper()
	kvs := controller.KeyValuePairs{}
	values, _, err := n.db.List(context.Background(), ksrPrefix+KeyPrefix)
	if err != nil {
		n.t.Fatal(err)
	}
	for _, v := range values {
		if e, err := decode(v.Key, v.Value); err == nil {
			kvs[strings.TrimPrefix(v.Key, ksrPrefix)] = e
		}
	}
	ev := &controller.DBResync{KubeState: controller.KubeStateData{Keyword: kvs}}
	if err := n.Resync(ev, ev.KubeState, 1, nil); err != nil {
		n.t.Error(err)
	}
}

// changed handles the change of a label with its current value in the database.
func (n *testNode) changed(pool, label string) {
	n.t.Helper()
	ev := &controller.KubeStateChange{Resource: Keyword, Key: strings.TrimPrefix(labelKey(pool, label), ksrPrefix)}
	v, err := n.db.Get(context.Background(), labelKey(pool, label))
	if err != nil {
		n.t.Fatal(err)
	}
	if v.Rev != 0 {
		e, err := decode(v.Key, v.Value)
		if err != nil {
			n.t.Fatal(err)
		}
		ev.NewValue = e
	}
	if _, err := n.Update(ev, nil); err != nil {
		n.t.Error(err)
	}
}

// consistent checks that labels and IDs in the database match, and returns the ID by label.
func consistent(t *testing.T, db cas.Store, pool string) map[string]uint32 {
	t.Helper()
	labels, _, err := db.List(context.Background(), labelDir(pool))
	if err != nil {
		t.Fatal(err)
	}
	ids, _, err := db.List(context.Background(), idDir(pool))
	if err != nil {
		t.Fatal(err)
	}
	byLabel, byID := map[string]uint32{}, map[uint32]string{}
	for _, v := range labels {
		e, err := decode(v.Key, v.Value)
		if err != nil || labelKey(pool, e.GetLabel()) != v.Key {
			t.Fatalf("%s: %v, %v", v.Key, e, err)
		}
		byLabel[e.GetLabel()] = e.GetId()
	}
	for _, v := range ids {
		e, err := decode(v.Key, v.Value)
		if err != nil || idKey(pool, e.GetId()) != v.Key {
			t.Fatalf("%s: %v, %v", v.Key, e, err)
		}
		byID[e.GetId()] = e.GetLabel()
	}
	for label, id := range byLabel {
		if byID[id] != label {
			t.Errorf("%s has the ID %d, which is %q's", label, id, byID[id])
		}
	}
	if len(byLabel) != len(byID) {
		t.Errorf("%d labels, %d IDs", len(byLabel), len(byID))
	}
	return byLabel
}

// TestAllocate checks that the event loop does not wait, and that all nodes get the same ID for a label, and different ones for different
// labels.
func TestAllocate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := castest.NewMemory()
		a, b := newNode(t, "a", db), newNode(t, "b", db)
		id := a.obtain("vni", "net/blue 1")
		if id < 5000 || id > 1<<24 {
			t.Errorf("ID %d", id)
		}
		if got := b.obtain("vni", "net/blue 1"); got != id {
			t.Errorf("b has %d, a %d", got, id)
		}
		if got := b.obtain("vni", "net/red"); got == id {
			t.Errorf("two labels have the ID %d", got)
		}
		want := map[string]uint32{"net/blue 1": id, "net/red": b.get("vni", "net/red")}
		if got := consistent(t, db, "vni"); !maps.Equal(got, want) {
			t.Errorf("the database has %v, want %v", got, want)
		}
		commits := db.Commits()
		a.resync()
		if got := a.get("vni", "net/red"); got != b.get("vni", "net/red") {
			t.Errorf("after a resync a has %d", got)
		}
		a.turn()
		if db.Commits() != commits {
			t.Error("a resync that changes nothing writes")
		}
		v, err := db.Get(t.Context(), poolKey("vni"))
		stored := strings.ReplaceAll(string(v.Value), " ", "")
		if err != nil || stored != `{"name":"vni","range":{"min_id":5000,"max_id":16777216}}` {
			t.Errorf("the pool is stored as %s, %v", stored, err)
		}
	})
}

// TestOutage checks that an ID is not known before it is in the database, and that requested IDs arrive when the database is available
// again.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := castest.NewMemory()
		n := newNode(t, "a", db)
		db.SetDown(true)
		n.pending("vni", "x")
		n.turn()
		if _, err := n.GetOrAllocateID("vni", "x"); !errors.Is(err, castest.ErrDown) {
			t.Errorf("error %v, want the database's", err)
		}
		if got := n.take(); len(got) != 1 {
			t.Errorf("events %q, want one that says why", got)
		}
		time.Sleep(time.Hour)
		n.turn()
		if got := n.take(); len(got) != 0 {
			t.Errorf("more events: %q", got)
		}
		db.SetDown(false)
		time.Sleep(time.Minute)
		n.turn()
		id := n.get("vni", "x")
		if got := consistent(t, db, "vni")["x"]; got != id {
			t.Errorf("the node has %d, the database %d", id, got)
		}
	})
}

// TestLostAnswerAndFullQueue: the allocation was made, but the response to the node got lost; then the queue has no room for its event.
func TestLostAnswerAndFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := castest.NewMemory()
		n := newNode(t, "a", db)
		n.obtain("vni", "other")
		db.LoseAnswers(1)
		n.pending("vni", "x")
		n.turn()
		n.mu.Lock()
		n.full = true
		n.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		n.mu.Lock()
		n.full = false
		n.mu.Unlock()
		time.Sleep(time.Minute)
		n.turn()
		if got := consistent(t, db, "vni"); got["x"] != n.get("vni", "x") || len(got) != 2 {
			t.Errorf("the database has %v", got)
		}
	})
}

// TestCrash checks that a node that crashes between its steps leaves no state that blocks other nodes.
func TestCrash(t *testing.T) {
	for at := range 4 {
		synctest.Test(t, func(t *testing.T) {
			db := castest.NewMemory()
			db.Put(poolKey("vni"), []byte(`{"name":"vni","range":{"min_id":5000,"max_id":16777216},
				"id_allocations":{"old":{"id":5000,"owner":"a"},"b":{"id":5001,"owner":"b"}}}`))
			first := newNode(t, "a", db)
			commits := 0
			db.BeforeCommit(func([]cas.Change) {
				if commits++; commits > at {
					db.SetDown(true) // for this node this is the crash
				}
			})
			first.pending("vni", "x")
			synctest.Wait()
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			db.BeforeCommit(nil)
			db.SetDown(false)
			second := newNode(t, "a", db)
			second.resync()
			if at == 0 {
				second.pending("vni", "old")
			}
			if _, err := second.GetOrAllocateID("vni", "x"); err != nil && !errors.Is(err, ErrPending) {
				t.Error(err)
			}
			second.turn()
			got := consistent(t, db, "vni")
			if got["old"] != 5000 || got["b"] != 5001 || got["x"] != second.get("vni", "x") || len(got) != 3 {
				t.Errorf("crash before commit %d: %v", at+1, got)
			}
			v, _ := db.Get(t.Context(), poolKey("vni"))
			if strings.Contains(string(v.Value), "id_allocations") {
				t.Errorf("crash before commit %d: contiv's allocations are still in the pool: %s", at+1, v.Value)
			}
		})
	}
}

// TestRelease checks that only the owner can release an ID, and that the ID is not reused before the quarantine has ended.
func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := castest.NewMemory()
		a, b := newNode(t, "a", db), newNode(t, "b", db)
		for _, n := range []*testNode{a, b} {
			n.pool("small", 1, 2)
		}
		first, second := a.obtain("small", "x"), b.obtain("small", "y")
		if a.obtain("small", "y") != second {
			t.Fatal("a and b do not agree")
		}
		if err := a.ReleaseID("small", "y"); !errors.Is(err, ErrNotOwner) {
			t.Errorf("release by another: %v", err)
		}
		if err := b.ReleaseID("small", "x"); err != nil { // b does not have the owner of the label
			t.Error(err)
		}
		b.turn()
		if got := consistent(t, db, "small"); got["x"] != first {
			t.Errorf("released by a node that does not own it: %v", got)
		}
		if err := a.ReleaseID("small", "x"); err != nil {
			t.Error(err)
		}
		a.turn()
		a.changed("small", "x")
		b.pending("small", "z")
		time.Sleep(time.Second)
		b.turn()
		if _, err := b.GetOrAllocateID("small", "z"); !errors.Is(err, ErrExhausted) {
			t.Errorf("in quarantine: %v, want that the pool is exhausted", err)
		}
		time.Sleep(DefaultQuarantine + maxBackoff*2)
		b.turn()
		if got := b.get("small", "z"); got != first {
			t.Errorf("after the quarantine: %d, want %d", got, first)
		}
		if got := consistent(t, db, "small"); len(got) != 2 {
			t.Errorf("the database has %v", got)
		}
		if err := a.ReleaseID("small", "never"); err != nil {
			t.Errorf("release of nothing: %v", err)
		}
	})
}

// TestReleasedWhileUsed checks that a label that is released by its owner and used by another node keeps its ID, which is in quarantine
// only because of this label.
func TestReleasedWhileUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := castest.NewMemory()
		a, b := newNode(t, "a", db), newNode(t, "b", db)
		id := a.obtain("vni", "x")
		b.obtain("vni", "x")
		if err := a.ReleaseID("vni", "x"); err != nil {
			t.Fatal(err)
		}
		a.turn()
		if got := consistent(t, db, "vni"); len(got) != 0 {
			t.Fatalf("not released: %v", got)
		}
		b.changed("vni", "x")
		if got := b.get("vni", "x"); got != id {
			t.Errorf("meanwhile b has %d", got)
		}
		b.turn()
		if got := consistent(t, db, "vni"); got["x"] != id || b.get("vni", "x") != id {
			t.Errorf("the ID was %d, now %v", id, got)
		}
	})
}

// TestWantedAgainMeanwhile checks that a label can be requested while its release is in progress.
func TestWantedAgainMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := castest.NewMemory()
		n := newNode(t, "a", db)
		n.obtain("vni", "x")
		reached, goOn := make(chan bool), make(chan bool)
		db.BeforeCommit(func([]cas.Change) {
			db.BeforeCommit(nil)
			close(reached)
			<-goOn
		})
		if err := n.ReleaseID("vni", "x"); err != nil {
			t.Fatal(err)
		}
		<-reached
		n.pending("vni", "x")
		close(goOn)
		n.turn()
		if got := consistent(t, db, "vni"); len(got) != 1 || got["x"] != n.get("vni", "x") {
			t.Errorf("the database has %v", got)
		}
	})
}

// TestReleaseAndAllocate checks that the newest request counts.
func TestReleaseAndAllocate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := castest.NewMemory()
		n := newNode(t, "a", db)
		id := n.obtain("vni", "x")
		db.SetDown(true)
		if err := n.ReleaseID("vni", "x"); err != nil {
			t.Fatal(err)
		}
		n.turn()
		n.pending("vni", "x")
		db.SetDown(false)
		time.Sleep(time.Minute)
		n.turn()
		if got := n.get("vni", "x"); got != id {
			t.Errorf("ID %d, want %d again", got, id)
		}
		if err := n.ReleaseID("vni", "x"); err != nil {
			t.Fatal(err)
		}
		n.turn()
		if got := consistent(t, db, "vni"); len(got) != 0 {
			t.Errorf("not released: %v", got)
		}
		if got := n.obtain("vni", "x"); got == id {
			t.Errorf("the ID %d is used again at once", got)
		}
	})
}

// TestDatabaseLost checks that an ID is restored by the node that uses it, and that it is known until then.
func TestDatabaseLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := castest.NewMemory()
		a, b := newNode(t, "a", db), newNode(t, "b", db)
		x, y := a.obtain("vni", "x"), a.obtain("vni", "y")
		b.obtain("vni", "x")
		db.Wipe()
		db.SetDown(true)
		a.IDAlloc.known = map[labelID]Allocation{{"vni", "x"}: {Label: "x", ID: x}, {"vni", "y"}: {Label: "y", ID: y}}
		if err := a.Resync(controller.NewDBResync(), controller.KubeStateData{}, 2, nil); err != nil {
			t.Fatal(err)
		}
		if a.get("vni", "x") != x || a.get("vni", "y") != y {
			t.Error("IDs in use are not known any more")
		}
		// meanwhile, another program gives y's ID to another label
		db.SetDown(false)
		other := Allocation{Label: "thief", ID: y, Owner: "c"}
		change, err := allocateChange(a.pools["vni"], other, 0)
		if err != nil {
			t.Fatal(err)
		}
		if i, _, err := db.CommitFirst(t.Context(), change); err != nil || i != 0 {
			t.Fatal(i, err)
		}
		a.take()
		b.changed("vni", "x")
		time.Sleep(time.Minute)
		a.turn()
		b.turn()
		got := consistent(t, db, "vni")
		if was := a.used[labelID{"vni", "y"}]; was != got["y"] {
			t.Errorf("if the database is lost again, y is put back with the ID %d", was)
		}
		if got["x"] != x || got["y"] == y || got["y"] == 0 || a.get("vni", "y") != got["y"] {
			t.Errorf("x was %d, y %d; now %v", x, y, got)
		}
		want := fmt.Sprintf("ID Allocated: pool vni, y: %d instead of %d", got["y"], y)
		if events := a.take(); !slices.Contains(events, want) {
			t.Errorf("events %q, want %q", events, want)
		}
	})
}

// TestAnotherID: the database has another ID for a label that is in use.
func TestAnotherID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := castest.NewMemory()
		n := newNode(t, "a", db)
		was := n.obtain("vni", "x")
		n.take()
		value, err := Allocation{Label: "x", ID: 7777, Owner: "b"}.encode()
		if err != nil {
			t.Fatal(err)
		}
		db.Put(labelKey("vni", "x"), value)
		n.changed("vni", "x")
		n.turn()
		want := []string{fmt.Sprintf("ID Allocated: pool vni, x: 7777 instead of %d", was)}
		if got := n.take(); !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
		if n.get("vni", "x") != 7777 {
			t.Error("the database is not believed")
		}
		db.Put(labelKey("vni", "x"), []byte(`{"label":"x"}`))
		n.changed("vni", "x")
		if n.get("vni", "x") != 7777 {
			t.Error("a broken value is believed")
		}
	})
}

// TestStoredBadly checks that invalid values are errors that contain the fix, and that no label gets such an ID.
func TestStoredBadly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, value := range map[string]string{
			"garbage": "garbage", "other label": `{"label":"y","id":6000}`, "outside": `{"label":"x","id":1}`, "empty": `{}`,
		} {
			db := castest.NewMemory()
			db.Put(labelKey("vni", "x"), []byte(value))
			n := newNode(t, "a", db)
			n.resync()
			n.pending("vni", "x")
			n.turn()
			if id, err := n.GetOrAllocateID("vni", "x"); err == nil || !strings.Contains(err.Error(), "delete it") {
				t.Errorf("%s: ID %d, %v", what, id, err)
			}
		}
		db := castest.NewMemory()
		n := newNode(t, "a", db)
		other := NewPlugin(Deps{Node: "b", EventLoop: n, DB: db})
		if err := other.InitPool("vni", Range{1, 10}); err != nil {
			t.Fatal(err)
		}
		if err := (&store{db: db}).ensure(t.Context(), other.pools["vni"]); err != nil {
			t.Fatal(err)
		}
		n.pending("vni", "x")
		n.turn()
		if _, err := n.GetOrAllocateID("vni", "x"); !errors.Is(err, ErrOtherRange) {
			t.Errorf("two nodes have different ideas of a pool: %v", err)
		}
	})
}

func TestWrongUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if err := NewPlugin(Deps{}).Init(); err == nil {
			t.Error("Init works without dependencies")
		}
		n := newNode(t, "a", castest.NewMemory())
		for _, bad := range []struct {
			name string
			ids  Range
		}{{"", Range{1, 2}}, {"a/b", Range{1, 2}}, {"x", Range{0, 2}}, {"x", Range{3, 2}}, {"vni", Range{1, 2}}} {
			if err := n.InitPool(bad.name, bad.ids); err == nil {
				t.Errorf("InitPool(%q, %v) works", bad.name, bad.ids)
			}
		}
		if err := n.InitPool("vni", Range{5000, 1 << 24}, 1); err != nil { // reserved ID outside the range: the same pool
			t.Error(err)
		}
		if _, err := n.GetOrAllocateID("none", "x"); !errors.Is(err, ErrNoPool) {
			t.Errorf("unknown pool: %v", err)
		}
		if _, err := n.GetOrAllocateID("vni", ""); err == nil {
			t.Error("an empty label is accepted")
		}
		if err := n.ReleaseID("none", "x"); !errors.Is(err, ErrNoPool) {
			t.Errorf("unknown pool: %v", err)
		}
		if n.HandlesEvent(&controller.KubeStateChange{Resource: "pod"}) || !n.HandlesEvent(controller.NewDBResync()) {
			t.Error("HandlesEvent")
		}
		if err := n.Revert(nil); err != nil {
			t.Error(err)
		}
	})
}

// TestCandidates checks that all IDs of a pool except reserved and taken ones are candidates, also for the largest ranges.
func TestCandidates(t *testing.T) {
	p, err := newPool("p", Range{10, 19}, []uint32{12, 13, 99})
	if err != nil {
		t.Fatal(err)
	}
	got := p.candidates("x", 100, map[uint32]bool{10: true, 19: true})
	slices.Sort(got)
	if want := []uint32{11, 14, 15, 16, 17, 18}; !slices.Equal(got, want) {
		t.Errorf("candidates %v, want %v", got, want)
	}
	if p, err = newPool("p", Range{1, ^uint32(0)}, nil); err != nil {
		t.Fatal(err)
	}
	starts := map[uint32]bool{}
	for i := range 1000 {
		starts[p.candidates(fmt.Sprintf("net-%d", i), 1, nil)[0]] = true
	}
	if len(starts) < 999 {
		t.Errorf("1000 labels begin at %d IDs", len(starts))
	}
}

type mux struct{ *http.ServeMux }

func (m mux) RegisterHTTPHandler(path string, handler http.HandlerFunc, _ ...string) {
	m.HandleFunc(path, handler)
}

// TestREST checks that the IDs of a deleted node are released on request.
func TestREST(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := castest.NewMemory()
		gone := newNode(t, "gone", db)
		gone.obtain("vni", "x")
		gone.obtain("vni", "y")
		routes := mux{http.NewServeMux()}
		n := &testNode{t: t, db: db}
		n.IDAlloc = NewPlugin(Deps{Node: "a", EventLoop: n, DB: db, HTTPHandlers: routes})
		if err := n.Init(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = n.Close() }()
		n.pool("vni", 5000, 1<<24)
		n.obtain("vni", "z")
		call := func(path, body string, status int) string {
			t.Helper()
			w := httptest.NewRecorder()
			routes.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
			if w.Code != status {
				t.Errorf("%s %s: %d %s", path, body, w.Code, w.Body)
			}
			return w.Body.String()
		}
		if got := call(releasePath, `{"owner":"gone"}`, http.StatusOK); !strings.Contains(got, `"released": 2`) {
			t.Errorf("release: %s", got)
		}
		call(releasePath, `{"owner":"a"}`, http.StatusServiceUnavailable)
		call(releasePath, `{}`, http.StatusBadRequest)
		var report struct{ Pools []poolReport }
		if err := json.Unmarshal([]byte(call(allocationsPath, "", http.StatusOK)), &report); err != nil {
			t.Fatal(err)
		}
		p := report.Pools
		if len(p) != 1 || len(p[0].Allocations) != 1 || p[0].Allocations[0].Label != "z" || len(p[0].Quarantine) != 2 {
			t.Errorf("report %+v", report)
		}
		db.SetDown(true)
		call(allocationsPath, "", http.StatusServiceUnavailable)
	})
}

// TestBrokenPool checks that an invalid pool does not hide the others.
func TestBrokenPool(t *testing.T) {
	db := castest.NewMemory()
	db.Put(poolKey("bad"), []byte("garbage"))
	db.Put(poolKey("good"), []byte(`{"name":"good","range":{"min_id":1,"max_id":9}}`))
	s := &store{db: db}
	pools, err := s.pools(t.Context())
	if err == nil || len(pools) != 1 || pools[0].name != "good" {
		t.Errorf("pools %v, %v", pools, err)
	}
	if err := s.ensure(t.Context(), &pool{name: "bad", ids: Range{1, 2}}); err == nil {
		t.Error("a broken pool is replaced")
	}
	if e := (&idallocation.Entry{}); pools[0].same(e) {
		t.Error("a pool without range is the same as one with")
	}
}

// TestFailureOfAReleasedLabel checks that the error of a withdrawn request is not returned to later requests.
func TestFailureOfAReleasedLabel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := castest.NewMemory()
		n := newNode(t, "node-1", db)
		db.SetDown(true)
		n.pending("vni", "a")
		synctest.Wait() // the failure is in the queue
		if err := n.ReleaseID("vni", "a"); err != nil {
			t.Fatal(err)
		}
		n.turn()
		if len(n.fails) != 0 {
			t.Errorf("kept: %v", n.fails)
		}
		db.SetDown(false)
		n.pending("vni", "a")
		n.turn()
	})
}
