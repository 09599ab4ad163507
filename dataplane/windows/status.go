package windataplane

import (
	"maps"
	"sync"

	"contiv.dev/vswitch/dataplane/proto"
)

// What an endpoint's status may be.
const (
	statusError = "error"
	statusDown  = "down"
	statusUp    = "up"
)

// Condition is an endpoint's status and, unless it is "up", the reason.
type Condition struct {
	Status string
	Reason string
	// Enforced says of an "error" that the endpoint works and has its rules, some of which HNS cannot express and which block
	// more than they were asked to.
	Enforced bool
}

// statuses are the endpoints' conditions as last reported. Reading never waits for the loop.
type statuses struct {
	queue func(key, msg any)

	mu  sync.Mutex
	now map[any]Condition // guarded by mu; by workloadID and hostID
}

func newStatuses(queue func(key, msg any)) *statuses {
	return &statuses{queue: queue, now: map[any]Condition{}}
}

// report queues what has changed. conditions are all endpoints'.
func (s *statuses) report(conditions map[any]Condition) {
	s.mu.Lock()
	before := s.now
	s.now = maps.Clone(conditions)
	s.mu.Unlock()
	for key, c := range conditions {
		if before[key] != c {
			s.queue(key, statusMessage(key, c.Status))
		}
	}
	for key := range before {
		if _, stays := conditions[key]; !stays {
			s.queue(key, statusMessage(key, ""))
		}
	}
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

// hostID is proto.HostEndpointID as a key.
type hostID string

func statusMessage(key any, status string) any {
	switch id := key.(type) {
	case workloadID:
		if status == "" {
			return &proto.WorkloadEndpointStatusRemove{Id: id.message()}
		}
		return &proto.WorkloadEndpointStatusUpdate{Id: id.message(), Status: &proto.EndpointStatus{Status: status}}
	case hostID:
		ep := &proto.HostEndpointID{EndpointId: string(id)}
		if status == "" {
			return &proto.HostEndpointStatusRemove{Id: ep}
		}
		return &proto.HostEndpointStatusUpdate{Id: ep, Status: &proto.EndpointStatus{Status: status}}
	}
	return nil
}
