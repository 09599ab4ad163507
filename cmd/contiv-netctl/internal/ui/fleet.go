package ui

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
	// leastPace is the shortest time between two questions to all agents.
	leastPace = 2 * time.Second
	// share is the part of the time in which agents are asked, at most: a cluster that takes 2 s to answer is asked every 20 s.
	share = 10
	// askTimeout bounds the questions to all agents.
	askTimeout = 8 * time.Second
	// reopenAfter is for how long the list of nodes is used without asking for it again.
	reopenAfter = 10 * time.Second
)

// fleet asks the agents. Its methods may be called by many pages at once: they share the answers.
type fleet struct {
	open func(context.Context) (*client.Cluster, error)

	mu      sync.Mutex
	cluster *client.Cluster // guarded by mu; nil before the first answer
	asked   time.Time       // guarded by mu: when the cluster was

	overviews remembered[Overview]
	works     remembered[Workloads]
	losses    remembered[Drops]
	rates     state.Rates
	watch     watched
	events    eventLogs
}

func newFleet(open func(context.Context) (*client.Cluster, error)) *fleet {
	return &fleet{open: open, events: eventLogs{nodes: map[string]*eventLog{}}}
}

// remembered is an answer that is used again until its time is over.
type remembered[T any] struct {
	mu    sync.Mutex
	value T
	err   error
	until time.Time
}

// get asks, unless the last answer is young enough; next is in how many milliseconds it makes sense to ask again. The question goes on
// when the page that has asked is closed: others wait for the same answer.
func (m *remembered[T]) get(ctx context.Context, ask func(context.Context) (T, error)) (v T, next int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); now.Before(m.until) {
		return m.value, max(int(m.until.Sub(now).Milliseconds()), 250), m.err
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	m.value, m.err = ask(ctx)
	pace := max(leastPace, share*time.Since(start))
	m.until = time.Now().Add(pace - leastPace/4)
	return m.value, int(pace.Milliseconds()), m.err
}

// connect gives the cluster as it was a moment ago, or asks for it.
func (f *fleet) connect(ctx context.Context, fresh bool) (*client.Cluster, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cluster != nil && !fresh && time.Since(f.asked) < reopenAfter {
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
	f.cluster, f.asked = c, time.Now()
	return c, nil
}

// agent is that of a node, by its name; empty: the first one.
func (f *fleet) agent(ctx context.Context, node string) (*client.Agent, error) {
	c, err := f.connect(ctx, false)
	if err != nil {
		return nil, err
	}
	if err := c.Check([]string{node}); err != nil {
		return nil, &badRequest{err}
	}
	return c.Agent(node)
}

// absent reports whether an agent has no such path: its dataplane does not have what it is about, or the agent is older.
func absent(err error) bool {
	var e *client.Error
	return errors.As(err, &e) && e.Status == http.StatusNotFound
}
