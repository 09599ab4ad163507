package nodesync

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/plugins/contivconf"
	controller "contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

// TestQuarantine checks that the node of a released ID is removed at once, and that the ID is assigned only after the quarantine, with the
// next generation.
func TestQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		gone := newMachine(t, "gone", db, &memoryIdentity{})
		stop := gone.start()
		gone.mustResync()
		synctest.Wait()
		stop()
		keeper := newMachine(t, "keeper", db, &memoryIdentity{})
		defer keeper.start()()
		keeper.mustResync()
		before := db.get(t, 1)
		for range 2 {
			if err := keeper.ReleaseNodeID(t.Context(), "gone"); err != nil {
				t.Fatal(err)
			}
		}
		if err := keeper.change(1, before, db.get(t, 1)); err != nil {
			t.Fatal(err)
		}
		if got, want := keeper.loop.take(), []string{"Node Update: gone left (ID 1)"}; !reflect.DeepEqual(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
		join := func(name string, want uint32) {
			t.Helper()
			n := newMachine(t, name, db, &memoryIdentity{})
			defer n.start()()
			n.mustResync()
			n.wantID(want)
		}
		join("early", 3)
		time.Sleep(10*time.Minute - time.Second)
		join("still-early", 4)
		time.Sleep(2 * time.Second)
		join("late", 1)
		if got := db.get(t, 1); got.GetGeneration() != 2 || isReleased(got) {
			t.Errorf("record %v", got)
		}
		// the released node returns and finds that its ID belongs to another node
		back := newMachine(t, "gone", db, gone.disk)
		defer back.start()()
		back.mustResync()
		back.wantID(5)
	})
}

// TestReleasedByMistake checks that a running node reports its release, and has its ID again after a restart.
func TestReleasedByMistake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		n := newMachine(t, "a", db, &memoryIdentity{})
		stop := n.start()
		n.mustResync()
		other := newMachine(t, "b", db, &memoryIdentity{})
		defer other.start()()
		other.mustResync()
		synctest.Wait()
		if err := other.ReleaseNodeID(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		var fatal *controller.FatalError
		if err := n.change(1, nil, db.get(t, 1)); !errors.As(err, &fatal) || !strings.Contains(err.Error(), "was released at") {
			t.Errorf("Update: %v", err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !isReleased(db.get(t, 1)) {
			t.Error("the node took its ID back although it was released")
		}
		stop()
		n = newMachine(t, "a", db, n.disk)
		defer n.start()()
		n.mustResync()
		n.wantID(1)
		if got := db.get(t, 1); isReleased(got) || got.GetGeneration() != 2 {
			t.Errorf("record %v", got)
		}
	})
}

// TestKeeperReportsLostID: the keeper may be the first to detect that the ID is lost.
func TestKeeperReportsLostID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		n := newMachine(t, "a", db, &memoryIdentity{})
		defer n.start()()
		n.mustResync()
		synctest.Wait()
		db.put(t, owned(1, "thief", 2))
		n.loop.err = controller.ErrQueueFull
		if err := n.PublishNodeIPs(ips("10.0.0.1/24"), contivconf.IPv4); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		n.loop.mu.Lock()
		n.loop.err = nil
		n.loop.mu.Unlock()
		time.Sleep(time.Second)
		synctest.Wait()
		events := n.loop.events()
		if len(events) != 1 || !n.HandlesEvent(events[0]) {
			t.Fatalf("events %v", events)
		}
		var fatal *controller.FatalError
		if _, err := n.Update(events[0], nil); !errors.As(err, &fatal) {
			t.Errorf("Update: %v", err)
		}
		if n.state.identity.Claim != nil {
			t.Error("the node still remembers the ID")
		}
	})
}

func TestReleaseRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMachine(t, "a", newFakeDB(), &memoryIdentity{})
		if err := n.ReleaseNodeID(t.Context(), "b"); err == nil {
			t.Error("release before Init works")
		}
		defer n.start()()
		n.mustResync()
		if err := n.ReleaseNodeID(t.Context(), "a"); !errors.Is(err, errOwnNode) {
			t.Errorf("release of itself: %v", err)
		}
		if err := n.ReleaseNodeID(t.Context(), "b"); !errors.Is(err, errNoSuchNode) {
			t.Errorf("release of an unknown node: %v", err)
		}
		n.db.SetDown(true)
		if err := n.ReleaseNodeID(t.Context(), "b"); err == nil {
			t.Error("release without a database works")
		}
	})
}

// TestForgottenNodesAreHeld checks that nodes that are missing in a wiped database stay, until their records return or the hold ends.
func TestForgottenNodesAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		n := newMachine(t, "a", db, &memoryIdentity{})
		defer n.start()()
		n.mustResync()
		synctest.Wait()
		b, c := owned(2, "b", 1, "10.0.0.2/24"), owned(3, "c", 1, "10.0.0.3/24")
		d, e := owned(4, "d", 1, "10.0.0.4/24"), owned(5, "e", 1, "10.0.0.5/24")
		for _, r := range []*vppnode.VppNode{b, c, d, e} {
			db.put(t, r)
		}
		n.mustResync()
		db.Wipe()
		released := owned(5, "e", 1)
		released.ReleasedMs = 1
		db.put(t, released)
		n.mustResync()
		names := func() string {
			var out []string
			for _, name := range []string{"a", "b", "c", "d", "e", "x"} {
				if n.GetAllNodes()[name] != nil {
					out = append(out, name)
				}
			}
			return strings.Join(out, "")
		}
		want := func(what, want string, events ...string) {
			t.Helper()
			if got := names(); got != want {
				t.Errorf("%s: nodes %s, want %s", what, got, want)
			}
			if got := n.loop.take(); !reflect.DeepEqual(got, events) {
				t.Errorf("%s: events %q, want %q", what, got, events)
			}
		}
		want("wiped", "abcd")
		n.mustResync() // a verification, or another one
		want("once more", "abcd")
		update := func(id uint32, r *vppnode.VppNode) {
			t.Helper()
			if err := n.change(id, nil, r); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		update(2, b)
		want("b is back as it was", "abcd")
		update(4, owned(4, "x", 1))
		want("a node claims an ID that only seems free", "abcdx", "Node Update: x joined (ID 4)")
		update(4, owned(4, "x", 1, "10.0.0.4/24"))
		want("and uses it", "abcx", "Node Update: x changed from (ID 4) to (ID 4, VPP 10.0.0.4/24)",
			"Node Update: d left (ID 4, VPP 10.0.0.4/24)")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		for _, ev := range n.loop.events() {
			if _, err := n.Update(ev, nil); err != nil {
				t.Error(err)
			}
		}
		want("the time is over", "abx", "Node Update: c left (ID 3, VPP 10.0.0.3/24)")
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := n.loop.events(); got != nil {
			t.Errorf("events %v", got)
		}
	})
}

// TestNoHold checks that a node without a hold time removes other nodes together with their records.
func TestNoHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		n := newMachine(t, "a", db, &memoryIdentity{}, useTimes(intervals{Hold: -1}))
		defer n.start()()
		db.put(t, owned(2, "b", 1, "10.0.0.2/24"))
		n.mustResync()
		db.Delete(fullKey(2))
		n.mustResync()
		if got := n.GetAllNodes(); len(got) != 1 {
			t.Errorf("nodes %v", got)
		}
	})
}

// TestManagementIPs checks that other nodes, and this one, receive management addresses.
func TestManagementIPs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		n := newMachine(t, "a", db, &memoryIdentity{})
		defer n.start()()
		if err := n.PublishMgmtIPs(nil); err == nil {
			t.Error("PublishMgmtIPs works without an ID")
		}
		n.mustResync()
		synctest.Wait()
		list := []netip.Addr{netip.MustParseAddr("fd00::1"), netip.MustParseAddr("::ffff:10.0.0.1"), netip.MustParseAddr("10.0.0.1")}
		for range 2 {
			if err := n.PublishMgmtIPs(list); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if got, want := db.get(t, 1).GetMgmtAddresses(), []string{"10.0.0.1", "fd00::1"}; !reflect.DeepEqual(got, want) {
			t.Errorf("published %v, want %v", got, want)
		}
		if err := n.change(1, nil, db.get(t, 1)); err != nil {
			t.Fatal(err)
		}
		other := newMachine(t, "b", db, &memoryIdentity{})
		defer other.start()()
		other.mustResync()
		own, seen := n.loop.take(), other.GetAllNodes()["a"].String()
		if want := "ID 1, mgmt 10.0.0.1, mgmt fd00::1"; seen != want || len(own) != 1 || !strings.HasSuffix(own[0], "to ("+want+")") {
			t.Errorf("the other node sees %q, this one is told %q, want %q", seen, own, want)
		}
		for _, bad := range []netip.Addr{{}, netip.MustParseAddr("fe80::1%eth0")} {
			if err := n.PublishMgmtIPs([]netip.Addr{bad}); err == nil {
				t.Errorf("%s is published", bad)
			}
		}
	})
}

// TestBrokenRecords checks that invalid records are skipped and reported, once, and that their IDs do not count as free.
func TestBrokenRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		db.Put(fullKey(1), []byte("garbage"))
		db.Put(fullKey(2), []byte(`{"id":2}`))
		db.Put(fullKey(3), []byte(`{"id":9,"name":"liar"}`))
		db.Put(ksrPrefix+"allocatedIDs/007", []byte(`{"id":7,"name":"bond"}`))
		n := newMachine(t, "a", db, &memoryIdentity{})
		defer n.start()()
		n.mustResync()
		n.mustResync()
		n.wantID(4)
		if got := n.GetAllNodes(); len(got) != 1 {
			t.Errorf("nodes %v", got)
		}
		for _, key := range []string{"allocatedIDs/2", "allocatedIDs/3", "allocatedIDs/007"} {
			if got := strings.Count(n.logs.String(), "key="+key+" "); got != 1 {
				t.Errorf("%s was reported %d times", key, got)
			}
		}
		if err := n.change(5, nil, record(6, "liar")); err != nil {
			t.Errorf("a broken record is an error, and so leads to a healing: %v", err)
		}
		if err := n.change(5, nil, record(5, "honest", "banana", "10.0.0.1/8")); err != nil {
			t.Error(err)
		}
		if !strings.Contains(n.logs.String(), "banana") {
			t.Error("no error is logged for a broken address")
		}
	})
}

type mux struct{ *http.ServeMux }

func (m mux) RegisterHTTPHandler(path string, handler http.HandlerFunc, _ ...string) {
	m.HandleFunc(path, handler)
}

func TestREST(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		routes := mux{http.NewServeMux()}
		n := newMachine(t, "a", db, &memoryIdentity{}, UseHTTP(routes))
		defer n.start()()
		n.mustResync()
		synctest.Wait()
		db.put(t, owned(2, "gone", 1, "10.0.0.2/24", "banana"))
		db.Put(fullKey(9), []byte("garbage"))
		call := func(path, body string, wantStatus int) string {
			t.Helper()
			w := httptest.NewRecorder()
			routes.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
			if w.Code != wantStatus {
				t.Errorf("%s %s: %d %s", path, body, w.Code, w.Body)
			}
			return w.Body.String()
		}
		list := func() (out nodesReport) {
			t.Helper()
			if err := json.Unmarshal([]byte(call(nodesPath, "", http.StatusOK)), &out); err != nil {
				t.Fatal(err)
			}
			return out
		}
		got := list()
		if len(got.Nodes) != 2 || got.Nodes[1].State != "claimed" || len(got.Nodes[1].VPPIPs) != 1 ||
			len(got.Nodes[1].Problems) != 1 || got.Broken["allocatedIDs/9"] == "" || got.Nodes[0].UUID == "" || got.Nodes[0].Claimed.IsZero() {
			t.Errorf("report %+v", got)
		}
		call(releasePath, `{"name":"gone"}`, http.StatusOK)
		if got := list().Nodes[1]; got.State != "quarantine" || got.Released.IsZero() {
			t.Errorf("released node %+v", got)
		}
		time.Sleep(11 * time.Minute)
		if got := list().Nodes[1]; got.State != "released" {
			t.Errorf("released node %+v", got)
		}
		call(releasePath, `{"name":"gone"}`, http.StatusOK)
		call(releasePath, `{"name":"nobody"}`, http.StatusNotFound)
		call(releasePath, `{"name":"a"}`, http.StatusConflict)
		call(releasePath, `{}`, http.StatusBadRequest)
		call(releasePath, strings.Repeat(" ", 5000)+`{"name":"gone"}`, http.StatusBadRequest)
		db.SetDown(true)
		if got := list(); len(got.Nodes) != 1 || got.Nodes[0].Name != "a" || !strings.Contains(got.Stale, "etcd does not respond") {
			t.Errorf("while the database is away: %+v", got) // this node gets the state of others by events only
		}
		call(releasePath, `{"name":"gone"}`, http.StatusServiceUnavailable)
	})
}
