package clusterdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/plugins/controller/api"
)

const (
	// KSRPrefix is the root of the cluster's shared state.
	KSRPrefix = "/vnf-agent/contiv-ksr/"
	// localDelay is the time within which the database has to answer at start; after it the local copy is used.
	localDelay = 5 * time.Second
	maxRetry   = 15 * time.Second
	// roomDelay is how long changes may wait for room in the event queue.
	roomDelay = 10 * time.Second
	// roomRetry is the first pause of a watcher that waits for room in the event queue; each pause is twice the previous one.
	roomRetry = 10 * time.Millisecond
)

// Resource is a kind of values below KSRPrefix.
type Resource struct {
	// Keyword names the resource in events, e.g. "allocatedIDs" or "pod".
	Keyword string
	// KeyPrefix is the prefix of the resource's keys below KSRPrefix, with the final slash, e.g. "allocatedIDs/" or "k8s/pod/".
	KeyPrefix string
	// New returns an empty value to decode into.
	New func() proto.Message
	// Decode decodes a stored value; nil: the value is JSON of the type that New returns.
	Decode func(data []byte) (proto.Message, error)
	// Complete is a key below KSRPrefix that exists while all values of the resource exist. While the key is missing, the last known
	// values stay in force. Empty: the values are always complete.
	Complete string
}

// EventSink receives the watcher's events; the event loop is one.
type EventSink interface {
	PushEvent(event api.Event) error
}

// WatcherDeps are the dependencies of a Watcher.
type WatcherDeps struct {
	DB        *DB
	Events    EventSink
	Resources []Resource
	// Ignore is the prefix, below KSRPrefix, of keys that are not stored in the local copy either; empty: no key is ignored.
	Ignore string
	// Local is the node's copy of the state; nil: there is none.
	Local *LocalCopy
	Log   *slog.Logger
	// LocalDelay is the time within which the database has to answer at start; after it the local copy is used. 5 s when zero.
	LocalDelay time.Duration
	// SaveDelay is the maximum delay after which changes of resources with a Complete key reach the local copy; none when zero.
	SaveDelay time.Duration
}

// Watcher delivers the cluster's shared state to the event loop. Run is its job.
type Watcher struct {
	WatcherDeps
	again chan struct{} // has a token when a resync is requested
	state *mirror
	saver saver
	gap   atomic.Pointer[gap]
}

// NewWatcher returns a Watcher; the caller starts it with Run.
func NewWatcher(deps WatcherDeps) *Watcher {
	if deps.LocalDelay == 0 {
		deps.LocalDelay = localDelay
	}
	return &Watcher{
		WatcherDeps: deps, again: make(chan struct{}, 1), state: newMirror(deps.Resources, deps.Log),
		saver: saver{local: deps.Local, delay: deps.SaveDelay, log: deps.Log},
	}
}

// RequestResync requests a new DBResync from the database. It does not wait for it.
func (w *Watcher) RequestResync() {
	select {
	case w.again <- struct{}{}:
	default:
	}
}

// errGoOn ends a watch when a new resync is due; it is not a failure.
var errGoOn = errors.New("a new resync is due")

// Run resyncs and watches until ctx ends or the event loop is closed.
func (w *Watcher) Run(ctx context.Context) error {
	rev, losses, err := w.start(ctx)
	retry := minRetry
	for {
		if err == nil {
			retry = minRetry
			err = w.watch(ctx, rev, losses)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, api.ErrClosed):
			return nil
		case !errors.Is(err, errGoOn):
			w.Log.Debug("watching the cluster state failed", "error", err, "retryIn", retry)
			if err := sleep(ctx, jitter(retry)); err != nil {
				return err
			}
			retry = min(2*retry, maxRetry)
			w.saver.flushDue()
		}
		rev, losses, err = w.resync(ctx)
	}
}

// start tries to resync until LocalDelay has passed; then it uses the local copy, once.
func (w *Watcher) start(ctx context.Context) (rev int64, losses uint64, err error) {
	startCtx, cancel := context.WithTimeout(ctx, w.LocalDelay)
	defer cancel()
	for retry := minRetry; ; retry = min(2*retry, maxRetry) {
		rev, losses, err = w.resync(startCtx)
		if err == nil || errors.Is(err, api.ErrClosed) || ctx.Err() != nil {
			return rev, losses, err
		}
		if sleep(startCtx, jitter(retry)) != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return 0, 0, ctx.Err()
	}
	if localErr := w.localResync(ctx); localErr != nil {
		return 0, 0, localErr
	}
	return 0, 0, err
}

// localResync pushes the local copy if it has values.
func (w *Watcher) localResync(ctx context.Context) error {
	if w.Local == nil {
		w.Log.Warn("etcd does not respond; waiting for it")
		return nil
	}
	values, err := w.Local.Load()
	if err != nil {
		w.Log.Error("the local copy of the cluster state cannot be used", "error", err)
		return nil
	}
	if len(values) == 0 {
		w.Log.Warn("etcd does not respond, and there is no local copy of the cluster state to start from; waiting for etcd")
		return nil
	}
	kvs := make([]keyValue, 0, len(values))
	for k, v := range values {
		kvs = append(kvs, keyValue{key: k, value: v})
	}
	state := w.state.reset(kvs)
	if w.reportGap() {
		return nil
	}
	w.Log.Warn("etcd does not respond; starting from the local copy of the cluster state", "values", len(values))
	return w.push(ctx, &api.DBResync{Local: true, KubeState: state})
}

// resync reads the whole state at one revision and pushes it. losses is the number of lost connections so far: when it changes, a new
// resync is due.
func (w *Watcher) resync(ctx context.Context) (rev int64, losses uint64, err error) {
	select { // this resync serves a request that is waiting
	case <-w.again:
	default:
	}
	var kvs []keyValue
	values := map[string][]byte{}
	rev, err = w.DB.list(ctx, KSRPrefix, func(kv keyValue) {
		kv.key = strings.TrimPrefix(kv.key, KSRPrefix)
		if w.ignores(kv.key) {
			return
		}
		kvs = append(kvs, kv)
		values[kv.key] = kv.value
	})
	if err != nil {
		return 0, 0, err
	}
	w.DB.saw(rev)
	w.DB.report(nil)
	losses, _, _ = w.DB.state()
	w.recall(kvs)
	state := w.state.reset(kvs)
	w.saver.replace(values, w.state.keptNow())
	if w.reportGap() {
		return rev, losses, nil // nothing is pushed before the state is complete for the first time
	}
	return rev, losses, w.push(ctx, &api.DBResync{KubeState: state})
}

// push pushes the event, and waits while the queue is full.
func (w *Watcher) push(ctx context.Context, ev api.Event) error {
	for retry := roomRetry; ; retry = min(2*retry, maxRetry) {
		err := w.Events.PushEvent(ev)
		if !errors.Is(err, api.ErrQueueFull) {
			return err
		}
		w.Log.Debug("the event queue is full", "event", ev.GetName(), "retryIn", retry)
		if err := sleep(ctx, jitter(retry)); err != nil {
			return err
		}
	}
}

func (w *Watcher) ignores(key string) bool { return w.Ignore != "" && strings.HasPrefix(key, w.Ignore) }

// pushChange pushes a change. A resource that another program writes as a whole may have many changes at once, on all nodes at the same
// time: waiting for room in the queue is better than a resync of every node.
func (w *Watcher) pushChange(ctx context.Context, change *api.KubeStateChange) error {
	if !w.state.gated(change.Key) {
		return w.Events.PushEvent(change)
	}
	waitCtx, cancel := context.WithTimeout(ctx, roomDelay)
	defer cancel()
	err := w.push(waitCtx, change)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("%w for %s", api.ErrQueueFull, roomDelay)
	}
	return err
}

// watch pushes the changes after revision rev. It returns when the watch cannot be continued.
func (w *Watcher) watch(ctx context.Context, rev int64, losses uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer w.saver.flush()
	changes := w.DB.client.Watch(clientv3.WithRequireLeader(ctx), KSRPrefix, clientv3.WithPrefix(), clientv3.WithRev(rev+1))
	for {
		waitCtx, stop := w.saver.deadline(ctx)
		resp, err := w.DB.next(waitCtx, changes, losses, w.again)
		stop()
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			w.saver.flush()
			continue
		case err != nil:
			return err
		case resp == nil:
			return fmt.Errorf("on request: %w", errGoOn)
		}
		if err := w.apply(ctx, resp.Events); err != nil {
			return err
		}
	}
}

// apply pushes changes and keeps the local copy up to date. When the event queue is full the changes are dropped, and the error leads to
// a resync later.
func (w *Watcher) apply(ctx context.Context, events []*clientv3.Event) error {
	kvs := make([]keyValue, len(events))
	for i, ev := range events {
		kvs[i] = keyValue{key: strings.TrimPrefix(string(ev.Kv.Key), KSRPrefix), rev: ev.Kv.ModRevision}
		if ev.Type == clientv3.EventTypePut {
			kvs[i].value = append([]byte{}, ev.Kv.Value...)
		}
	}
	// When a resource is deleted as a whole, its Complete key is deleted too; these deletions must not count as changes.
	if w.state.gates.change(kvs) {
		return fmt.Errorf("the state is complete again: %w", errGoOn)
	}
	reported := !w.reportGap()
	changed := map[string][]byte{}
	var pushErr error
	for _, kv := range kvs {
		if w.state.kept(kv.key) || w.ignores(kv.key) {
			continue
		}
		changed[kv.key] = kv.value
		if !reported {
			continue // the next snapshot contains the change
		}
		change := w.state.apply(kv)
		if change == nil || pushErr != nil {
			continue
		}
		pushErr = w.pushChange(ctx, change)
	}
	w.saver.apply(changed, w.state.gated)
	return pushErr
}
