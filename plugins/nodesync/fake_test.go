package nodesync

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/clusterdb/castest"
	"contiv.dev/vswitch/internal/keyval"
	"contiv.dev/vswitch/internal/servicelabel"
	controller "contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

// fakeDB is a database shared by the nodes of a test.
type fakeDB struct{ *castest.Memory }

func newFakeDB() *fakeDB { return &fakeDB{castest.NewMemory()} }

// client is one node's connection; it is connected from the start unless away is set.
type client struct {
	*fakeDB
	away, shared bool
}

func (c *client) OnConnect(callback func() error) {
	if !c.away {
		_ = callback()
	}
}

func (c *client) NewBroker(prefix string) keyval.ProtoBroker { return &broker{c.fakeDB, prefix} }

func (c *client) PutIfNotExists(key string, value []byte) (bool, error) {
	return false, errors.New("nodesync must use transactions if there are any")
}

func (c *client) Close() error { return nil }

func (c *client) Private() bool { return !c.shared }

func (db *fakeDB) put(t *testing.T, record *vppnode.VppNode) {
	t.Helper()
	value, err := encode(record)
	if err != nil {
		t.Fatal(err)
	}
	db.Put(fullKey(record.GetId()), value)
}

func (db *fakeDB) get(t *testing.T, id uint32) *vppnode.VppNode {
	t.Helper()
	for _, v := range db.records(t) {
		if v.GetId() == id {
			return v
		}
	}
	return nil
}

func (db *fakeDB) records(t *testing.T) map[string]*vppnode.VppNode {
	t.Helper()
	values, _, err := db.List(context.Background(), ksrPrefix+allocatedIDs)
	if errors.Is(err, castest.ErrDown) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*vppnode.VppNode{}
	for _, v := range values {
		var record vppnode.VppNode
		if protojson.Unmarshal(v.Value, &record) == nil {
			out[strings.TrimPrefix(v.Key, ksrPrefix)] = &record
		}
	}
	return out
}

// snapshot returns the data that the database watcher would pass to a resync.
func (db *fakeDB) snapshot(t *testing.T) controller.KubeStateData {
	t.Helper()
	kvs := controller.KeyValuePairs{}
	for key, record := range db.records(t) {
		kvs[key] = record
	}
	return controller.KubeStateData{allocatedIDs: kvs}
}

// broker is the broker for clients without transactions.
type broker struct {
	db     *fakeDB
	prefix string
}

func (b *broker) Put(_ context.Context, key string, value proto.Message) error {
	data, err := protojson.Marshal(value)
	b.db.Put(b.prefix+key, data)
	return err
}

func (b *broker) GetValue(ctx context.Context, key string, value proto.Message) (bool, int64, error) {
	v, err := b.db.Get(ctx, b.prefix+key)
	if err != nil || v.Rev == 0 {
		return false, 0, err
	}
	return true, v.Rev, protojson.Unmarshal(v.Value, value)
}

func (b *broker) ListKeys(context.Context, string) ([]string, error) {
	return nil, errors.ErrUnsupported
}

func (b *broker) Delete(context.Context, string) (bool, error) { return false, errors.ErrUnsupported }

// memoryIdentity is an IdentityStore.
type memoryIdentity struct {
	mu     sync.Mutex
	values map[string][]byte
	err    error
}

func (m *memoryIdentity) LoadOwn(key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], m.err
}

func (m *memoryIdentity) SaveOwn(key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil {
		m.values = map[string][]byte{}
	}
	m.values[key] = value
	return m.err
}

// loop stores the pushed events.
type loop struct {
	mu      sync.Mutex
	pushed  []controller.Event
	updates []*NodeUpdate
	causes  []controller.Event
	err     error
}

func (l *loop) PushEvent(ev controller.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := ev.(*NodeUpdate); ok {
		return errors.New("NodeUpdate must be a follow-up")
	}
	if l.err == nil {
		l.pushed = append(l.pushed, ev)
	}
	return l.err
}

func (l *loop) PushFollowUp(cause, event controller.Event) error {
	l.causes = append(l.causes, cause)
	l.updates = append(l.updates, event.(*NodeUpdate))
	return l.err
}

// events returns the pushed events and clears the list.
func (l *loop) events() []controller.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.pushed
	l.pushed = nil
	return out
}

// take returns the events so far as text and clears the list.
func (l *loop) take() []string {
	var out []string
	for _, u := range l.updates {
		out = append(out, u.String())
	}
	l.updates = nil
	return out
}

// testNode is a NodeSync with its environment.
type testNode struct {
	*NodeSync
	t    *testing.T
	db   *client
	loop *loop
	disk *memoryIdentity
	logs *strings.Builder
}

// newNode returns a node that stores no identity.
func newNode(t *testing.T, name string, db *fakeDB, opts ...Option) *testNode {
	t.Helper()
	n := &testNode{t: t, db: &client{fakeDB: db}, loop: &loop{}, logs: &strings.Builder{}}
	n.NodeSync = NewPlugin(append([]Option{UseDeps(func(d *Deps) {
		d.Log = slog.New(slog.NewTextHandler(n.logs, &slog.HandlerOptions{Level: slog.LevelWarn}))
		d.ServiceLabel, d.DB, d.EventLoop = servicelabel.Label(name), n.db, n.loop
	})}, opts...)...)
	return n
}

// newMachine returns a node that stores its identity on disk.
func newMachine(t *testing.T, name string, db *fakeDB, disk *memoryIdentity, opts ...Option) *testNode {
	t.Helper()
	n := newNode(t, name, db, append([]Option{UseIdentity(disk)}, opts...)...)
	n.disk = disk
	return n
}

// start initialises the node; the returned function stops it.
func (n *testNode) start() func() {
	n.t.Helper()
	if err := n.Init(); err != nil {
		n.t.Fatalf("Init: %v", err)
	}
	return func() {
		if err := n.Close(); err != nil {
			n.t.Errorf("Close: %v", err)
		}
	}
}

func (n *testNode) resync() error {
	n.t.Helper()
	ev := &controller.DBResync{KubeState: n.db.snapshot(n.t)}
	return n.Resync(ev, ev.KubeState, 1, nil)
}

func (n *testNode) mustResync() {
	n.t.Helper()
	if err := n.resync(); err != nil {
		n.t.Fatalf("Resync: %v", err)
	}
}

func (n *testNode) wantID(want uint32) {
	n.t.Helper()
	if got := n.GetNodeID(); got != want {
		n.t.Errorf("ID %d, want %d", got, want)
	}
}

func (n *testNode) change(id uint32, prev, next *vppnode.VppNode) error {
	ev := &controller.KubeStateChange{Resource: allocatedIDs, Key: recordKey(id)}
	if prev != nil {
		ev.PrevValue = prev
	}
	if next != nil {
		ev.NewValue = next
	}
	_, err := n.Update(ev, nil)
	return err
}
