package nodesync

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/plugins/contivconf"
	controller "contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

// TestOneClaimHolds checks that of two different claims of one ID exactly one holds, independent of the node that runs the check.
func TestOneClaimHolds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		var nodes [2]self
		var claims [2]claim
		for i := range nodes {
			nodes[i] = self{name: string(rune('a' + i)), uuid: string(rune('u' + random.IntN(3)))}
			if random.IntN(4) == 0 {
				nodes[i].uuid = ""
			}
			claims[i] = claim{ID: 1, Generation: uint32(1 + random.IntN(3)), Claimed: int64(random.IntN(3))}
		}
		a := compareClaim(nodes[0], claims[0], claims[1].record(nodes[1]))
		b := compareClaim(nodes[1], claims[1], claims[0].record(nodes[0]))
		if (a == weaker) == (b == weaker) || (a == lost) == (b == lost) {
			t.Fatalf("%+v %+v: the first node says %d, the second %d", nodes, claims, a, b)
		}
	}
}

func TestClaimOrder(t *testing.T) {
	me := self{name: "a", uuid: "A"}
	c := claim{ID: 1, Generation: 3, Claimed: 100}
	used := []string{"1.1.1.1/8"}
	for what, tc := range map[string]struct {
		there *vppnode.VppNode
		want  verdict
	}{
		"nothing":                    {nil, vacant},
		"own":                        {&vppnode.VppNode{Name: "a", Uuid: "A", Generation: 3, ClaimedMs: 100}, mine},
		"own of contiv":              {&vppnode.VppNode{Name: "a"}, mine},
		"own, older":                 {&vppnode.VppNode{Name: "a", Uuid: "A", Generation: 2}, weaker},
		"own, newer":                 {&vppnode.VppNode{Name: "a", Uuid: "A", Generation: 4}, newer},
		"own, released":              {&vppnode.VppNode{Name: "a", Uuid: "A", Generation: 3, ReleasedMs: 1}, released},
		"own, released long ago":     {&vppnode.VppNode{Name: "a", Uuid: "A", Generation: 2, ReleasedMs: 1}, weaker},
		"owner of before":            {&vppnode.VppNode{Name: "b", Uuid: "B", Generation: 2, ClaimedMs: 1}, weaker},
		"release of before":          {&vppnode.VppNode{Name: "b", Uuid: "B", Generation: 3, ReleasedMs: 1}, weaker},
		"given away and released":    {&vppnode.VppNode{Name: "b", Uuid: "B", Generation: 4, ReleasedMs: 1}, lost},
		"given away":                 {&vppnode.VppNode{Name: "b", Uuid: "B", Generation: 4, ClaimedMs: 200}, lost},
		"late comer after a wipe":    {&vppnode.VppNode{Name: "b", Uuid: "B", Generation: 3, ClaimedMs: 200}, weaker},
		"early comer after a wipe":   {&vppnode.VppNode{Name: "b", Uuid: "B", Generation: 3, ClaimedMs: 50}, lost},
		"contiv after a wipe":        {&vppnode.VppNode{Name: "b"}, weaker},
		"same name, not in use":      {&vppnode.VppNode{Name: "a", Uuid: "B", Generation: 4}, contested},
		"same name, in use":          {&vppnode.VppNode{Name: "a", Uuid: "B", Generation: 4, IpAddresses: used}, lost},
		"same name, earlier, in use": {&vppnode.VppNode{Name: "a", Uuid: "B", Generation: 2, IpAddresses: used}, weaker},
	} {
		if got := compareClaim(me, c, tc.there); got != tc.want {
			t.Errorf("%s: %d, want %d", what, got, tc.want)
		}
	}
}

// TestIDSurvivesTheDatabase checks that machines keep their IDs when the database is wiped or restored from an old backup, and that new
// nodes do not get these IDs.
func TestIDSurvivesTheDatabase(t *testing.T) {
	for _, restored := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			db := newFakeDB()
			var nodes []*testNode
			join := func(name string) *testNode {
				n := newMachine(t, name, db, &memoryIdentity{}, useTimes(intervals{Quarantine: -1}))
				t.Cleanup(n.start())
				n.mustResync()
				nodes = append(nodes, n)
				return n
			}
			gone := join("gone")
			join("b")
			backup := db.Backup()
			if err := gone.Close(); err != nil {
				t.Fatal(err)
			}
			nodes = nodes[1:]
			if err := nodes[0].ReleaseNodeID(t.Context(), "gone"); err != nil {
				t.Fatal(err)
			}
			join("heir").wantID(1)
			join("d").wantID(3)
			for _, n := range nodes {
				if err := n.PublishNodeIPs(ips("10.0.0.9/24"), contivconf.IPv4); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if restored {
				db.Restore(backup) // has "gone" with the ID of "heir", and no record of "d"
			} else {
				db.Wipe()
			}
			if !restored {
				nodes[0].mustResync() // one node is fast
				synctest.Wait()
			}
			var newNodes []*testNode
			for _, name := range []string{"x", "y"} { // the others are slow
				n := newMachine(t, name, db, &memoryIdentity{})
				t.Cleanup(n.start())
				n.mustResync()
				newNodes = append(newNodes, n)
			}
			for _, n := range nodes {
				n.mustResync()
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			for i, want := range []uint32{2, 1, 3} {
				nodes[i].mustResync()
				nodes[i].wantID(want)
				if got := db.get(t, want); got.GetName() != nodes[i].ServiceLabel.GetAgentLabel() || len(got.GetIpAddresses()) != 1 {
					t.Errorf("restored %v: the record of %d is %v", restored, want, got)
				}
			}
			newIDs(t, db, newNodes)
		})
	}
}

// newIDs checks that the new nodes that took IDs of others lose them, and get free IDs when they start again.
func newIDs(t *testing.T, db *fakeDB, newNodes []*testNode) {
	t.Helper()
	lost := 0
	for i, n := range newNodes {
		var fatal *controller.FatalError
		switch err := n.resync(); {
		case errors.As(err, &fatal) && strings.Contains(err.Error(), "restart the agent of this node, which then gets a new ID"):
			lost++
			_ = n.Close()
			n = newMachine(t, n.ServiceLabel.GetAgentLabel(), db, n.disk)
			t.Cleanup(n.start())
			n.mustResync()
			newNodes[i] = n
		case err != nil:
			t.Error(err)
		}
		if id := n.GetNodeID(); id < 4 {
			t.Errorf("a new node has the ID %d", id)
		}
	}
	if lost == 0 {
		t.Error("no new node took an ID that was not free: the test does not test what it should")
	}
}

// TestProbation checks that a new node on a wiped database waits long enough to detect that the ID that seemed free is not.
func TestProbation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		old := newMachine(t, "old", db, &memoryIdentity{})
		defer old.start()()
		old.mustResync()
		time.Sleep(time.Minute)
		synctest.Wait()
		db.Wipe()
		fresh := newMachine(t, "fresh", db, &memoryIdentity{})
		fresh.db.shared = true
		defer fresh.start()()
		time.AfterFunc(8*time.Second, func() {
			if err := old.resync(); err != nil {
				t.Errorf("the node that was there first: %v", err)
			}
		})
		began := time.Now()
		err := fresh.resync() // longer than the timeout of the event loop
		for err != nil && time.Since(began) < time.Minute {
			if abort := (*controller.AbortEventError)(nil); !errors.As(err, &abort) || fresh.GetNodeID() != 0 {
				t.Fatalf("error %v, ID %d", err, fresh.GetNodeID())
			}
			time.Sleep(5 * time.Second)
			err = fresh.resync()
		}
		fresh.wantID(2)
		old.wantID(1)
		if took := time.Since(began); took > 25*time.Second {
			t.Errorf("it took %s", took)
		}
		restart := newMachine(t, "fresh", db, fresh.disk)
		restart.db.shared = true
		defer restart.start()()
		began = time.Now()
		restart.mustResync()
		if took := time.Since(began); took != 0 {
			t.Errorf("a node that has its ID waited %s", took)
		}
	})
}

// TestReinstalled checks that a machine that was installed again with its old name gets its old ID.
func TestReinstalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		old := newMachine(t, "a", db, &memoryIdentity{})
		stop := old.start()
		old.mustResync()
		synctest.Wait()
		stop()
		db.put(t, owned(2, "b", 1))
		again := newMachine(t, "a", db, &memoryIdentity{})
		again.db.shared = true
		defer again.start()()
		again.mustResync()
		again.wantID(1)
		if got := db.get(t, 1); got.GetGeneration() != 2 || got.GetUuid() != again.state.identity.UUID {
			t.Errorf("record %v", got)
		}
	})
}

// TestTwoMachinesOneName checks that the existing machine is not affected, and that the other one gets an error.
func TestTwoMachinesOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		first := newMachine(t, "a", db, &memoryIdentity{})
		defer first.start()()
		first.mustResync()
		if err := first.PublishNodeIPs(ips("10.0.0.1/24"), contivconf.IPv4); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		second := newMachine(t, "a", db, &memoryIdentity{})
		second.db.shared = true
		defer second.start()()
		time.AfterFunc(time.Second, func() {
			if err := first.resync(); err != nil { // the watcher reports the claim
				t.Errorf("the machine that was there first: %v", err)
			}
		})
		if err := second.resync(); !errors.Is(err, errNameConflict) || second.GetNodeID() != 0 {
			t.Errorf("second machine: error %v, ID %d", err, second.GetNodeID())
		}
		first.mustResync()
		first.wantID(1)
		if got := db.get(t, 1); got.GetUuid() != first.state.identity.UUID || len(got.GetIpAddresses()) != 1 {
			t.Errorf("record %v", got)
		}
		if id := first.state.identity.Claim; id == nil || id.Generation != 3 {
			t.Errorf("claim %+v", id)
		}
	})
}

// TestReplacedWhileAway: the first machine returns after the second one has used its name and ID for a long time.
func TestReplacedWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		first := newMachine(t, "a", db, &memoryIdentity{})
		defer first.start()()
		first.mustResync()
		synctest.Wait()
		second := newMachine(t, "a", db, &memoryIdentity{})
		second.db.shared = true
		defer second.start()()
		second.mustResync()
		second.wantID(1)
		if err := second.PublishNodeIPs(ips("10.0.0.1/24"), contivconf.IPv4); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var fatal *controller.FatalError
		err := first.resync()
		if !errors.As(err, &fatal) || !strings.Contains(err.Error(), "another machine with the name of this node") {
			t.Errorf("first machine: %v", err)
		}
		restarted := newMachine(t, "a", db, first.disk)
		defer restarted.start()()
		for range 3 { // it does not claim the ID again
			if err := restarted.resync(); !errors.Is(err, errNameConflict) {
				t.Errorf("first machine after a restart: %v", err)
			}
		}
		second.mustResync()
	})
}

// TestCopiedDisk checks that a machine with a copy of another machine's disk, such as a cloned virtual machine, gets its own identity.
func TestCopiedDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		disk := &memoryIdentity{}
		n := newMachine(t, "a", db, disk)
		defer n.start()()
		n.mustResync()
		synctest.Wait()
		clone := newMachine(t, "b", db, &memoryIdentity{values: map[string][]byte{identityKey: disk.values[identityKey]}})
		defer clone.start()()
		clone.mustResync()
		clone.wantID(2)
		if !strings.Contains(clone.logs.String(), "this node's data belong to another node") {
			t.Error("no error is logged")
		}
	})
}

// TestStartsByItself checks that, without the database, the node has its stored ID even if its copy of the shared state is missing.
func TestStartsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		db.put(t, owned(1, "x", 1))
		n := newMachine(t, "a", db, &memoryIdentity{})
		stop := n.start()
		n.mustResync()
		synctest.Wait()
		stop()
		db.SetDown(true)
		again := newMachine(t, "a", db, n.disk)
		again.db.away = true
		defer again.start()()
		ev := &controller.DBResync{Local: true, KubeState: controller.KubeStateData{}}
		if err := again.Resync(ev, ev.KubeState, 1, nil); err != nil {
			t.Fatal(err)
		}
		again.wantID(2)
		if all := again.GetAllNodes(); all["a"] == nil || all["a"].ID != 2 {
			t.Errorf("nodes %v", all)
		}
	})
}

// TestEarlierLife checks that a record of the node under another ID is released, and does not count as the node.
func TestEarlierLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		n := newMachine(t, "a", db, &memoryIdentity{})
		defer n.start()()
		n.mustResync()
		synctest.Wait()
		time.Sleep(time.Second)
		db.put(t, &vppnode.VppNode{
			Id: 7, Name: "a", Uuid: n.state.identity.UUID, Generation: 1, ClaimedMs: 5, IpAddresses: []string{"9.9.9.9/8"},
		})
		n.mustResync()
		synctest.Wait()
		n.wantID(1)
		if got := n.GetAllNodes()["a"]; got.ID != 1 {
			t.Errorf("node %v", got)
		}
		if got := db.get(t, 7); !isReleased(got) {
			t.Errorf("record of the earlier life: %v", got)
		}
	})
}

func TestIdentityOnBadDisk(t *testing.T) {
	boom := errors.New("disk is full")
	n := newMachine(t, "a", newFakeDB(), &memoryIdentity{err: boom})
	if err := n.Init(); !errors.Is(err, boom) {
		t.Errorf("Init: %v", err)
	}
	n = newMachine(t, "a", newFakeDB(), &memoryIdentity{values: map[string][]byte{identityKey: []byte("garbage")}})
	defer n.start()()
	if n.state.identity.UUID == "" || !strings.Contains(n.logs.String(), "cannot be read") {
		t.Error("no new identity, or no error is logged")
	}
	n.disk.err = boom
	if err := n.resync(); !errors.Is(err, boom) || n.GetNodeID() != 0 {
		t.Errorf("ID %d although it cannot be remembered: %v", n.GetNodeID(), err)
	}
}
