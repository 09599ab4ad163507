package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/plugins/controller/api"
)

// The default times of a Source, and the default number of changes above which a resync is cheaper.
const (
	defaultLocalDelay   = 5 * time.Second
	defaultSaveInterval = 100 * time.Millisecond
	firstSave           = 10 // in save intervals, from the start
	defaultResyncAbove  = 2000
	minRetry            = 20 * time.Millisecond
	maxRetry            = time.Second
)

// EventSink receives events; the event loop and a Part of a Join are sinks.
type EventSink interface {
	PushEvent(event api.Event) error
}

// LocalCopy keeps values on the node's disk; clusterdb.LocalCopy is one.
type LocalCopy interface {
	// Load returns all values by key.
	Load() (map[string][]byte, error)
	// Apply changes single values; a nil value deletes.
	Apply(changes map[string][]byte) error
}

// Deps are the dependencies of a Source.
type Deps struct {
	Client *Client
	Events EventSink
	// Local is the node's copy of the state; nil: there is none. The Source is its only user.
	Local   LocalCopy
	Log     *slog.Logger
	Metrics prometheus.Registerer // nil: none

	// Annotations are the prefixes of the pod annotations that are kept.
	Annotations []string
	// LocalDelay is the time within which the API server has to answer at start before the local copy is used; 5 s when zero.
	LocalDelay time.Duration
	// SaveInterval is the maximum delay of changes to the local copy, ten times as long after the start; 0.1 s when zero. If an agent
	// is killed and the API server also becomes unavailable, the changes that were not saved by then are missing.
	SaveInterval time.Duration
	// ResyncAbove is the number of undelivered changes above which one resync replaces them; 2000 when zero.
	ResyncAbove int
}

// Source delivers the state of Kubernetes to the event loop.
type Source struct {
	Deps
	in     *interner
	kinds  []*kind
	mirror *mirror
	status *status
}

// NewSource returns a Source, and registers its metrics; the caller starts it with Start.
func NewSource(deps Deps) (*Source, error) {
	if deps.LocalDelay == 0 {
		deps.LocalDelay = defaultLocalDelay
	}
	if deps.SaveInterval == 0 {
		deps.SaveInterval = defaultSaveInterval
	}
	if deps.ResyncAbove == 0 {
		deps.ResyncAbove = defaultResyncAbove
	}
	s := &Source{Deps: deps, in: &interner{}}
	s.kinds = kinds(deps.Annotations, s.in)
	keywords := make([]string, len(s.kinds))
	for i, k := range s.kinds {
		keywords[i] = k.keyword
	}
	s.mirror = newMirror(keywords, deps.ResyncAbove)
	s.mirror.saved = deps.Local != nil
	s.status = newStatus(deps.Log, deps.Client.host)
	if deps.Metrics != nil {
		if err := deps.Metrics.Register(&collector{s}); err != nil {
			return nil, fmt.Errorf("metrics of the Kubernetes state: %w", err)
		}
	}
	return s, nil
}

// Start starts the jobs. They end with the group; at the end the changes that are not saved yet are saved.
func (s *Source) Start(jobs *lifecycle.Group) {
	if s.Local != nil { // started first, to be stopped last
		jobs.Go("kube-local-copy", s.save)
	}
	jobs.Go("kube-events", s.deliver)
	for _, k := range s.kinds {
		jobs.Go("kube-watch-"+k.resource, func(ctx context.Context) error { return s.watch(ctx, k) })
	}
}

// RequestResync requests a new DBResync. It does not wait.
func (s *Source) RequestResync() { s.mirror.requestResync() }

// Synced reports whether every resource has been read from the API server, and returns the missing ones if not.
func (s *Source) Synced() (synced bool, missing []string) {
	missing = s.mirror.missing()
	return len(missing) == 0, missing
}

// Connected returns nil while all watches work; otherwise the error names the watches that fail, and the causes.
func (s *Source) Connected() error { return s.status.err() }

// deliver pushes events to the loop, one by one, in the order of their first change.
func (s *Source) deliver(ctx context.Context) error {
	late := time.NewTimer(s.LocalDelay)
	defer late.Stop()
	for {
		for ev := s.mirror.next(); ev != nil; ev = s.mirror.next() {
			if err := s.push(ctx, ev); err != nil {
				return ignoreClosed(err)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.mirror.wake:
		case <-late.C:
			if err := s.startFromLocal(ctx); err != nil {
				return ignoreClosed(err)
			}
		}
	}
}

// ignoreClosed returns nil if the event loop is closed, because that is not a failure of the job.
func ignoreClosed(err error) error {
	if errors.Is(err, api.ErrClosed) {
		return nil
	}
	return err
}

// push waits while the queue is full. During the wait, several changes of one object are merged into one.
func (s *Source) push(ctx context.Context, ev api.Event) error {
	for retry := minRetry; ; retry = min(2*retry, maxRetry) {
		err := s.Events.PushEvent(ev)
		if !errors.Is(err, api.ErrQueueFull) {
			return err
		}
		if err := pause(ctx, jitter(retry)); err != nil {
			return err
		}
	}
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// jitter returns a random duration between d and 1.5 d.
func jitter(d time.Duration) time.Duration { return d + rand.N(d/2+1) }
