package relay

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/clusterdb/cas"
	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
	"contiv.dev/vswitch/test/testbed/poll"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// etcd is an etcd that clients reach through lines that a test can cut, and whose data a test can delete.
type etcd struct {
	t      testing.TB
	server *clusterdb.Embedded
	lines  []*line
}

func newEtcd(t testing.TB) *etcd {
	t.Helper()
	e := &etcd{t: t}
	e.start()
	t.Cleanup(func() {
		for _, l := range e.lines {
			l.close()
		}
		e.server.Close()
	})
	return e
}

func (e *etcd) start() {
	e.t.Helper()
	server, err := clusterdb.StartEmbedded(e.t.Context(), clusterdb.Config{
		Embedded: clusterdb.EmbeddedConfig{DataDir: e.t.TempDir()},
	}, quiet())
	if err != nil {
		e.t.Fatal(err)
	}
	e.server = server
	for _, l := range e.lines {
		l.setTarget(strings.TrimPrefix(server.Endpoint(), "unix://"))
	}
}

// loseData replaces etcd with an empty one.
func (e *etcd) loseData() {
	e.t.Helper()
	for _, l := range e.lines {
		l.setTarget("")
	}
	e.server.Close()
	e.start()
}

// client returns a client with its own line.
func (e *etcd) client() (*clusterdb.DB, *line) {
	e.t.Helper()
	l := newLine(e.t, strings.TrimPrefix(e.server.Endpoint(), "unix://"))
	e.lines = append(e.lines, l)
	db, err := clusterdb.Open(e.t.Context(), clusterdb.Config{
		Endpoints: []string{"unix://" + l.path}, OperationTimeout: 5 * time.Second, ProbeInterval: 50 * time.Millisecond,
		ProbeTimeout: 500 * time.Millisecond,
	}, quiet())
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() {
		if err := db.Close(); err != nil {
			e.t.Errorf("Close: %v", err)
		}
	})
	return db, l
}

// line forwards connections between two unix sockets; without a target it closes them.
type line struct {
	path     string
	listener net.Listener
	work     sync.WaitGroup

	mu     sync.Mutex
	target string
	conns  []net.Conn
}

func newLine(t testing.TB, target string) *line {
	t.Helper()
	l := &line{path: filepath.Join(t.TempDir(), "line.sock"), target: target}
	var err error
	if l.listener, err = net.Listen("unix", l.path); err != nil {
		t.Fatal(err)
	}
	l.work.Go(l.accept)
	return l
}

func (l *line) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.mu.Lock()
		server, err := net.Dial("unix", l.target)
		if err == nil {
			l.conns = append(l.conns, client, server)
			l.work.Go(func() { pass(client, server) })
			l.work.Go(func() { pass(server, client) })
		} else {
			_ = client.Close()
		}
		l.mu.Unlock()
	}
}

func pass(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	_, _ = from.Close(), to.Close()
}

// setTarget closes all connections; new ones go to target, or are closed if it is empty.
func (l *line) setTarget(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target = target
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

func (l *line) close() {
	_ = l.listener.Close()
	l.setTarget("")
	l.work.Wait()
}

// replica is a running Relay.
type replica struct {
	*Relay
	db   *clusterdb.DB
	line *line
	jobs *lifecycle.Group
	stop func()
}

func newReplica(t testing.TB, e *etcd, name string, change ...func(*Deps)) *replica {
	t.Helper()
	r := &replica{}
	r.db, r.line = e.client()
	deps := Deps{DB: r.db, Log: quiet(), Name: name, LeaseTTL: 2 * time.Second}
	for _, c := range change {
		c(&deps)
	}
	var err error
	if r.Relay, err = New(deps); err != nil {
		t.Fatal(err)
	}
	r.jobs = lifecycle.NewGroup(t.Context(), quiet())
	r.jobs.Go("relay", r.Run)
	r.stop = sync.OnceFunc(func() {
		if err := r.jobs.Stop(time.Minute); err != nil {
			t.Error(err)
		}
		select {
		case err := <-r.jobs.Failed():
			t.Errorf("%s failed: %v", name, err)
		default:
		}
	})
	t.Cleanup(r.stop)
	return r
}

// report delivers a snapshot to the replica.
func (r *replica) report(t testing.TB, state map[string]proto.Message) {
	t.Helper()
	ev := api.NewDBResync()
	for _, keyword := range model.Keywords() {
		ev.KubeState[keyword] = api.KeyValuePairs{}
	}
	for key, value := range state {
		ev.KubeState[model.KeywordOf(key)][key] = value
	}
	if err := r.PushEvent(ev); err != nil {
		t.Fatal(err)
	}
}

// change delivers a change to the replica; nil: deleted.
func (r *replica) change(t testing.TB, key string, value proto.Message) {
	t.Helper()
	ev := &api.KubeStateChange{Resource: model.KeywordOf(key), Key: key}
	if value != nil {
		ev.NewValue = value
	}
	if err := r.PushEvent(ev); err != nil {
		t.Fatal(err)
	}
}

// awaitSettled waits until the replica is the leader and has nothing left to write.
func (r *replica) awaitSettled(t testing.TB) {
	t.Helper()
	until(t, "all is written", r.settled)
}

func (r *replica) settled() bool {
	r.table.mu.Lock()
	defer r.table.mu.Unlock()
	return r.Leading() && r.table.have != nil && len(r.table.dirty) == 0 && r.table.marker
}

// counts returns the numbers of puts, deletes and transactions so far.
func (r *replica) counts() [3]uint64 {
	return [3]uint64{r.stats.puts.Load(), r.stats.deletes.Load(), r.stats.txns.Load()}
}

// node is the part of an agent that uses the relay: a watcher and the input of the event loop.
type node struct {
	t     testing.TB
	watch *clusterdb.Watcher
	stop  func()

	mu      sync.Mutex
	state   map[string]proto.Message
	resyncs int
	changes []string
	news    chan struct{}
}

func newNode(t testing.TB, db *clusterdb.DB, local *clusterdb.LocalCopy) *node {
	t.Helper()
	n := &node{t: t, news: make(chan struct{}, 1)}
	n.watch = clusterdb.NewWatcher(clusterdb.WatcherDeps{
		DB: db, Events: n, Local: local, Log: quiet(), LocalDelay: 300 * time.Millisecond, SaveDelay: 100 * time.Millisecond,
		Resources: append(Resources(), clusterdb.Resource{
			Keyword: "allocatedIDs", KeyPrefix: "allocatedIDs/", New: func() proto.Message { return &vppnode.VppNode{} },
		}),
	})
	jobs := lifecycle.NewGroup(t.Context(), quiet())
	jobs.Go("watcher", n.watch.Run)
	n.stop = sync.OnceFunc(func() {
		if err := jobs.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(n.stop)
	return n
}

// PushEvent receives the events, in place of the event loop.
func (n *node) PushEvent(ev api.Event) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch ev := ev.(type) {
	case *api.DBResync:
		n.state = map[string]proto.Message{}
		for _, kvs := range ev.KubeState {
			maps.Copy(n.state, kvs)
		}
		n.resyncs++
	case *api.KubeStateChange:
		n.changes = append(n.changes, fmt.Sprintf("%s %t->%t", ev.Key, ev.PrevValue != nil, ev.NewValue != nil))
		if ev.NewValue == nil {
			delete(n.state, ev.Key)
		} else {
			n.state[ev.Key] = ev.NewValue
		}
	}
	select {
	case n.news <- struct{}{}:
	default:
	}
	return nil
}

// has reports whether the event loop has received exactly this state.
func (n *node) has(want map[string]proto.Message) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state != nil && maps.EqualFunc(n.state, want, proto.Equal)
}

// value returns the last value of a key that the event loop has received.
func (n *node) value(key string) proto.Message {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state[key]
}

// reported returns the number of resyncs, and the changes.
func (n *node) reported() (resyncs int, changes []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.resyncs, slices.Clone(n.changes)
}

// until waits for a condition.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	poll.Await(t, what, 20*time.Second, cond)
}

// inEtcd returns the decoded state in etcd, whether it is marked as complete, and the revision.
func inEtcd(t testing.TB, db *clusterdb.DB) (state map[string]proto.Message, marked bool, rev int64) {
	t.Helper()
	values, rev, err := db.List(t.Context(), statePrefix)
	if err != nil {
		t.Fatal(err)
	}
	resources := Resources()
	state = map[string]proto.Message{}
	for _, v := range values {
		key := strings.TrimPrefix(v.Key, clusterdb.KSRPrefix)
		if key == MarkerKey {
			marked = true
			continue
		}
		for _, r := range resources {
			if strings.HasPrefix(key, r.KeyPrefix) {
				if state[key], err = r.Decode(v.Value); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return state, marked, rev
}

// write writes to etcd without the relay; a nil value deletes.
func write(t testing.TB, db *clusterdb.DB, key string, value []byte) {
	t.Helper()
	_, _, err := db.CommitFirst(context.WithoutCancel(t.Context()), cas.Change{
		Do: []cas.Write{{Key: clusterdb.KSRPrefix + key, Value: value}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// wipe deletes everything below a prefix, in as few transactions as etcd accepts.
func wipe(t testing.TB, db *clusterdb.DB, prefix string) {
	t.Helper()
	keys, _, err := db.Keys(t.Context(), prefix, 0)
	if err != nil {
		t.Fatal(err)
	}
	for batch := range slices.Chunk(keys, cas.MaxOps) {
		var c cas.Change
		for _, k := range batch {
			c.Do = append(c.Do, cas.Write{Key: k.Key})
		}
		if _, _, err := db.CommitFirst(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
}

func serviceKey(i int) string {
	return model.Key(model.ServiceKeyword, "default", fmt.Sprintf("s%d", i))
}

// service returns a version of the i-th service.
func service(i, version int) proto.Message {
	return &model.Service{Name: fmt.Sprintf("s%d", i), Namespace: "default", HealthCheckNodePort: uint32(version)}
}

// services returns n services.
func services(n int) map[string]proto.Message {
	out := map[string]proto.Message{}
	for i := range n {
		out[serviceKey(i)] = service(i, 0)
	}
	return out
}
