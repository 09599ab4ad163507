package clusterdb

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

const (
	gateKey  = "gated/.complete"
	gatedKey = "gated/1"
)

// gatedResources returns two resources of nodes: one is always complete, the other has a Complete key that another program
// writes.
func gatedResources() []Resource {
	return append(nodeResource(), Resource{
		Keyword: "gated", KeyPrefix: "gated/", Complete: gateKey, New: func() proto.Message { return &vppnode.VppNode{} },
	})
}

// watchGated runs a Watcher with gatedResources.
func watchGated(t *testing.T, db *DB, local *LocalCopy, saveDelay time.Duration) (*Watcher, *gatedSink, func()) {
	t.Helper()
	events := &gatedSink{newSink()}
	w := NewWatcher(WatcherDeps{
		DB: db, Events: events, Resources: gatedResources(), Local: local, Log: quiet(), LocalDelay: 300 * time.Millisecond,
		SaveDelay: saveDelay,
	})
	jobs := lifecycle.NewGroup(t.Context(), quiet())
	jobs.Go("watcher", w.Run)
	stop := func() {
		if err := jobs.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return w, events, stop
}

func putRaw(t *testing.T, db *DB, key, value string) {
	t.Helper()
	if _, err := db.client.Put(t.Context(), KSRPrefix+key, value); err != nil {
		t.Fatal(err)
	}
}

func deleteAll(t *testing.T, db *DB, prefix string) {
	t.Helper()
	if _, err := db.client.Delete(t.Context(), KSRPrefix+prefix, clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
}

// TestIncompleteAtFirst checks that nothing is pushed before the state is complete for the first time.
func TestIncompleteAtFirst(t *testing.T) {
	db := openEmbedded(t, t.TempDir())
	put(t, db, 1, "a")
	putRaw(t, db, gatedKey, `{"id":1,"name":"x"}`)
	w, events, _ := watchGated(t, db, localCopy(t, localPath(t)), 0)
	until(t, "waiting", func() bool { waiting, err := w.Incomplete(); return waiting && err != nil })
	put(t, db, 2, "b")
	events.wantNone(t)
	putRaw(t, db, gateKey, "{}")
	events.want(t, "resync local=false [1=a 2=b] gated [1=x]")
	if _, err := w.Incomplete(); err != nil {
		t.Error(err)
	}
	putRaw(t, db, gatedKey, `{"id":1,"name":"y"}`)
	events.want(t, "gated gated/1: 1=x -> 1=y")
	putRaw(t, db, gateKey, `{"again":1}`)
	events.wantNone(t)
}

// TestStateDeleted checks that values that are deleted together with their Complete key, or while it is missing, stay in force
// until the state is complete again; values of a resource that is always complete are removed.
func TestStateDeleted(t *testing.T) {
	for name, wipe := range map[string]func(t *testing.T, db *DB){
		"in one transaction": func(t *testing.T, db *DB) { deleteAll(t, db, "") },
		"the key first": func(t *testing.T, db *DB) {
			deleteAll(t, db, gateKey)
			deleteAll(t, db, gatedKey)
			deleteAll(t, db, "allocatedIDs/")
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := openEmbedded(t, t.TempDir())
			put(t, db, 1, "a")
			putRaw(t, db, gatedKey, `{"id":1,"name":"x"}`)
			putRaw(t, db, gateKey, "{}")
			local := localCopy(t, localPath(t))
			w, events, stop := watchGated(t, db, local, 0)
			events.want(t, "resync local=false [1=a] gated [1=x]")
			wipe(t, db)
			events.want(t, "allocatedIDs allocatedIDs/1: 1=a -> none")
			until(t, "gap", func() bool { waiting, err := w.Incomplete(); return !waiting && err != nil })
			w.RequestResync()
			events.want(t, "resync local=false [] gated [1=x]")

			stop() // restarts the agent
			w, events, _ = watchGated(t, db, local, 0)
			events.want(t, "resync local=false [] gated [1=x]")
			if waiting, err := w.Incomplete(); waiting || err == nil {
				t.Errorf("Incomplete() = %t, %v", waiting, err)
			}
			putRaw(t, db, "gated/2", `{"id":2,"name":"y"}`)
			events.wantNone(t)
			putRaw(t, db, gateKey, "{}")
			events.want(t, "resync local=false [] gated [2=y]")
		})
	}
}

// TestDataLostUnderGate checks the case that etcd is empty after a restart while the agent runs, and is filled again.
func TestDataLostUnderGate(t *testing.T) {
	s := newServer(t)
	s.start()
	db := s.client()
	putRaw(t, db, gatedKey, `{"id":1,"name":"x"}`)
	putRaw(t, db, gateKey, "{}")
	_, events, _ := watchGated(t, db, nil, 0) // without a local copy, the values in memory are kept
	events.want(t, "resync local=false [] gated [1=x]")
	s.stop()
	s.wipe()
	s.start()
	events.want(t, "resync local=false [] gated [1=x]")
	putRaw(t, db, gatedKey, `{"id":1,"name":"z"}`)
	putRaw(t, db, gateKey, "{}")
	events.want(t, "resync local=false [] gated [1=z]")
}

// TestLocalCopyWithoutGate checks that the agent does not start from a local copy that was written before the relay existed.
func TestLocalCopyWithoutGate(t *testing.T) {
	s := newServer(t)
	local := localCopy(t, localPath(t))
	if err := local.Replace(map[string][]byte{"allocatedIDs/1": []byte(`{"id":1,"name":"a"}`)}); err != nil {
		t.Fatal(err)
	}
	w, events, _ := watchGated(t, s.client(), local, 0)
	until(t, "waiting", func() bool { waiting, err := w.Incomplete(); return waiting && err != nil })
	events.wantNone(t)
}

// TestSaveDelay checks that changes of gated resources reach the local copy after a delay, with other changes, or at the end.
func TestSaveDelay(t *testing.T) {
	db := openEmbedded(t, t.TempDir())
	putRaw(t, db, gateKey, "{}")
	local := localCopy(t, localPath(t))
	saved := func(key string) bool {
		values, err := local.Load()
		return err == nil && values[key] != nil
	}
	_, events, stop := watchGated(t, db, local, time.Second)
	events.want(t, "resync local=false [] gated []")
	putRaw(t, db, gatedKey, `{"id":1,"name":"x"}`)
	events.want(t, "gated gated/1: none -> 1=x")
	if saved(gatedKey) {
		t.Error("saved at once")
	}
	until(t, "late save", func() bool { return saved(gatedKey) })
	putRaw(t, db, "gated/2", `{"id":2,"name":"y"}`)
	put(t, db, 1, "a")
	until(t, "early save", func() bool { return saved("allocatedIDs/1") })
	if !saved("gated/2") {
		t.Error("what waited was not saved with what came later")
	}
	putRaw(t, db, "gated/3", `{"id":3,"name":"z"}`)
	until(t, "event", func() bool { return len(events.events) == 3 })
	stop()
	if !saved("gated/3") {
		t.Error("what waited was not saved at the end")
	}
}

// TestQueueFullOfGated checks that changes of gated resources wait for room in the queue.
func TestQueueFullOfGated(t *testing.T) {
	db := openEmbedded(t, t.TempDir())
	putRaw(t, db, gateKey, "{}")
	_, events, _ := watchGated(t, db, nil, 0)
	events.want(t, "resync local=false [] gated []")
	for range 3 {
		events.full <- struct{}{}
	}
	putRaw(t, db, gatedKey, `{"id":1,"name":"x"}`)
	putRaw(t, db, "gated/2", `{"id":2,"name":"y"}`)
	events.want(t, "gated gated/1: none -> 1=x")
	events.want(t, "gated gated/2: none -> 2=y")
	events.wantNone(t)
}

// TestIgnore checks that ignored keys are in neither the events nor the local copy.
func TestIgnore(t *testing.T) {
	db := openEmbedded(t, t.TempDir())
	putRaw(t, db, gatedKey, "x")
	events, local := newSink(), localCopy(t, localPath(t))
	w := NewWatcher(WatcherDeps{
		DB: db, Events: events, Resources: nodeResource(), Ignore: "gated/", Local: local, Log: quiet(),
	})
	jobs := lifecycle.NewGroup(t.Context(), quiet())
	jobs.Go("watcher", w.Run)
	defer func() {
		if err := jobs.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	}()
	events.want(t, "resync local=false []")
	putRaw(t, db, "gated/2", "x")
	put(t, db, 1, "a")
	events.want(t, "allocatedIDs allocatedIDs/1: none -> 1=a")
	until(t, "the local copy", func() bool {
		values, err := local.Load()
		return err == nil && len(values) == 1 && values["allocatedIDs/1"] != nil
	})
}

func TestReplaceBut(t *testing.T) {
	local := localCopy(t, localPath(t))
	if err := local.Replace(map[string][]byte{"a": []byte("1"), "b": []byte("2"), "k": []byte("3")}); err != nil {
		t.Fatal(err)
	}
	writes := func() int64 {
		stats := local.db.Stats()
		return stats.TxStats.GetWrite()
	}
	before := writes()
	keep := func(key string) bool { return key == "k" || key == "new" }
	same := map[string][]byte{"a": []byte("1"), "b": []byte("2"), "new": nil}
	if err := local.ReplaceBut(same, keep); err != nil {
		t.Fatal(err)
	}
	if n := writes() - before; n != 0 {
		t.Errorf("%d writes although nothing differs", n)
	}
	if err := local.ReplaceBut(map[string][]byte{"a": []byte("4"), "c": nil}, keep); err != nil {
		t.Fatal(err)
	}
	values, err := local.Load()
	if err != nil || len(values) != 3 || string(values["a"]) != "4" || string(values["k"]) != "3" {
		t.Errorf("%q, %v", values, err)
	}
	if _, there := values["c"]; !there {
		t.Error("an empty value is gone")
	}
}
