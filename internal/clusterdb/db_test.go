package clusterdb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

func TestEmbeddedKeepsData(t *testing.T) {
	dir := t.TempDir()
	db := openEmbedded(t, dir)
	put(t, db, 1, "a")
	if n := len(db.embedded.server.Peers); n != 0 {
		t.Errorf("%d listeners for peers", n)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openEmbedded(t, dir)
	var got vppnode.VppNode
	if found, _, err := db.NewBroker(KSRPrefix).GetValue(t.Context(), "allocatedIDs/1", &got); err != nil || !found || got.GetName() != "a" {
		t.Errorf("found %v, %v, %v", found, err, &got)
	}
}

func TestEmbeddedDirectoryIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	openEmbedded(t, dir)
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v, want 0700: the socket in it has no authentication", info.Mode(), err)
	}
}

func TestEmbeddedOnLoopback(t *testing.T) {
	conf := testConf()
	conf.Embedded = EmbeddedConfig{DataDir: t.TempDir(), Listen: "127.0.0.1:0"}
	db := open(t, conf)
	put(t, db, 1, "a")
	host, port, err := net.SplitHostPort(db.embedded.Endpoint())
	if err != nil || host != "127.0.0.1" || port == "0" {
		t.Errorf("endpoint %s", db.embedded.Endpoint())
	}
}

func TestEmbeddedDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	openEmbedded(t, dir)
	conf := testConf()
	conf.Embedded.DataDir = dir
	if _, err := Open(t.Context(), conf, quiet()); err == nil || !strings.Contains(err.Error(), "--data-dir: "+dir+" is in use by another agent") {
		t.Errorf("error %v", err)
	}
}

func TestPutIfNotExists(t *testing.T) {
	db := openEmbedded(t, t.TempDir())
	var wins atomic.Int32
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			ok, err := db.PutIfNotExists("/k", fmt.Appendf(nil, "%d", i))
			if err != nil {
				t.Error(err)
			}
			if ok {
				wins.Add(1)
			}
		})
	}
	wg.Wait()
	if wins.Load() != 1 {
		t.Errorf("%d of 20 concurrent puts succeeded, want 1", wins.Load())
	}
}

func TestPutIfRevision(t *testing.T) {
	db := openEmbedded(t, t.TempDir())
	b := db.NewBroker("/x/")
	if err := b.Put(t.Context(), "k", node(1, "a")); err != nil {
		t.Fatal(err)
	}
	var n vppnode.VppNode
	_, rev, err := b.GetValue(t.Context(), "k", &n)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := db.PutIfRevision(t.Context(), "/x/k", rev, []byte(`{"name":"b"}`)); !ok || err != nil {
		t.Errorf("unchanged: %v, %v", ok, err)
	}
	if ok, err := db.PutIfRevision(t.Context(), "/x/k", rev, []byte(`{"name":"c"}`)); ok || err != nil {
		t.Errorf("changed: %v, %v", ok, err)
	}
}

func TestBroker(t *testing.T) {
	db := openEmbedded(t, t.TempDir())
	b := db.NewBroker("/p/")
	const count = pageSize + 17
	for i := range count {
		if _, err := db.PutIfNotExists(fmt.Sprintf("/p/list/%05d", i), []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Put(t.Context(), "other", node(1, "a")); err != nil {
		t.Fatal(err)
	}
	keys, err := b.ListKeys(t.Context(), "list/")
	if err != nil || len(keys) != count || keys[0] != "list/00000" || keys[count-1] != fmt.Sprintf("list/%05d", count-1) {
		t.Errorf("%d keys, %v", len(keys), err)
	}
	var n vppnode.VppNode
	if found, _, err := b.GetValue(t.Context(), "absent", &n); found || err != nil {
		t.Errorf("absent: %v, %v", found, err)
	}
	if existed, err := b.Delete(t.Context(), "other"); !existed || err != nil {
		t.Errorf("Delete: %v, %v", existed, err)
	}
	if existed, err := b.Delete(t.Context(), "other"); existed || err != nil {
		t.Errorf("Delete again: %v, %v", existed, err)
	}
	if _, err := db.PutIfNotExists("/p/bad", []byte("no json")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.GetValue(t.Context(), "bad", &n); err == nil || !strings.Contains(err.Error(), "/p/bad") {
		t.Errorf("bad value: %v", err)
	}
	if _, err := db.PutIfNotExists("/p/new", []byte(`{"id":7,"field_of_the_future":1}`)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.GetValue(t.Context(), "new", &n); err != nil || n.GetId() != 7 {
		t.Errorf("value of a later version: %v, %v", &n, err)
	}
}

func TestOnConnect(t *testing.T) {
	s := newServer(t)
	db := s.client()
	early := make(chan struct{})
	db.OnConnect(func() error { close(early); return errors.New("is only logged") })
	if db.Connected() {
		t.Error("connected to a server that does not run")
	}
	s.start()
	select {
	case <-early:
	case <-time.After(20 * time.Second):
		t.Fatal("the callback was not called")
	}
	called := false
	db.OnConnect(func() error { called = true; return nil })
	if !called || !db.Connected() {
		t.Errorf("called %v, connected %v", called, db.Connected())
	}
}

// TestCallsAreBounded checks that without a server every call ends.
func TestCallsAreBounded(t *testing.T) {
	conf := testConf()
	conf.OperationTimeout = 200 * time.Millisecond
	conf.Endpoints = []string{"unix://" + filepath.Join(t.TempDir(), "nobody")}
	db := open(t, conf)
	b := db.NewBroker("/")
	begin := time.Now()
	_, err1 := db.PutIfNotExists("/k", nil)
	_, err2 := db.PutIfRevision(t.Context(), "/k", 1, nil)
	err3 := b.Put(t.Context(), "k", node(1, "a"))
	_, _, err4 := b.GetValue(t.Context(), "k", node(1, "a"))
	_, err5 := b.Delete(t.Context(), "k")
	_, err6 := b.ListKeys(t.Context(), "k")
	for i, err := range []error{err1, err2, err3, err4, err5, err6} {
		if err == nil || !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "/k") {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("six calls took %s", d)
	}
}

func TestLossIsSurvived(t *testing.T) {
	s := newServer(t)
	s.start()
	db := s.client()
	until(t, "connection", db.Connected)
	s.stop()
	until(t, "loss", func() bool { return !db.Connected() })
	s.start()
	until(t, "reconnection", db.Connected)
	put(t, db, 1, "a")
}

// BenchmarkPutIfNotExists measures the cost of claiming a node ID, fsync included.
func BenchmarkPutIfNotExists(b *testing.B) {
	conf := testConf()
	conf.Embedded.DataDir = b.TempDir()
	db, err := Open(b.Context(), conf, quiet())
	if err != nil {
		b.Fatal(err)
	}
	i := 0
	for b.Loop() {
		i++
		if ok, err := db.PutIfNotExists(fmt.Sprintf("/k%d", i), []byte("{}")); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkStart measures a restart of the embedded etcd until the first answer.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		conf := testConf()
		conf.Embedded.DataDir = dir
		db, err := Open(b.Context(), conf, quiet())
		if err != nil {
			b.Fatal(err)
		}
		if _, err := db.NewBroker("/").Delete(b.Context(), "k"); err != nil {
			b.Fatal(err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
