package epstate

import "contiv.dev/vswitch/dataplane/proto"

// The statuses of an endpoint, worst first. Gone is the status of an endpoint that was removed.
const (
	Gone  = ""
	Error = "error"
	Down  = "down"
	Up    = "up"
)

// Worse reports whether status is worse than the status than. Gone is better than any other status.
func Worse(status, than string) bool {
	rank := map[string]int{Error: 0, Down: 1, Up: 2, Gone: 3}
	return rank[status] < rank[than]
}

// Condition is the state of an endpoint as its driver reports it. Conditions that differ are reported even if their status is equal.
type Condition interface {
	comparable
	// StatusText returns the status: Error, Down or Up.
	StatusText() string
}

// Report queues a message for each endpoint whose condition has changed, and for each endpoint that is gone. Keys are of type WorkloadID or
// HostID.
func Report[C Condition](queue func(key, msg any), before, now map[any]C) {
	for key, c := range now {
		if had, has := before[key]; !has || had != c {
			queue(key, message(key, c.StatusText()))
		}
	}
	for key := range before {
		if _, stays := now[key]; !stays {
			queue(key, message(key, Gone))
		}
	}
}

// message returns the status message of an endpoint; nil for a key of another type.
func message(key any, status string) any {
	switch id := key.(type) {
	case WorkloadID:
		if status == Gone {
			return &proto.WorkloadEndpointStatusRemove{Id: id.Message()}
		}
		return &proto.WorkloadEndpointStatusUpdate{Id: id.Message(), Status: &proto.EndpointStatus{Status: status}}
	case HostID:
		if status == Gone {
			return &proto.HostEndpointStatusRemove{Id: id.Message()}
		}
		return &proto.HostEndpointStatusUpdate{Id: id.Message(), Status: &proto.EndpointStatus{Status: status}}
	}
	return nil
}
