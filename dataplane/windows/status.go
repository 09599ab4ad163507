package windataplane

import (
	"maps"
	"sync"

	"contiv.dev/vswitch/dataplane/driver/epstate"
)

// Condition is an endpoint's status and, unless it is "up", the reason.
type Condition struct {
	Status string
	Reason string
	// Enforced: despite the status "error" the endpoint works and has its rules; some of them HNS cannot express, and they block more than they
	// specify.
	Enforced bool
}

// StatusText implements epstate.Condition.
func (c Condition) StatusText() string { return c.Status }

// statuses holds the endpoints' conditions as last reported. Reading never waits for the loop.
type statuses struct {
	queue func(key, msg any)

	mu  sync.Mutex
	now map[any]Condition // guarded by mu; by epstate.WorkloadID and epstate.HostID
}

func newStatuses(queue func(key, msg any)) *statuses {
	return &statuses{queue: queue, now: map[any]Condition{}}
}

// report queues the changes. conditions holds the conditions of all endpoints.
func (s *statuses) report(conditions map[any]Condition) {
	s.mu.Lock()
	before := s.now
	s.now = maps.Clone(conditions)
	s.mu.Unlock()
	epstate.Report(s.queue, before, conditions)
}

func (s *statuses) of(key any) (Condition, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, known := s.now[key]
	return c, known
}

func (s *statuses) all() map[any]Condition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.now)
}
