package clusterdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
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
)

// Resource is a kind of values below KSRPrefix.
type Resource struct {
	// Keyword names the resource in events, e.g. "allocatedIDs" or "pod".
	Keyword string
	// KeyPrefix is the beginning of its keys below KSRPrefix, with the final slash, e.g. "allocatedIDs/" or "k8s/pod/".
	KeyPrefix string
	// New is an empty value to decode into.
	New func() proto.Message
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
	// Local is the node's copy of the state; nil for none.
	Local *LocalCopy
	Log   *slog.Logger
	// LocalDelay is how long the database has to answer at start before the local copy is used; 5 s when zero.
	LocalDelay time.Duration
}

// Watcher brings the cluster's shared state into the event loop. Run is its job.
type Watcher struct {
	WatcherDeps
	again chan struct{} // a resync is asked for
	state *mirror
}

// NewWatcher is a Watcher for Run.
func NewWatcher(deps WatcherDeps) *Watcher {
	if deps.LocalDelay == 0 {
		deps.LocalDelay = localDelay
	}
	return &Watcher{WatcherDeps: deps, again: make(chan struct{}, 1), state: newMirror(deps.Resources, deps.Log)}
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
	w.Log.Warn("etcd does not answer; starting from the local copy of the cluster state", "values", len(values))
	kvs := make([]keyValue, 0, len(values))
	for k, v := range values {
		kvs = append(kvs, keyValue{key: k, value: v})
	}
	return w.push(ctx, &api.DBResync{Local: true, KubeState: newMirror(w.Resources, w.Log).reset(kvs)})
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
		kvs = append(kvs, kv)
		values[kv.key] = kv.value
	})
	if err != nil {
		return 0, 0, err
	}
	w.DB.report(nil)
	losses, _, _ = w.DB.state()
	if w.Local != nil {
		if err := w.Local.Replace(values); err != nil {
			w.Log.Error("the local copy of the cluster state is out of date", "error", err)
		}
	}
	return rev, losses, w.push(ctx, &api.DBResync{KubeState: w.state.reset(kvs)})
}

// push hands the event over, waiting while the queue is full.
func (w *Watcher) push(ctx context.Context, ev api.Event) error {
	for retry := minRetry; ; retry = min(2*retry, maxRetry) {
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

// watch pushes the changes after revision rev. It returns when they cannot be followed any longer.
func (w *Watcher) watch(ctx context.Context, rev int64, losses uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := w.DB.client.Watch(clientv3.WithRequireLeader(ctx), KSRPrefix, clientv3.WithPrefix(), clientv3.WithRev(rev+1))
	for {
		now, connected, changed := w.DB.state()
		if now != losses && connected {
			return fmt.Errorf("the connection was lost: %w", errGoOn)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.again:
			return fmt.Errorf("on request: %w", errGoOn)
		case <-changed:
		case resp, ok := <-changes:
			if !ok {
				return errors.New("the watch ended")
			}
			if err := resp.Err(); err != nil {
				return fmt.Errorf("watch: %w", err)
			}
			w.DB.saw(resp.Header.Revision)
			if err := w.apply(resp.Events); err != nil {
				return err
			}
		}
	}
}

// apply pushes changes and keeps the local copy up to date. When the event queue is full the changes are dropped, and the
// error leads to a resync later.
func (w *Watcher) apply(events []*clientv3.Event) error {
	changed := map[string][]byte{}
	var pushErr error
	for _, ev := range events {
		kv := keyValue{key: strings.TrimPrefix(string(ev.Kv.Key), KSRPrefix), rev: ev.Kv.ModRevision}
		if ev.Type == clientv3.EventTypePut {
			kv.value = append([]byte{}, ev.Kv.Value...)
		}
		changed[kv.key] = kv.value
		change := w.state.apply(kv)
		if change == nil || pushErr != nil {
			continue
		}
		pushErr = w.Events.PushEvent(change)
	}
	if w.Local != nil {
		if err := w.Local.Apply(changed); err != nil {
			w.Log.Error("the local copy of the cluster state is out of date", "error", err)
		}
	}
	return pushErr
}
