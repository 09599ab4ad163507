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
	// localDelay is how long the database has to answer at start before the local copy is used.
	localDelay = 5 * time.Second
	maxRetry   = 15 * time.Second
	// roomDelay is how long changes may wait for room in the event queue.
	roomDelay = 10 * time.Second
	// roomRetry is the first pause of a watcher that waits for room; pauses double.
	roomRetry = 10 * time.Millisecond
)

// Resource is a kind of values below KSRPrefix.
type Resource struct {
	// Keyword names the resource in events, e.g. "allocatedIDs" or "pod".
	Keyword string
	// KeyPrefix is the beginning of its keys below KSRPrefix, with the final slash, e.g. "allocatedIDs/" or "k8s/pod/".
	KeyPrefix string
	// New is an empty value to decode into.
	New func() proto.Message
	// Decode reads a stored value; nil: it is JSON of what New makes.
	Decode func(data []byte) (proto.Message, error)
	// Complete is a key below KSRPrefix that is there while the values of the resource are all there. While it is missing, the
	// values that were known last stay in force. Empty: they are always complete.
	Complete string
}

// EventSink takes the watcher's events; the event loop is one.
type EventSink interface {
	PushEvent(event api.Event) error
}

// WatcherDeps are the dependencies of a Watcher.
type WatcherDeps struct {
	DB        *DB
	Events    EventSink
	Resources []Resource
	// Ignore is what keys begin with, below KSRPrefix, that have no place in the local copy either; empty: there are none.
	Ignore string
	// Local is the node's copy of the state; nil for none.
	Local *LocalCopy
	Log   *slog.Logger
	// LocalDelay is how long the database has to answer at start before the local copy is used; 5 s when zero.
	LocalDelay time.Duration
	// SaveDelay is how late changes of resources with a Complete key may reach the local copy; at once when zero.
	SaveDelay time.Duration
}

// Watcher brings the cluster's shared state into the event loop. Run is its job.
type Watcher struct {
	WatcherDeps
	again chan struct{} // a resync is asked for
	state *mirror
	saver saver
	gap   atomic.Pointer[gap]
}

// NewWatcher is a Watcher for Run.
func NewWatcher(deps WatcherDeps) *Watcher {
	if deps.LocalDelay == 0 {
		deps.LocalDelay = localDelay
	}
	return &Watcher{
		WatcherDeps: deps, again: make(chan struct{}, 1), state: newMirror(deps.Resources, deps.Log),
		saver: saver{local: deps.Local, delay: deps.SaveDelay, log: deps.Log},
	}
}

// RequestResync asks for a new DBResync from the database. It does not wait.
func (w *Watcher) RequestResync() {
	select {
	case w.again <- struct{}{}:
	default:
	}
}

// errGoOn ends a watch for a reason that is no failure.
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
		}
		rev, losses, err = w.resync(ctx)
	}
}

// start tries to resync until LocalDelay is over; then the local copy has its turn, once.
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

// localResync pushes the local copy if it has anything.
func (w *Watcher) localResync(ctx context.Context) error {
	if w.Local == nil {
		w.Log.Warn("etcd does not answer; waiting for it")
		return nil
	}
	values, err := w.Local.Load()
	if err != nil {
		w.Log.Error("the local copy of the cluster state cannot be used", "error", err)
		return nil
	}
	if len(values) == 0 {
		w.Log.Warn("etcd does not answer, and there is no local copy of the cluster state to start from; waiting for etcd")
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
	w.Log.Warn("etcd does not answer; starting from the local copy of the cluster state", "values", len(values))
	return w.push(ctx, &api.DBResync{Local: true, KubeState: state})
}

// resync reads everything at one revision and pushes it. Of the connection it returns the number of losses so far: if that
// changes, a new resync is due.
func (w *Watcher) resync(ctx context.Context) (rev int64, losses uint64, err error) {
	select { // what is asked for is done now
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
	w.saver.replace(values, w.state.kept)
	if w.reportGap() {
		return rev, losses, nil // there is nothing to tell before the state is complete for the first time
	}
	return rev, losses, w.push(ctx, &api.DBResync{KubeState: state})
}

// push hands the event over, waiting while the queue is full.
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

// pushChange hands a change over. Of resources that another program brings as a whole there may be many at once, on all nodes at the same
// time: to wait for room is better than to have every node read everything again.
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

// watch pushes the changes after revision rev. It returns when they cannot be followed any longer.
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

// apply pushes changes and keeps the local copy up to date. When the event queue is full the changes are dropped, and the
// error leads to a resync later.
func (w *Watcher) apply(ctx context.Context, events []*clientv3.Event) error {
	kvs := make([]keyValue, len(events))
	for i, ev := range events {
		kvs[i] = keyValue{key: strings.TrimPrefix(string(ev.Kv.Key), KSRPrefix), rev: ev.Kv.ModRevision}
		if ev.Type == clientv3.EventTypePut {
			kvs[i].value = append([]byte{}, ev.Kv.Value...)
		}
	}
	// A resource that is deleted as a whole goes with its key; nothing of that is to be taken for a change.
	if w.state.gates.change(kvs) {
		return fmt.Errorf("the state is complete again: %w", errGoOn)
	}
	told := !w.reportGap()
	changed := map[string][]byte{}
	var pushErr error
	for _, kv := range kvs {
		if w.state.kept(kv.key) || w.ignores(kv.key) {
			continue
		}
		changed[kv.key] = kv.value
		if !told {
			continue // in the snapshot that is to come
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
