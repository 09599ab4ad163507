package clusterdb

import (
	"crypto/sha256"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestWatch(t *testing.T) {
	db := openEmbedded(t, t.TempDir())
	put(t, db, 1, "a")
	events := newSink()
	local := localCopy(t, localPath(t))
	w, _ := watch(t, db, local, events)
	events.want(t, "resync local=false [1=a]")
	put(t, db, 2, "b")
	events.want(t, "allocatedIDs allocatedIDs/2: none -> 2=b")
	put(t, db, 2, "c")
	events.want(t, "allocatedIDs allocatedIDs/2: 2=b -> 2=c")
	put(t, db, 2, "c") // an equal value
	b := db.NewBroker(KSRPrefix)
	if err := b.Put(t.Context(), "something/else", node(9, "x")); err != nil { // the key belongs to no resource
		t.Fatal(err)
	}
	if _, err := b.Delete(t.Context(), "allocatedIDs/1"); err != nil {
		t.Fatal(err)
	}
	events.want(t, "allocatedIDs allocatedIDs/1: 1=a -> none")
	// a value that cannot be read counts as absent
	if _, err := db.client.Put(t.Context(), KSRPrefix+"allocatedIDs/2", "garbage"); err != nil {
		t.Fatal(err)
	}
	events.want(t, "allocatedIDs allocatedIDs/2: 2=c -> none")
	put(t, db, 3, "d")
	events.want(t, "allocatedIDs allocatedIDs/3: none -> 3=d")
	w.RequestResync()
	events.want(t, "resync local=false [3=d]")
	events.wantNone(t)

	values, err := local.Load()
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, k := range []string{"allocatedIDs/1", "allocatedIDs/2", "allocatedIDs/3", "something/else"} {
		if values[k] != nil {
			keys = append(keys, k)
		}
	}
	if want := []string{"allocatedIDs/2", "allocatedIDs/3", "something/else"}; !reflect.DeepEqual(keys, want) || len(values) != 3 {
		t.Errorf("local copy has %v, want %v", keys, want)
	}
}

// TestReconnect checks that there is one resync after an outage of the server, of any length, and no event during it.
func TestReconnect(t *testing.T) {
	s := newServer(t)
	s.start()
	db := s.client()
	events := newSink()
	watch(t, db, nil, events)
	events.want(t, "resync local=false []")
	put(t, db, 1, "a")
	events.want(t, "allocatedIDs allocatedIDs/1: none -> 1=a")
	for range 2 {
		s.stop()
		until(t, "loss", func() bool { return !db.Connected() })
		events.wantNone(t)
		s.start()
		events.want(t, "resync local=false [1=a]")
		events.wantNone(t)
	}
	put(t, db, 2, "b")
	events.want(t, "allocatedIDs allocatedIDs/2: none -> 2=b")
}

// TestLateAnswer checks that an etcd that answers late causes no resync, and that changes of that time arrive. If the connection is lost while
// etcd is late, there is a resync.
func TestLateAnswer(t *testing.T) {
	s := newServer(t)
	s.start()
	db := s.client()
	conf := testConf()
	conf.Endpoints = []string{s.e.Endpoint()}
	other := open(t, conf) // not through the proxy
	events := newSink()
	watch(t, db, nil, events)
	events.want(t, "resync local=false []")
	for i := range uint32(2) {
		s.proxy.hold.Lock()
		until(t, "late", func() bool { return !db.Connected() })
		put(t, other, i+1, "a")
		events.wantNone(t)
		s.proxy.hold.Unlock()
		events.want(t, fmt.Sprintf("allocatedIDs allocatedIDs/%d: none -> %d=a", i+1, i+1))
		until(t, "connection", db.Connected)
		events.wantNone(t)
	}
	s.proxy.hold.Lock()
	until(t, "late", func() bool { return !db.Connected() })
	s.proxy.hold.Unlock()
	s.stop()
	losses := func() uint64 { n, _, _ := db.state(); return n }
	until(t, "loss", func() bool { return losses() > 0 })
	s.start()
	events.want(t, "resync local=false [1=a 2=a]")
	events.wantNone(t)
}

// TestDataLost checks that an empty database after a restart is detected. A watch that continued from its revision would
// receive nothing for a long time.
func TestDataLost(t *testing.T) {
	s := newServer(t)
	s.start()
	db := s.client()
	events := newSink()
	watch(t, db, nil, events)
	events.want(t, "resync local=false []")
	for i := range uint32(5) {
		put(t, db, i+1, "a")
		events.want(t, fmt.Sprintf("allocatedIDs allocatedIDs/%d: none -> %d=a", i+1, i+1))
	}
	until(t, "connection", db.Connected)
	s.stop()
	s.wipe()
	s.start()
	events.want(t, "resync local=false []")
	put(t, db, 1, "b")
	events.want(t, "allocatedIDs allocatedIDs/1: none -> 1=b")
}

// TestCompaction checks the case that the revision from which the watch continues has been compacted.
func TestCompaction(t *testing.T) {
	db := openEmbedded(t, t.TempDir())
	put(t, db, 1, "a")
	put(t, db, 1, "b")
	resp, err := db.client.Get(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.client.Compact(t.Context(), resp.Header.Revision); err != nil {
		t.Fatal(err)
	}
	w := NewWatcher(WatcherDeps{DB: db, Events: newSink(), Resources: nodeResource(), Log: quiet()})
	if err := w.watch(t.Context(), 1, 0); err == nil {
		t.Error("watching from a compacted revision works")
	}
}

// TestQueueFull checks that changes that find no room in the queue lead to a resync.
func TestQueueFull(t *testing.T) {
	db := openEmbedded(t, t.TempDir())
	events := newSink()
	events.full <- struct{}{} // the resync itself is retried
	watch(t, db, nil, events)
	events.want(t, "resync local=false []")
	events.full <- struct{}{}
	put(t, db, 1, "a")
	events.want(t, "resync local=false [1=a]")
	put(t, db, 2, "b")
	events.want(t, "allocatedIDs allocatedIDs/2: none -> 2=b")
}

func TestClosedLoopEndsTheWatcher(t *testing.T) {
	db := openEmbedded(t, t.TempDir())
	w := NewWatcher(WatcherDeps{DB: db, Events: &sink{closed: true}, Resources: nodeResource(), Log: quiet()})
	if err := w.Run(t.Context()); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// TestStartWithoutServer checks that the watcher starts from the local copy, once; then it uses the server.
func TestStartWithoutServer(t *testing.T) {
	path := localPath(t)
	s := newServer(t)
	s.start()
	db := s.client()
	events := newSink()
	local := localCopy(t, path)
	_, stop := watch(t, db, local, events)
	events.want(t, "resync local=false []")
	put(t, db, 4, "me")
	events.want(t, "allocatedIDs allocatedIDs/4: none -> 4=me")
	stop()
	s.stop()

	db = s.client() // the agent's restart
	watch(t, db, local, events)
	events.want(t, "resync local=true [4=me]")
	events.wantNone(t)
	s.start()
	events.want(t, "resync local=false [4=me]")
	put(t, db, 5, "x")
	events.want(t, "allocatedIDs allocatedIDs/5: none -> 5=x")
}

func TestStartWithoutAnything(t *testing.T) {
	s := newServer(t)
	events := newSink()
	db := s.client()
	watch(t, db, localCopy(t, localPath(t)), events)
	events.wantNone(t)
	time.Sleep(200 * time.Millisecond)
	events.wantNone(t)
	s.start()
	events.want(t, "resync local=false []")
}

func TestLargeSnapshot(t *testing.T) {
	db := openEmbedded(t, t.TempDir())
	for i := 0; i < 2500; i += 100 {
		var ops []clientv3.Op
		for j := range 100 {
			ops = append(ops, clientv3.OpPut(fmt.Sprintf("%sallocatedIDs/%d", KSRPrefix, 1000+i+j), `{"id":1}`))
		}
		if _, err := db.client.Txn(t.Context()).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	if _, err := db.list(t.Context(), KSRPrefix, func(keyValue) { n++ }); err != nil || n != 2500 {
		t.Errorf("%d values, %v", n, err)
	}
}

func TestLocalCopySurvivesDamage(t *testing.T) {
	values := map[string][]byte{}
	for i := range 2000 {
		values[fmt.Sprintf("k%d", i)] = []byte(`{"some":"value of some length to fill pages"}`)
	}
	for name, damage := range map[string]func(data []byte) []byte{
		"garbage":   func([]byte) []byte { return []byte("this is not a database") },
		"empty":     func([]byte) []byte { return nil },
		"truncated": func(d []byte) []byte { return d[:len(d)/2] },
		"holes": func(d []byte) []byte {
			for i := 3 * os.Getpagesize(); i < len(d); i++ {
				d[i] = 0xa5
			}
			return d
		},
		"none": func(d []byte) []byte { return d },
	} {
		t.Run(name, func(t *testing.T) {
			path := localPath(t)
			l, err := OpenLocalCopy(path, quiet())
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Replace(values); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damage(data), 0o600); err != nil {
				t.Fatal(err)
			}
			l = localCopy(t, path)
			got, err := l.Load()
			if err != nil || (len(got) == 0) != (name != "none") {
				t.Errorf("%d values, %v", len(got), err)
			}
			if err := l.Apply(map[string][]byte{"a": []byte("1"), "k1": nil}); err != nil {
				t.Error(err)
			}
			if err := l.Apply(nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLargeLocalCopy checks that the cost per value in the first write of a copy, which has all values, does not grow with
// their number.
func TestLargeLocalCopy(t *testing.T) {
	each := func(n int) time.Duration {
		l := localCopy(t, localPath(t))
		values := make(map[string][]byte, n)
		for i := range n {
			values[fmt.Sprintf("service/%x", sha256.Sum256([]byte(strconv.Itoa(i))))] = []byte("value")
		}
		start := time.Now()
		if err := l.Apply(values); err != nil {
			t.Fatal(err)
		}
		return time.Since(start) / time.Duration(n)
	}
	few, many := each(5_000), each(160_000)
	t.Logf("a value among 5,000: %s; among 160,000: %s", few, many)
	if many > 3*few+time.Microsecond {
		t.Errorf("a value takes %s among 160,000, and %s among 5,000", many, few)
	}
}

func TestLocalCopyInUse(t *testing.T) {
	path := localPath(t)
	localCopy(t, path)
	if _, err := OpenLocalCopy(path, quiet()); err == nil {
		t.Error("a file in use was opened")
	}
}
