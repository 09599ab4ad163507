package fleet

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/state"
)

const (
	// leastPace is the shortest interval between two queries to all agents.
	leastPace = 2 * time.Second
	// share limits the queries to 1/share of the time: a cluster that takes 2 s to answer is queried every 20 s.
	share = 10
	// queryTimeout bounds a query to all agents.
	queryTimeout = 8 * time.Second
	// reopenAfter is how long the list of nodes is used before it is requested again.
	reopenAfter = 10 * time.Second
)

// Fleet queries the agents. Many pages may call its methods at the same time: they share the answers.
type Fleet struct {
	open func(context.Context) (*client.Cluster, error)

	mu      sync.Mutex
	cluster *client.Cluster // guarded by mu; nil before the first answer
	queried time.Time       // guarded by mu: when the cluster was queried

	overviews remembered[Overview]
	works     remembered[Workloads]
	losses    remembered[Drops]
	rates     state.Rates
	watch     watched
	events    eventLogs
}

// New returns a Fleet; open connects to the cluster for reading.
func New(open func(context.Context) (*client.Cluster, error)) *Fleet {
	return &Fleet{open: open, events: eventLogs{nodes: map[string]*eventLog{}}}
}

// remembered caches an answer until it expires.
type remembered[T any] struct {
	mu    sync.Mutex
	value T
	err   error
	until time.Time
}

// get queries, unless the last answer is recent enough; next is the number of milliseconds after which another query makes sense. The query
// continues when the page that started it is closed, because other pages wait for the same answer.
func (m *remembered[T]) get(ctx context.Context, query func(context.Context) (T, error)) (v T, next int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); now.Before(m.until) {
		return m.value, max(int(m.until.Sub(now).Milliseconds()), 250), m.err
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), queryTimeout)
	defer cancel()
	m.value, m.err = query(ctx)
	pace := max(leastPace, share*time.Since(start))
	m.until = time.Now().Add(pace - leastPace/4)
	return m.value, int(pace.Milliseconds()), m.err
}

// connect returns the cluster as it was a moment ago, or queries it.
func (f *Fleet) connect(ctx context.Context, fresh bool) (*client.Cluster, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cluster != nil && !fresh && time.Since(f.queried) < reopenAfter {
		return f.cluster, nil
	}
	var c *client.Cluster
	var err error
	if f.cluster == nil {
		c, err = f.open(ctx)
	} else {
		c, err = f.cluster.Again(ctx)
	}
	if err != nil {
		return nil, err
	}
	f.cluster, f.queried = c, time.Now()
	return c, nil
}

// agent returns the agent of a node, given by its name; empty: the first agent.
func (f *Fleet) agent(ctx context.Context, node string) (*client.Agent, error) {
	c, err := f.connect(ctx, false)
	if err != nil {
		return nil, err
	}
	if err := c.Check([]string{node}); err != nil {
		return nil, &BadRequest{Err: err}
	}
	return c.Agent(node)
}

// absent reports whether an agent does not have a path: its dataplane lacks the feature, or the agent is older.
func absent(err error) bool {
	var e *client.Error
	return errors.As(err, &e) && e.Status == http.StatusNotFound
}

// BadRequest is an error that the page or its user has caused.
type BadRequest struct{ Err error }

// Error implements error.
func (b *BadRequest) Error() string { return b.Err.Error() }

// Unwrap returns the cause.
func (b *BadRequest) Unwrap() error { return b.Err }
