package nodesync

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/keyval"
	"contiv.dev/vswitch/internal/servicelabel"
	controller "contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

var errDown = errors.New("database is down")

// fakeDB is a database shared by the nodes of a test.
type fakeDB struct {
	mu       sync.Mutex
	values   map[string]string
	revs     map[string]int64
	rev      int64
	writes   int
	down     bool
	loseNext bool             // the next PutIfNotExists is done, but its answer gets lost
	beforeOp func(key string) // runs before each PutIfNotExists and PutIfRevision, unlocked
}

func newFakeDB() *fakeDB {
	return &fakeDB{values: map[string]string{}, revs: map[string]int64{}}
}

// client is one node's connection; it is connected from the start unless away.
type client struct {
	*fakeDB
	away bool
}

func (c *client) OnConnect(callback func() error) {
	if !c.away {
		_ = callback()
	}
}

func (c *client) NewBroker(prefix string) keyval.ProtoBroker { return &broker{c.fakeDB, prefix} }

func (c *client) Close() error { return nil }

func (db *fakeDB) hook(key string) {
	db.mu.Lock()
	f := db.beforeOp
	db.mu.Unlock()
	if f != nil {
		f(key)
	}
}

func (db *fakeDB) set(key, value string) {
	db.rev++
	db.values[key], db.revs[key] = value, db.rev
	db.writes++
}

func (db *fakeDB) PutIfNotExists(key string, value []byte) (bool, error) {
	db.hook(key)
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.down {
		return false, errDown
	}
	if _, exists := db.values[key]; exists {
		return false, nil
	}
	db.set(key, string(value))
	if db.loseNext {
		db.loseNext = false
		return false, context.DeadlineExceeded
	}
	return true, nil
}

func (db *fakeDB) PutIfRevision(_ context.Context, key string, rev int64, value []byte) (bool, error) {
	db.hook(key)
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.down {
		return false, errDown
	}
	if db.revs[key] != rev {
		return false, nil
	}
	db.set(key, string(value))
	return true, nil
}

func (db *fakeDB) put(t *testing.T, record *vppnode.VppNode) {
	t.Helper()
	value, err := encode(record)
	if err != nil {
		t.Fatal(err)
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	db.set(ksrPrefix+recordKey(record.GetId()), string(value))
}

func (db *fakeDB) get(t *testing.T, id uint32) *vppnode.VppNode {
	t.Helper()
	db.mu.Lock()
	defer db.mu.Unlock()
	value, ok := db.values[ksrPrefix+recordKey(id)]
	if !ok {
		return nil
	}
	var record vppnode.VppNode
	if err := protojson.Unmarshal([]byte(value), &record); err != nil {
		t.Fatal(err)
	}
	return &record
}

// snapshot is what the database watcher would hand to a resync.
func (db *fakeDB) snapshot(t *testing.T) controller.KubeStateData {
	t.Helper()
	db.mu.Lock()
	defer db.mu.Unlock()
	kvs := controller.KeyValuePairs{}
	for key, value := range db.values {
		var record vppnode.VppNode
		if err := protojson.Unmarshal([]byte(value), &record); err != nil {
			t.Fatal(err)
		}
		kvs[strings.TrimPrefix(key, ksrPrefix)] = &record
	}
	return controller.KubeStateData{allocatedIDs: kvs}
}

func (db *fakeDB) setDown(down bool) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.down = down
}

func (db *fakeDB) writeCount() int {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.writes
}

type broker struct {
	db     *fakeDB
	prefix string
}

func (b *broker) Put(context.Context, string, proto.Message) error {
	return errors.New("nodesync must not write without comparing")
}

func (b *broker) GetValue(_ context.Context, key string, value proto.Message) (bool, int64, error) {
	b.db.mu.Lock()
	defer b.db.mu.Unlock()
	if b.db.down {
		return false, 0, errDown
	}
	text, ok := b.db.values[b.prefix+key]
	if !ok {
		return false, 0, nil
	}
	return true, b.db.revs[b.prefix+key], protojson.Unmarshal([]byte(text), value)
}

func (b *broker) ListKeys(context.Context, string) ([]string, error) {
	return nil, errors.ErrUnsupported
}

func (b *broker) Delete(context.Context, string) (bool, error) { return false, errors.ErrUnsupported }

// loop remembers the follow-up events.
type loop struct {
	updates []*NodeUpdate
	causes  []controller.Event
	err     error
}

func (l *loop) PushEvent(controller.Event) error { return errors.New("NodeUpdate must be a follow-up") }

func (l *loop) PushFollowUp(cause, event controller.Event) error {
	l.causes = append(l.causes, cause)
	l.updates = append(l.updates, event.(*NodeUpdate))
	return l.err
}

// take returns the events so far as text and forgets them.
func (l *loop) take() []string {
	var out []string
	for _, u := range l.updates {
		out = append(out, u.String())
	}
	l.updates = nil
	return out
}

// testNode is a NodeSync with its surroundings.
type testNode struct {
	*NodeSync
	t    *testing.T
	db   *client
	loop *loop
}

func newNode(t *testing.T, name string, db *fakeDB, opts ...Option) *testNode {
	t.Helper()
	n := &testNode{t: t, db: &client{fakeDB: db}, loop: &loop{}}
	n.NodeSync = NewPlugin(append([]Option{UseDeps(func(d *Deps) {
		d.ServiceLabel, d.DB, d.EventLoop = servicelabel.Label(name), n.db, n.loop
	})}, opts...)...)
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
