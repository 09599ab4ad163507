package relay

import (
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/kube/model"
)

// TestFill checks that agents receive nothing before the state is complete, and then all of it at once.
func TestFill(t *testing.T) {
	e := newEtcd(t)
	db, _ := e.client()
	n := newNode(t, db, nil)
	want := services(250)
	want[model.Key(model.NodeKeyword, "", "n1")] = &model.Node{Name: "n1"}
	r := newReplica(t, e, "a")
	until(t, "the node waits", func() bool { waiting, _ := n.watch.Incomplete(); return waiting })
	r.report(t, want)
	until(t, "the node has all", func() bool { return n.has(want) })
	if resyncs, changes := n.reported(); resyncs != 1 || len(changes) != 0 {
		t.Errorf("%d resyncs, changes %q; want one resync", resyncs, changes)
	}
	if got, marked, _ := inEtcd(t, db); !marked || !maps.EqualFunc(got, want, proto.Equal) {
		t.Errorf("etcd has %d values, complete: %t", len(got), marked)
	}
	r.awaitSettled(t)
	if c := r.counts(); c != [3]uint64{252, 0, 4} { // 251 values in 3 batches, and the marker
		t.Errorf("%d puts, %d deletes, %d transactions", c[0], c[1], c[2])
	}
}

// TestWritesPerChange checks that one change causes one write, and that an equal value, or one that is changed back in time,
// causes none.
func TestWritesPerChange(t *testing.T) {
	e := newEtcd(t)
	r := newReplica(t, e, "a")
	state := services(3)
	r.report(t, state)
	r.awaitSettled(t)
	before, _, rev := inEtcd(t, r.db)
	count := r.counts()

	r.change(t, serviceKey(1), service(1, 7))
	r.awaitSettled(t)
	r.change(t, serviceKey(1), service(1, 7)) // an equal value
	r.report(t, maps.Collect(func(yield func(string, proto.Message) bool) {
		yield(serviceKey(0), service(0, 0))
		yield(serviceKey(1), service(1, 7))
		yield(serviceKey(2), service(2, 0))
	}))
	r.awaitSettled(t)
	r.change(t, serviceKey(2), nil)
	r.awaitSettled(t)
	if now := r.counts(); now != [3]uint64{count[0] + 1, count[1] + 1, count[2] + 2} {
		t.Errorf("%v after %v", now, count)
	}
	after, _, newRev := inEtcd(t, r.db)
	if newRev != rev+2 || len(after) != len(before)-1 || !proto.Equal(after[serviceKey(1)], service(1, 7)) {
		t.Errorf("%d revisions, %d values", newRev-rev, len(after))
	}

	r.stop() // a new leader finds no differences
	next := newReplica(t, e, "b")
	next.report(t, after)
	next.awaitSettled(t)
	if now := next.counts(); now != [3]uint64{} {
		t.Errorf("the next leader wrote %v", now)
	}
}

// TestRepair checks that changes of another program below the prefix are reverted, at once or when the relay starts.
func TestRepair(t *testing.T) {
	e := newEtcd(t)
	want := services(5)
	mess := func(db *clusterdb.DB) {
		write(t, db, serviceKey(0), nil)
		write(t, db, serviceKey(1), []byte("garbage"))
		write(t, db, serviceKey(9), []byte("\n\x01x"))
		write(t, db, model.KeyPrefix+"unknown/thing", []byte("x"))
		write(t, db, "elsewhere", []byte("x"))
	}
	clean := func(db *clusterdb.DB) bool {
		values, _, err := db.List(t.Context(), clusterdb.KSRPrefix)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			key := strings.TrimPrefix(v.Key, clusterdb.KSRPrefix)
			data, err := proto.MarshalOptions{Deterministic: true}.Marshal(want[key])
			if key != MarkerKey && key != "elsewhere" && (want[key] == nil || err != nil || string(data) != string(v.Value)) {
				return false
			}
		}
		return len(values) == len(want)+2
	}
	r := newReplica(t, e, "a")
	r.report(t, want)
	r.awaitSettled(t)
	mess(r.db)
	until(t, "it is repaired", func() bool { return clean(r.db) })
	r.stop()
	db, _ := e.client()
	mess(db)
	next := newReplica(t, e, "b")
	next.report(t, want)
	until(t, "it is repaired by the next one", func() bool { return clean(db) })
}

// TestResync checks that the periodic comparison also repairs, and writes nothing when nothing differs.
func TestResync(t *testing.T) {
	e := newEtcd(t)
	r := newReplica(t, e, "a", func(d *Deps) { d.ResyncInterval = 100 * time.Millisecond })
	r.report(t, services(3))
	r.awaitSettled(t)
	count, compared := r.counts(), r.stats.compared.Load()
	until(t, "two comparisons", func() bool { return r.stats.compared.Load() >= compared+2 })
	if now := r.counts(); now != count {
		t.Errorf("%v after %v", now, count)
	}
}

// TestFence checks that a deposed leader cannot write, even if it has not detected this.
func TestFence(t *testing.T) {
	e := newEtcd(t)
	db, _ := e.client()
	a, err := db.Campaign(t.Context(), electionPrefix, "a", 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	old, err := New(Deps{DB: db, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	old.table.setAll(map[string]string{clusterdb.KSRPrefix + serviceKey(1): "old"}, nil)
	old.table.load(nil)
	a.Resign()

	r := newReplica(t, e, "b")
	r.report(t, services(2))
	r.awaitSettled(t)
	_, _, rev := inEtcd(t, db)
	if _, err := old.write(t.Context(), a.Fence, true); !errors.Is(err, errDeposed) {
		t.Errorf("error %v, want %v", err, errDeposed)
	}
	if _, _, now := inEtcd(t, db); now != rev {
		t.Error("a deposed leader wrote")
	}
}

// TestFailover checks that the standby takes over when the leader is cut off, and that agents receive only what changed.
func TestFailover(t *testing.T) {
	e := newEtcd(t)
	db, _ := e.client()
	n := newNode(t, db, nil)
	want := services(150)
	a := newReplica(t, e, "a")
	a.report(t, want)
	a.awaitSettled(t)
	b := newReplica(t, e, "b")
	b.report(t, want)
	until(t, "the node has all", func() bool { return n.has(want) })
	target := strings.TrimPrefix(e.server.Endpoint(), "unix://")
	a.line.setTarget("")
	start := time.Now()
	want[serviceKey(3)] = service(3, 1)
	a.change(t, serviceKey(3), service(3, 1))
	b.change(t, serviceKey(3), service(3, 1))
	until(t, "the node hears of a change", func() bool { return n.has(want) })
	t.Logf("another replica wrote %s after the leader was cut off (lease of 2 s)", time.Since(start).Round(time.Millisecond))
	b.awaitSettled(t)
	count := a.counts()
	a.line.setTarget(target)
	until(t, "the old leader knows", func() bool { return !a.Leading() })
	until(t, "its connection is back", a.db.Connected)
	want[serviceKey(4)] = service(4, 1)
	b.change(t, serviceKey(4), service(4, 1))
	until(t, "the node hears of another", func() bool { return n.has(want) })
	b.awaitSettled(t)
	if a.counts() != count || b.counts() != [3]uint64{2, 0, 2} {
		t.Errorf("old leader: %v after %v; new leader: %v", a.counts(), count, b.counts())
	}
	if resyncs, changes := n.reported(); resyncs != 1 || len(changes) != 2 {
		t.Errorf("%d resyncs, changes %q", resyncs, changes)
	}
	b.stop() // it resigns: the other replica need not wait for the end of the lease
	want[serviceKey(5)] = nil
	delete(want, serviceKey(5))
	a.change(t, serviceKey(4), service(4, 1))
	a.change(t, serviceKey(5), nil)
	until(t, "the first one leads again", func() bool { return n.has(want) })
}

// TestStaleLeader checks that a leader that is cut off from the API server leaves the leadership to a replica that is not.
func TestStaleLeader(t *testing.T) {
	e := newEtcd(t)
	broken := make(chan struct{})
	a := newReplica(t, e, "a", func(d *Deps) {
		d.LeaseTTL = time.Second
		d.Fresh = func() error {
			select {
			case <-broken:
				return errors.New("connection refused")
			default:
				return nil
			}
		}
	})
	a.report(t, services(2))
	a.awaitSettled(t)
	b := newReplica(t, e, "b")
	b.report(t, services(3))
	close(broken)
	b.awaitSettled(t)
	if got, _, _ := inEtcd(t, b.db); len(got) != 3 || a.Leading() {
		t.Errorf("%d values; the stale one leads: %t", len(got), a.Leading())
	}
}

// TestStaleStandby checks that a replica that was cut off from the API server during standby does not replace a newer state
// with its old one when the leader stops.
func TestStaleStandby(t *testing.T) {
	e := newEtcd(t)
	db, _ := e.client()
	a := newReplica(t, e, "a")
	a.report(t, services(2))
	a.awaitSettled(t)
	broken, queried := make(chan struct{}), make(chan struct{}, 100)
	b := newReplica(t, e, "b", func(d *Deps) {
		d.Fresh = func() error {
			select {
			case <-broken:
				queried <- struct{}{}
				return errors.New("connection refused")
			default:
				return nil
			}
		}
	})
	b.report(t, services(2))
	until(t, "b stands by", func() bool {
		keys, _, err := db.Keys(t.Context(), electionPrefix, 0)
		return err == nil && len(keys) == 2
	})
	close(broken)
	a.change(t, serviceKey(0), service(0, 7))
	a.change(t, serviceKey(5), service(5, 0))
	a.awaitSettled(t)
	want, _, _ := inEtcd(t, db)
	a.stop()
	for range 3 { // it had its turn, and does not campaign from then on
		select {
		case <-queried:
		case <-time.After(20 * time.Second):
			t.Fatal("b does not look at the API server")
		}
	}
	if got, marked, _ := inEtcd(t, db); !maps.EqualFunc(got, want, proto.Equal) || !marked || len(got) != 3 {
		t.Errorf("etcd has %d values (complete: %t); the leader had left %d", len(got), marked, len(want))
	}
}

// TestWipe checks that agents remove no service when a user deletes the state, in part or completely, or when etcd loses its
// data.
func TestWipe(t *testing.T) {
	for name, how := range map[string]func(t *testing.T, e *etcd, db *clusterdb.DB){
		"the state": func(t *testing.T, _ *etcd, db *clusterdb.DB) { wipe(t, db, statePrefix) },
		"all keys":  func(t *testing.T, _ *etcd, db *clusterdb.DB) { wipe(t, db, "/") },
		"all data":  func(_ *testing.T, e *etcd, _ *clusterdb.DB) { e.loseData() },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEtcd(t)
			want := services(300)
			r := newReplica(t, e, "a")
			r.report(t, want)
			db, _ := e.client()
			n := newNode(t, db, nil)
			until(t, "the node has all", func() bool { return n.has(want) })
			r.awaitSettled(t)
			count := r.counts()
			how(t, e, db)
			until(t, "the relay has refilled etcd", func() bool { return r.counts()[0] > count[0]+uint64(len(want)) && r.settled() })
			until(t, "the node knows", func() bool { _, err := n.watch.Incomplete(); return err == nil && n.has(want) })
			r.change(t, serviceKey(7), nil)
			delete(want, serviceKey(7))
			until(t, "changes arrive", func() bool { return n.has(want) })
			if _, changes := n.reported(); len(changes) != 1 {
				t.Errorf("the event loop was told %q, want one deletion", changes)
			}
		})
	}
}

// TestWipeWithoutRelay checks that an agent keeps the last known state when nothing refills etcd, even across a restart of the
// agent.
func TestWipeWithoutRelay(t *testing.T) {
	e := newEtcd(t)
	want := services(10)
	r := newReplica(t, e, "a")
	r.report(t, want)
	r.awaitSettled(t)
	r.stop()
	local, err := clusterdb.OpenLocalCopy(filepath.Join(t.TempDir(), "state.db"), quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := local.Close(); err != nil {
			t.Error(err)
		}
	})
	db, _ := e.client()
	n := newNode(t, db, local)
	until(t, "the node has all", func() bool { return n.has(want) })
	wipe(t, db, clusterdb.KSRPrefix)
	until(t, "the node sees it", func() bool { _, err := n.watch.Incomplete(); return err != nil })
	n.watch.RequestResync()
	until(t, "a resync", func() bool { resyncs, _ := n.reported(); return resyncs == 2 })
	n.stop()
	again := newNode(t, db, local)
	until(t, "the restarted node has all", func() bool { return again.has(want) })
	for _, n := range []*node{n, again} {
		if _, changes := n.reported(); len(changes) != 0 || !n.has(want) {
			t.Errorf("the event loop was told %q", changes)
		}
	}
}
