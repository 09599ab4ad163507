package nodesync

import (
	"fmt"
	"runtime"
	"testing"

	"contiv.dev/vswitch/internal/clusterdb/castest"
	"contiv.dev/vswitch/internal/servicelabel"
	controller "contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

// member returns the record of the node with the ID, as in a dual-stack cluster.
func member(id uint32) *vppnode.VppNode {
	return owned(id, fmt.Sprintf("node-%d", id), 1, fmt.Sprintf("10.0.%d.%d/16", id>>8, id&255), fmt.Sprintf("fd00::%x/64", id))
}

// crowd returns the snapshot of a cluster of count nodes.
func crowd(count int) controller.KubeStateData {
	kvs := make(controller.KeyValuePairs, count)
	for id := uint32(1); id <= uint32(count); id++ {
		kvs[recordKey(id)] = member(id)
	}
	return controller.KubeStateData{allocatedIDs: kvs}
}

// deafLoop accepts events and discards them.
type deafLoop struct{}

func (deafLoop) PushEvent(controller.Event) error                          { return nil }
func (deafLoop) PushFollowUp(_ controller.Event, _ controller.Event) error { return nil }

// inCrowd returns node-1 of a cluster of count nodes.
func inCrowd(t testing.TB, count int) *NodeSync {
	t.Helper()
	db := &fakeDB{castest.NewMemory()}
	ns := NewPlugin(UseDeps(func(d *Deps) {
		d.ServiceLabel, d.DB, d.EventLoop = servicelabel.Label("node-1"), &client{fakeDB: db}, deafLoop{}
	}))
	if err := ns.Init(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Close() })
	ev := &controller.DBResync{KubeState: crowd(count)}
	if err := ns.Resync(ev, ev.KubeState, 1, nil); err != nil {
		t.Fatal(err)
	}
	if got := len(ns.GetAllNodes()); got != count || ns.GetNodeID() != 1 {
		t.Fatalf("%d nodes, ID %d", got, ns.GetNodeID())
	}
	return ns
}

// joinAndLeave adds one more node, gives it an address, and removes it.
func joinAndLeave(t testing.TB, ns *NodeSync, id uint32) {
	bare, full := member(id), member(id)
	bare.IpAddresses = nil
	for _, r := range []*vppnode.VppNode{bare, full, nil} {
		ev := &controller.KubeStateChange{Resource: allocatedIDs, Key: recordKey(id)}
		if r != nil {
			ev.NewValue = r
		}
		if change, err := ns.Update(ev, nil); err != nil || change == "" {
			t.Fatal(change, err)
		}
	}
}

// TestCostOfJoining checks that the cost of a joining node on the other nodes does not depend on their number.
func TestCostOfJoining(t *testing.T) {
	var few, many float64
	for count, allocs := range map[int]*float64{50: &few, 5000: &many} {
		ns := inCrowd(t, count)
		*allocs = testing.AllocsPerRun(200, func() { joinAndLeave(t, ns, 6000) })
	}
	if many > few+5 {
		t.Errorf("%.0f allocations in a cluster of 5000, %.0f in one of 50", many, few)
	}
}

func BenchmarkJoin(b *testing.B) {
	for _, count := range []int{50, 500, 5000} {
		b.Run(fmt.Sprintf("nodes=%d", count), func(b *testing.B) {
			ns := inCrowd(b, count)
			for b.Loop() {
				joinAndLeave(b, ns, 6000)
			}
		})
	}
}

// BenchmarkStart measures the start-up resync of a node in a cluster of 5000, starting with the decoded snapshot.
func BenchmarkStart(b *testing.B) {
	state := crowd(5000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	label := UseDeps(func(d *Deps) { d.ServiceLabel = servicelabel.Label("node-1") })
	keep := NewPlugin(label)
	keep.load(state)
	runtime.GC()
	runtime.ReadMemStats(&after)
	for b.Loop() {
		ns := NewPlugin(label)
		ns.load(state)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB-kept")
	runtime.KeepAlive(keep)
}

// BenchmarkReadView measures the reading of 5000 records by a node that has no ID yet, without the round trip to etcd.
func BenchmarkReadView(b *testing.B) {
	db := castest.NewMemory()
	for id := uint32(1); id <= 5000; id++ {
		value, err := encode(member(id))
		if err != nil {
			b.Fatal(err)
		}
		db.Put(fullKey(id), value)
	}
	for b.Loop() {
		v, err := readView(b.Context(), db)
		if err != nil || v.free(1)[0] != 5001 {
			b.Fatal(err)
		}
	}
}

// BenchmarkGetAllNodes measures the copy of 5000 nodes.
func BenchmarkGetAllNodes(b *testing.B) {
	ns := inCrowd(b, 5000)
	for b.Loop() {
		ns.GetAllNodes()
	}
}
