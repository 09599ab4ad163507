package nodesync

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/keyval"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

// How the publisher retries: after a failed attempt it waits, twice as long each time, with jitter so that the nodes of a
// cluster do not fall upon a recovering database at once.
const (
	minBackoff     = 100 * time.Millisecond
	maxBackoff     = 30 * time.Second
	publishTimeout = 5 * time.Second
)

// errForeign means that the record under the node's ID is another node's.
var errForeign = errors.New("the record belongs to another node")

// casDB is implemented by databases that can replace a value only if it has not changed since.
type casDB interface {
	// PutIfRevision writes the value if the key still has the revision at which it was read.
	PutIfRevision(ctx context.Context, key string, rev int64, value []byte) (succeeded bool, err error)
}

// publisher writes this node's record until the database has it. Only the newest record counts.
type publisher struct {
	db     ClusterWideDB
	broker keyval.ProtoBroker
	name   string
	log    *slog.Logger
	wake   chan struct{}

	mu     sync.Mutex
	record *vppnode.VppNode // to be written; nil when there is nothing to do
}

func newPublisher(db ClusterWideDB, name string, log *slog.Logger) *publisher {
	return &publisher{db: db, broker: db.NewBroker(ksrPrefix), name: name, log: log, wake: make(chan struct{}, 1)}
}

// want makes record the one to be written. It does not wait.
func (p *publisher) want(record *vppnode.VppNode) {
	p.mu.Lock()
	p.record = record
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *publisher) wanted() *vppnode.VppNode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.record
}

// done forgets the record unless there is a newer one.
func (p *publisher) done(record *vppnode.VppNode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.record == record {
		p.record = nil
	}
}

func (p *publisher) run(ctx context.Context) error {
	backoff := minBackoff
	for {
		record := p.wanted()
		var pause <-chan time.Time
		if record != nil {
			err := p.write(ctx, record)
			if err == nil {
				p.done(record)
				backoff = minBackoff
				continue
			}
			p.report(ctx, record, err, backoff)
			pause = time.After(backoff/2 + rand.N(backoff))
			backoff = min(2*backoff, maxBackoff)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.wake:
		case <-pause:
		}
	}
}

// report says that the record has not been written yet: loudly if that needs somebody to act.
func (p *publisher) report(ctx context.Context, record *vppnode.VppNode, err error, retry time.Duration) {
	if ctx.Err() != nil {
		return
	}
	level := slog.LevelDebug
	if errors.Is(err, errForeign) {
		level = slog.LevelError
	}
	p.log.Log(ctx, level, "the node's record has not been written yet", "node", p.name, "id", record.GetId(), "retryIn", retry,
		"error", err)
}

// write makes the database have the record, unless the ID is another node's.
func (p *publisher) write(ctx context.Context, record *vppnode.VppNode) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	key := recordKey(record.GetId())
	var there vppnode.VppNode
	found, rev, err := p.broker.GetValue(ctx, key, &there)
	if err != nil {
		return fmt.Errorf("reading %s: %w", key, err)
	}
	if found && there.GetName() != p.name {
		return fmt.Errorf("%s of node %s: %w", key, there.GetName(), errForeign)
	}
	if found && there.GetId() == record.GetId() && slices.Equal(there.GetIpAddresses(), record.GetIpAddresses()) {
		return nil
	}
	ok, err := p.put(ctx, key, rev, found, record)
	if err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	if !ok {
		return fmt.Errorf("writing %s: it has changed meanwhile", key)
	}
	return nil
}

// put writes the record if the database still has what was read.
func (p *publisher) put(ctx context.Context, key string, rev int64, found bool, record *vppnode.VppNode) (bool, error) {
	value, err := encode(record)
	if err != nil {
		return false, err
	}
	if !found {
		return p.db.PutIfNotExists(ksrPrefix+key, value)
	}
	if db, ok := p.db.(casDB); ok {
		return db.PutIfRevision(ctx, ksrPrefix+key, rev, value)
	}
	// A database without compare-and-swap: the record was this node's a moment ago.
	return true, p.broker.Put(ctx, key, proto.Clone(record))
}
