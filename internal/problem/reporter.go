package problem

import (
	"cmp"
	"context"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Object is a Kubernetes object.
type Object struct{ APIVersion, Kind, Namespace, Name, UID string }

// key returns the object without its UID, so that an object that was deleted and created again has the same key.
func (o Object) key() Object {
	o.UID = ""
	return o
}

// Problem is a part of an object that is not served as specified.
type Problem struct {
	Reason  string // one word in CamelCase
	Message string
}

// Write writes an Event. If this node or another one has written the same Event already, Write returns no error.
type Write func(ctx context.Context, o Object, p Problem) error

const (
	// spread is the time over which the first Events are spread: all nodes find a problem at the same time.
	spread = 5 * time.Second
	// mostDue is the maximum number of Events that wait; when there are more, the oldest are not written.
	mostDue = 1000

	firstRetry, longestRetry = time.Second, time.Minute
	writeTimeout             = 15 * time.Second
)

// Reporter holds the problems of objects. Its methods may be called from any goroutine.
type Reporter struct {
	write Write // nil: no Events are written
	log   *slog.Logger
	wake  chan struct{}

	mu   sync.Mutex
	now  map[Object][]Problem // by key; guarded by mu
	due  []event              // guarded by mu
	lost int                  // number of Events that were not written; guarded by mu
}

type event struct {
	object  Object
	problem Problem
}

// NewReporter returns a Reporter; write may be nil.
func NewReporter(write Write, log *slog.Logger) *Reporter {
	return &Reporter{write: write, log: log, wake: make(chan struct{}, 1), now: map[Object][]Problem{}}
}

// Set replaces the problems of an object; an empty list means that it has none. report is true if this node writes
// the Events.
func (r *Reporter) Set(o Object, list []Problem, report bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.now[o.key()]
	if delete(r.now, o.key()); len(list) > 0 {
		r.now[o.key()] = slices.Clone(list)
	}
	if !report || r.write == nil {
		return
	}
	for _, p := range list {
		if !slices.Contains(before, p) {
			r.due = append(r.due, event{o, p})
		}
	}
	if more := len(r.due) - mostDue; more > 0 {
		r.due, r.lost = slices.Delete(r.due, 0, more), r.lost+more
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run writes Events until ctx ends.
func (r *Reporter) Run(ctx context.Context) error {
	wait := firstRetry
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.wake:
		}
		pause := rand.N(spread)
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pause):
			}
			err := r.writeDue(ctx)
			if err == nil {
				wait = firstRetry
				break
			}
			if wait == firstRetry {
				r.log.Warn("Events about objects cannot be written; retrying", "error", err)
			}
			pause, wait = wait, min(2*wait, longestRetry)
		}
	}
}

// writeDue writes the Events that wait, if their problems still exist.
func (r *Reporter) writeDue(ctx context.Context) error {
	for {
		r.mu.Lock()
		if len(r.due) == 0 {
			r.mu.Unlock()
			return nil
		}
		e := r.due[0]
		current := slices.Contains(r.now[e.object.key()], e.problem)
		r.mu.Unlock()
		if current {
			one, cancel := context.WithTimeout(ctx, writeTimeout)
			err := r.write(one, e.object, e.problem)
			cancel()
			if err != nil {
				return err
			}
		}
		r.mu.Lock()
		if len(r.due) > 0 && r.due[0] == e {
			r.due = slices.Delete(r.due, 0, 1)
		}
		r.mu.Unlock()
	}
}

// eventWriters is the number of nodes that write the Events about an object: one of them may be down.
const eventWriters = 3

// WritesEvents reports whether this node is one of those that write the Events about an object that all nodes have.
func WritesEvents(own string, nodes []string, o Object) bool {
	return before(own, nodes, o) < eventWriters
}

// First reports whether this node is the only one that acts for an object that all nodes have.
func First(own string, nodes []string, o Object) bool { return before(own, nodes, o) == 0 }

// before returns how many nodes come before this one in the order of an object.
func before(own string, nodes []string, o Object) int {
	object := hash(o.Kind, o.Namespace, o.Name)
	rank := func(node string) uint64 { return mix(hash(node) ^ object) }
	n := 0
	for _, node := range nodes {
		if c := cmp.Or(cmp.Compare(rank(node), rank(own)), cmp.Compare(node, own)); c < 0 {
			n++
		}
	}
	return n
}

func hash(texts ...string) uint64 {
	h := fnv.New64a()
	for _, text := range texts {
		h.Write([]byte(text))
		h.Write([]byte{0})
	}
	return h.Sum64()
}

// mix makes each bit depend on all others; FNV does not do this for the last bits.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

func descs() (problems, lost *prometheus.Desc) {
	return prometheus.NewDesc("contiv_object_problems", "Problems of Kubernetes objects that are not served as specified.",
			[]string{"kind", "reason"}, nil),
		prometheus.NewDesc("contiv_object_events_lost_total", "Events about such objects that were not written.", nil, nil)
}

// Describe implements prometheus.Collector.
func (r *Reporter) Describe(ch chan<- *prometheus.Desc) {
	problems, lost := descs()
	ch <- problems
	ch <- lost
}

// Collect implements prometheus.Collector.
func (r *Reporter) Collect(ch chan<- prometheus.Metric) {
	type labels struct{ kind, reason string }
	counts := map[labels]int{}
	r.mu.Lock()
	for o, list := range r.now {
		for _, p := range list {
			counts[labels{o.Kind, p.Reason}]++
		}
	}
	unwritten := r.lost
	r.mu.Unlock()
	problems, lost := descs()
	for l, n := range counts {
		ch <- prometheus.MustNewConstMetric(problems, prometheus.GaugeValue, float64(n), l.kind, l.reason)
	}
	ch <- prometheus.MustNewConstMetric(lost, prometheus.CounterValue, float64(unwritten))
}
