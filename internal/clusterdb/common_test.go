package clusterdb

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
	"contiv.dev/vswitch/test/testbed/poll"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// testConf returns a configuration with shorter times than in production.
func testConf() Config {
	return Config{OperationTimeout: 5 * time.Second, ProbeInterval: 50 * time.Millisecond, ProbeTimeout: 500 * time.Millisecond}
}

// openEmbedded returns a DB on an embedded etcd in dir.
func openEmbedded(t *testing.T, dir string) *DB {
	t.Helper()
	conf := testConf()
	conf.Embedded.DataDir = dir
	return open(t, conf)
}

func open(t *testing.T, conf Config) *DB {
	t.Helper()
	db, err := Open(t.Context(), conf, quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return db
}

// server is an etcd which a test can stop and start again on the same address. Clients reach it through a proxy, because etcd
// lets open streams finish for seconds when it stops, and an etcd that dies does not.
type server struct {
	t     *testing.T
	conf  Config
	e     *Embedded
	proxy *proxy
	dir   string
}

func (s *server) address() string { return filepath.Join(s.dir, "proxy.sock") }

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir()}
	s.conf.Embedded.DataDir = t.TempDir()
	t.Cleanup(s.stop)
	return s
}

func (s *server) start() {
	s.t.Helper()
	e, err := StartEmbedded(s.t.Context(), s.conf, quiet())
	if err != nil {
		s.t.Fatal(err)
	}
	s.e = e
	s.proxy = newProxy(s.t, s.address(), strings.TrimPrefix(e.Endpoint(), "unix://"))
}

func (s *server) stop() {
	if s.e == nil {
		return
	}
	s.proxy.close()
	s.e.Close()
	s.e = nil
}

// wipe deletes the server's data; it starts with an empty database, on the same address.
func (s *server) wipe() {
	s.t.Helper()
	s.conf.Embedded.DataDir = s.t.TempDir()
}

// client returns a DB that uses the server, at its current address, as the operator's etcd.
func (s *server) client() *DB {
	conf := testConf()
	conf.Endpoints = []string{"unix://" + s.address()}
	return open(s.t, conf)
}

// sink collects events as text.
type sink struct {
	events chan string
	full   chan struct{} // one token for each push to reject
	closed bool
}

func newSink() *sink { return &sink{events: make(chan string, 1000), full: make(chan struct{}, 100)} }

func (s *sink) PushEvent(ev api.Event) error {
	if s.closed {
		return api.ErrClosed
	}
	select {
	case <-s.full:
		return api.ErrQueueFull
	default:
	}
	s.events <- describe(ev)
	return nil
}

func describe(ev api.Event) string {
	switch ev := ev.(type) {
	case *gatedResync:
		return ev.String()
	case *api.DBResync:
		var parts []string
		for i := range 100 {
			if v := ev.KubeState["allocatedIDs"][fmt.Sprintf("allocatedIDs/%d", i)]; v != nil {
				parts = append(parts, text(v))
			}
		}
		return fmt.Sprintf("resync local=%v [%s]", ev.Local, strings.Join(parts, " "))
	case *api.KubeStateChange:
		return fmt.Sprintf("%s %s: %s -> %s", ev.Resource, ev.Key, text(ev.PrevValue), text(ev.NewValue))
	}
	return ev.String()
}

func text(m proto.Message) string {
	if n, ok := m.(*vppnode.VppNode); ok && n != nil {
		return fmt.Sprintf("%d=%s", n.GetId(), n.GetName())
	}
	return "none"
}

func (s *sink) want(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-s.events:
		if got != want {
			t.Fatalf("event %q, want %q", got, want)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("no event, want %q", want)
	}
}

// wantNone waits for a short time and fails if an event arrives.
func (s *sink) wantNone(t *testing.T) {
	t.Helper()
	select {
	case got := <-s.events:
		t.Fatalf("event %q, want none", got)
	case <-time.After(300 * time.Millisecond):
	}
}

func nodeResource() []Resource {
	return []Resource{{
		Keyword: "allocatedIDs", KeyPrefix: "allocatedIDs/", New: func() proto.Message { return &vppnode.VppNode{} },
	}}
}

func node(id uint32, name string) *vppnode.VppNode { return &vppnode.VppNode{Id: id, Name: name} }

func put(t *testing.T, db *DB, id uint32, name string) {
	t.Helper()
	if err := db.NewBroker(KSRPrefix).Put(t.Context(), fmt.Sprintf("allocatedIDs/%d", id), node(id, name)); err != nil {
		t.Fatal(err)
	}
}

// watch runs a Watcher until the test (or the returned function) ends it.
func watch(t *testing.T, db *DB, local *LocalCopy, events EventSink) (*Watcher, func()) {
	t.Helper()
	w := NewWatcher(WatcherDeps{
		DB: db, Events: events, Resources: nodeResource(), Local: local, Log: quiet(), LocalDelay: 300 * time.Millisecond,
	})
	jobs := lifecycle.NewGroup(t.Context(), quiet())
	jobs.Go("watcher", w.Run)
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		if err := jobs.Stop(time.Minute); err != nil {
			t.Error(err)
		}
		select {
		case err := <-jobs.Failed():
			t.Errorf("watcher failed: %v", err)
		default:
		}
	}
	t.Cleanup(stop)
	return w, stop
}

func localCopy(t *testing.T, path string) *LocalCopy {
	t.Helper()
	l, err := OpenLocalCopy(path, quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func localPath(t *testing.T) string { return filepath.Join(t.TempDir(), "state.db") }

// until waits for a condition.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	poll.Await(t, what, 20*time.Second, cond)
}

// gatedSink also records the values of the resource "gated" in snapshots.
type gatedSink struct{ *sink }

func (s *gatedSink) PushEvent(ev api.Event) error {
	if resync, ok := ev.(*api.DBResync); ok {
		ev = &gatedResync{resync}
	}
	return s.sink.PushEvent(ev)
}

type gatedResync struct{ *api.DBResync }

func (ev *gatedResync) String() string {
	var parts []string
	for i := range 10 {
		if v := ev.KubeState["gated"][fmt.Sprintf("gated/%d", i)]; v != nil {
			parts = append(parts, text(v))
		}
	}
	return fmt.Sprintf("%s gated [%s]", describe(ev.DBResync), strings.Join(parts, " "))
}
