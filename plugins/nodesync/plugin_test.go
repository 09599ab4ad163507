package nodesync

import (
	"errors"
	"net"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/internal/clusterdb/cas"
	"contiv.dev/vswitch/internal/clusterdb/castest"
	"contiv.dev/vswitch/internal/servicelabel"
	"contiv.dev/vswitch/plugins/contivconf"
	controller "contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

func ips(list ...string) contivconf.IPsWithNetworks {
	var out contivconf.IPsWithNetworks
	for _, s := range list {
		p := netip.MustParsePrefix(s)
		out = append(out, &contivconf.IPWithNetwork{Version: contivconf.VersionOf(p.Addr()), Address: p.Addr(), Network: p.Masked()})
	}
	return out
}

func record(id uint32, name string, addrs ...string) *vppnode.VppNode {
	return &vppnode.VppNode{Id: id, Name: name, IpAddresses: addrs}
}

// owned returns a record with a proof of identity.
func owned(id uint32, name string, generation uint32, addrs ...string) *vppnode.VppNode {
	return &vppnode.VppNode{
		Id: id, Name: name, Uuid: "uuid-" + name, Generation: generation, ClaimedMs: time.Now().UnixMilli(), IpAddresses: addrs,
	}
}

func TestFirstFreeID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		db.put(t, record(1, "a"))
		db.put(t, record(2, "b"))
		db.put(t, record(4, "c"))
		n := newNode(t, "d", db)
		defer n.start()()
		n.mustResync()
		if got := n.GetNodeID(); got != 3 {
			t.Errorf("ID %d, want 3", got)
		}
		if got := db.get(t, 3); got.GetName() != "d" || got.GetId() != 3 {
			t.Errorf("record %v", got)
		}
		if got := n.GetAllNodes(); len(got) != 4 || got["d"].ID != 3 {
			t.Errorf("nodes %v", got)
		}
	})
}

func TestRestartFindsOwnRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		db.put(t, record(7, "a", "192.168.16.7/24"))
		n := newNode(t, "a", db)
		defer n.start()()
		n.mustResync()
		if got := n.GetNodeID(); got != 7 {
			t.Errorf("ID %d, want 7", got)
		}
		// publishing the same addresses again writes nothing
		if err := n.PublishNodeIPs(ips("192.168.16.7/24"), contivconf.IPv4); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := db.Commits(); got != 0 {
			t.Errorf("%d writes, want none", got)
		}
	})
}

// TestManyNodesAtOnce: more nodes than contiv's ten attempts start at the same time from the same (empty) snapshot.
func TestManyNodesAtOnce(t *testing.T) {
	db := newFakeDB()
	const count = 60
	nodes := make([]*testNode, count)
	var wg sync.WaitGroup
	for i := range nodes {
		nodes[i] = newNode(t, "node-"+string(rune('A'+i)), db)
		defer nodes[i].start()()
		wg.Go(func() {
			ev := controller.NewDBResync()
			if err := nodes[i].Resync(ev, ev.KubeState, 1, nil); err != nil {
				t.Errorf("node %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	seen := map[uint32]bool{}
	for _, n := range nodes {
		id := n.GetNodeID()
		if id == 0 || id > count || seen[id] {
			t.Errorf("ID %d is zero, too high or double", id)
		}
		seen[id] = true
	}
}

// TestLostAnswer: the claim was written but the response got lost; the node must not take a second ID.
func TestLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		db.LoseAnswers(1)
		n := newNode(t, "a", db)
		defer n.start()()
		n.mustResync()
		if got := n.GetNodeID(); got != 1 {
			t.Errorf("ID %d, want 1", got)
		}
	})
}

func TestNoDatabaseAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		n := newNode(t, "a", db)
		n.db.away = true
		defer n.start()()
		err := n.resync()
		var abort *controller.AbortEventError
		if !errors.As(err, &abort) || !strings.Contains(err.Error(), "check that etcd is running") {
			t.Fatalf("error %v", err)
		}
		if err := n.PublishNodeIPs(nil, contivconf.IPv4); err == nil {
			t.Error("PublishNodeIPs works without an ID")
		}
		n.state.connected.Store(true)
		db.SetDown(true)
		if err := n.resync(); !errors.Is(err, castest.ErrDown) || !errors.As(err, &abort) {
			t.Errorf("error %v, want the database's", err)
		}
		db.SetDown(false)
		n.mustResync()
		if n.GetNodeID() != 1 {
			t.Errorf("ID %d", n.GetNodeID())
		}
	})
}

// TestLocalCopy checks that a node with a stored ID starts without a database, and verifies the ID once the database is available.
func TestLocalCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		n := newNode(t, "a", db)
		n.db.away = true
		db.SetDown(true)
		defer n.start()()
		ev := &controller.DBResync{Local: true, KubeState: controller.KubeStateData{allocatedIDs: {
			recordKey(5): record(5, "a", "192.168.16.5/24"),
		}}}
		if err := n.Resync(ev, ev.KubeState, 1, nil); err != nil {
			t.Fatal(err)
		}
		if got := n.GetNodeID(); got != 5 {
			t.Errorf("ID %d, want 5", got)
		}
		time.Sleep(time.Minute)
		db.SetDown(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := db.get(t, 5); got.GetName() != "a" || !reflect.DeepEqual(got.GetIpAddresses(), []string{"192.168.16.5/24"}) {
			t.Errorf("the ID was not claimed again: %v", got)
		}
	})
}

// TestPreferredID checks that, after the database lost its data, a node tries to get its old ID.
func TestPreferredID(t *testing.T) {
	for _, tc := range []struct {
		remembered, taken, want uint32
	}{{5, 0, 5}, {5, 5, 1}, {0, 0, 1}} {
		synctest.Test(t, func(t *testing.T) {
			db := newFakeDB()
			if tc.taken != 0 {
				db.put(t, record(tc.taken, "other"))
			}
			n := newNode(t, "a", db, UsePreferredID(func() (uint32, bool) { return tc.remembered, tc.remembered != 0 }))
			defer n.start()()
			n.mustResync()
			if got := n.GetNodeID(); got != tc.want {
				t.Errorf("%+v: ID %d", tc, got)
			}
		})
	}
}

// TestIDOfAnotherNode: another node has the ID. This is an error that an operator must fix, and the record is not changed.
func TestIDOfAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		n := newNode(t, "a", db)
		defer n.start()()
		n.mustResync()
		synctest.Wait()
		db.put(t, owned(1, "thief", 2))
		var fatal *controller.FatalError
		err := n.resync()
		if !errors.As(err, &fatal) || !strings.Contains(err.Error(), "the ID 1 of this node (a) is the node thief's") {
			t.Errorf("Resync: %v", err)
		}
		if err := n.change(1, record(1, "a"), owned(1, "thief", 2)); !errors.As(err, &fatal) {
			t.Errorf("Update: %v", err)
		}
		if err := n.PublishNodeIPs(ips("192.168.16.1/24"), contivconf.IPv4); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := db.get(t, 1).GetName(); got != "thief" {
			t.Errorf("the record of another node was overwritten by %s", got)
		}
	})
}

func TestPublish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		n := newNode(t, "a", db)
		defer n.start()()
		n.mustResync()
		synctest.Wait()
		writes := db.Commits()
		publish := func(version contivconf.IPVersion, list ...string) {
			t.Helper()
			if err := n.PublishNodeIPs(ips(list...), version); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		wantRecord := func(list ...string) {
			t.Helper()
			if got := db.get(t, 1).GetIpAddresses(); !reflect.DeepEqual(got, list) {
				t.Errorf("record has %v, want %v", got, list)
			}
		}
		publish(contivconf.IPv6, "fd00::1/64")
		publish(contivconf.IPv4, "192.168.16.1/24")
		wantRecord("192.168.16.1/24", "fd00::1/64")
		for range 3 {
			publish(contivconf.IPv4, "192.168.16.1/24")
			n.mustResync()
		}
		synctest.Wait()
		if got := db.Commits() - writes; got != 2 {
			t.Errorf("%d writes, want 2", got)
		}
		publish(contivconf.IPv4, "192.168.16.1/25") // a changed mask counts as a change
		wantRecord("192.168.16.1/25", "fd00::1/64")
		publish(contivconf.IPv6)
		wantRecord("192.168.16.1/25")
	})
}

// TestPublishSurvivesOutage checks that publishing never waits, and that the newest addresses are written once the database is available.
func TestPublishSurvivesOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		n := newNode(t, "a", db)
		defer n.start()()
		n.mustResync()
		synctest.Wait()
		db.SetDown(true)
		before := time.Now()
		for _, ip := range []string{"10.0.0.1/24", "10.0.0.2/24", "10.0.0.3/24"} {
			if err := n.PublishNodeIPs(ips(ip), contivconf.IPv4); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(before); d != 0 {
			t.Errorf("PublishNodeIPs waited %s", d)
		}
		time.Sleep(time.Hour)
		db.SetDown(false)
		time.Sleep(2 * maxBackoff)
		synctest.Wait()
		if got := db.get(t, 1).GetIpAddresses(); !reflect.DeepEqual(got, []string{"10.0.0.3/24"}) {
			t.Errorf("record has %v", got)
		}
	})
}

// TestPublishComparesAndSwaps: the record changes its owner between read and write.
func TestPublishComparesAndSwaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		n := newNode(t, "a", db)
		defer n.start()()
		n.mustResync()
		synctest.Wait()
		db.BeforeCommit(func([]cas.Change) { db.put(t, owned(1, "thief", 2)) })
		if err := n.PublishNodeIPs(ips("10.0.0.1/24"), contivconf.IPv4); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := db.get(t, 1).GetName(); got != "thief" {
			t.Errorf("the record is %s's", got)
		}
	})
}

// TestRecordRestored: another program has deleted or changed this node's record.
func TestRecordRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		n := newNode(t, "a", db)
		defer n.start()()
		n.mustResync()
		if err := n.PublishNodeIPs(ips("10.0.0.1/24"), contivconf.IPv4); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		db.Delete(fullKey(1))
		if err := n.change(1, record(1, "a", "10.0.0.1/24"), nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := db.get(t, 1); !reflect.DeepEqual(got.GetIpAddresses(), []string{"10.0.0.1/24"}) {
			t.Errorf("after deletion: %v", got)
		}
		db.put(t, record(1, "a", "6.6.6.6/8"))
		n.mustResync()
		synctest.Wait()
		if got := db.get(t, 1); !reflect.DeepEqual(got.GetIpAddresses(), []string{"10.0.0.1/24"}) {
			t.Errorf("after a foreign change: %v", got)
		}
		if got := n.loop.take(); got != nil {
			t.Errorf("events for this node: %v", got)
		}
	})
}

func TestNodeUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, "a", newFakeDB())
		defer n.start()()
		n.mustResync()
		for _, step := range []struct {
			what       string
			id         uint32
			prev, next *vppnode.VppNode
			want       []string
		}{
			{"join", 2, nil, record(2, "b"), []string{"Node Update: b joined (ID 2)"}},
			{"addresses", 2, record(2, "b"), record(2, "b", "192.168.16.2/24", "fd00::2/64"),
				[]string{"Node Update: b changed from (ID 2) to (ID 2, VPP 192.168.16.2/24 fd00::2/64)"}},
			{"other order", 2, nil, record(2, "b", "fd00::2/64", "192.168.16.2/24"), nil},
			{"mask", 2, nil, record(2, "b", "192.168.16.2/25", "fd00::2/64"),
				[]string{"Node Update: b changed from (ID 2, VPP 192.168.16.2/24 fd00::2/64) to (ID 2, VPP 192.168.16.2/25 fd00::2/64)"}},
			{"same", 2, nil, record(2, "b", "192.168.16.2/25", "fd00::2/64"), nil},
			{"obsolete field", 3, nil, &vppnode.VppNode{Id: 3, Name: "c", IpAddress: "192.168.16.3/24"},
				[]string{"Node Update: c joined (ID 3, VPP 192.168.16.3/24)"}},
			{"garbage is left out", 3, nil, record(3, "c", "banana", "192.168.16.3/24"), nil},
			{"other owner", 3, nil, record(3, "d"),
				[]string{"Node Update: c left (ID 3, VPP 192.168.16.3/24)", "Node Update: d joined (ID 3)"}},
			{"second record", 9, nil, record(9, "d"), nil},
			{"first record goes", 3, record(3, "d"), nil, []string{"Node Update: d changed from (ID 3) to (ID 9)"}},
			{"leave", 2, record(2, "b"), nil, []string{"Node Update: b left (ID 2, VPP 192.168.16.2/25 fd00::2/64)"}},
			{"leave again", 2, record(2, "b"), nil, nil},
		} {
			if err := n.change(step.id, step.prev, step.next); err != nil {
				t.Errorf("%s: %v", step.what, err)
			}
			if got := n.loop.take(); !reflect.DeepEqual(got, step.want) {
				t.Errorf("%s: events %q, want %q", step.what, got, step.want)
			}
		}
		if got := n.GetAllNodes(); len(got) != 2 || got["d"].ID != 9 {
			t.Errorf("nodes %v", got)
		}
	})
}

// TestUpdatesEqualResync checks that the nodes after updates are the same as after a resync.
func TestUpdatesEqualResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		n := newNode(t, "a", db)
		defer n.start()()
		n.mustResync()
		for _, r := range []*vppnode.VppNode{record(2, "b", "1.1.1.1/8"), record(3, "c"), record(5, "b"), record(3, "c", "fd00::/64")} {
			db.put(t, r)
			if err := n.change(r.GetId(), nil, r); err != nil {
				t.Fatal(err)
			}
		}
		updated := n.GetAllNodes()
		n.mustResync()
		if got := n.GetAllNodes(); !reflect.DeepEqual(got, updated) {
			t.Errorf("after updates %v, after resync %v", updated, got)
		}
		updated = n.GetAllNodes()
		updated["x"] = &Node{}
		updated["b"].VppIPAddresses[0].Version = 77
		updated["b"].ID = 77
		if all := n.GetAllNodes(); all["x"] != nil || all["b"].ID == 77 || all["b"].VppIPAddresses[0].Version == 77 {
			t.Error("GetAllNodes gives away what is internal")
		}
	})
}

func TestEvents(t *testing.T) {
	n := newNode(t, "a", newFakeDB())
	own := &controller.KubeStateChange{Resource: allocatedIDs, Key: "allocatedIDs/x"}
	for ev, want := range map[controller.Event]bool{
		controller.NewDBResync(): true, own: true, &controller.KubeStateChange{Resource: "pod"}: false, &NodeUpdate{}: false,
	} {
		if got := n.HandlesEvent(ev); got != want {
			t.Errorf("HandlesEvent(%s) = %v", ev.GetName(), got)
		}
	}
	if err := n.Revert(own); err != nil {
		t.Error(err)
	}
	n.loop.err = controller.ErrQueueFull
	if err := n.change(2, nil, record(2, "b")); !errors.Is(err, controller.ErrQueueFull) {
		t.Errorf("error %v, want the event loop's", err)
	}
	ev := &NodeUpdate{NodeName: "b", NewState: &Node{ID: 2, MgmtIPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)}}}
	ev.Done(nil)
	if ev.IsBlocking() || ev.Method() != controller.Update || ev.TransactionType() != controller.BestEffort ||
		ev.Direction() != controller.Forward || ev.String() != "Node Update: b joined (ID 2, mgmt 10.0.0.1)" {
		t.Errorf("event %s", ev)
	}
}

func TestWrongUse(t *testing.T) {
	if err := NewPlugin().Init(); err == nil {
		t.Error("Init works without dependencies")
	}
	nameless := newNode(t, "a", newFakeDB())
	nameless.ServiceLabel = servicelabel.Label("")
	if err := nameless.Init(); err == nil || !strings.Contains(err.Error(), "name") {
		t.Errorf("Init of a node without a name: %v", err)
	}
	if err := NewPlugin().Close(); err != nil {
		t.Errorf("Close without Init: %v", err)
	}
	if DefaultPlugin.String() != "nodesync" {
		t.Errorf("DefaultPlugin is called %q", DefaultPlugin.String())
	}
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, "a", newFakeDB())
		defer n.start()()
		n.mustResync()
		for _, bad := range []contivconf.IPsWithNetworks{{nil}, {{}}, ips("fd00::1/64")} {
			if err := n.PublishNodeIPs(bad, contivconf.IPv4); err == nil {
				t.Errorf("PublishNodeIPs(%v) works", bad)
			}
		}
	})
}

// TestStoredForm checks the JSON in the database, which other tools read.
func TestStoredForm(t *testing.T) {
	value, err := encode(record(3, "n", "10.0.0.1/24", "fd00::1/64"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.ReplaceAll(string(value), " ", ""), `{"id":3,"name":"n","ip_addresses":["10.0.0.1/24","fd00::1/64"]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRememberedID(t *testing.T) {
	values := map[string][]byte{
		"allocatedIDs/7": []byte(`{"id":7,"name":"a","field_of_the_future":1}`), "allocatedIDs/8": []byte(`{"name":"b"}`),
		"allocatedIDs/9": []byte("garbage"), "allocatedIDs/x": []byte(`{"name":"a"}`), "other/1": []byte(`{"name":"a"}`),
	}
	for name, want := range map[string]uint32{"a": 7, "b": 8, "c": 0} {
		if id, ok := StoredID(values, name); id != want || ok != (want != 0) {
			t.Errorf("%s: %d, %v, want %d", name, id, ok, want)
		}
	}
}
