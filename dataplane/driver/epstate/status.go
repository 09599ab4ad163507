package epstate

import "contiv.dev/vswitch/dataplane/proto"

// What an endpoint's status may be, least wanted first. Gone is that of an endpoint that was removed.
const (
	Gone  = ""
	Error = "error"
	Down  = "down"
	Up    = "up"
)

// Worse reports whether one status is less wanted than another. Gone says nothing.
func Worse(status, than string) bool {
	rank := map[string]int{Error: 0, Down: 1, Up: 2, Gone: 3}
	return rank[status] < rank[than]
}

// Condition is what a driver has to say about an endpoint. Conditions that differ are reported, also if their status is the same.
type Condition interface {
	comparable
	// StatusText is the status: Error, Down or Up.
	StatusText() string
}

// Report queues a message for each endpoint whose condition has changed, and for each that is gone. Keys are of type WorkloadID or HostID.
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

// message is the status message of an endpoint; nil for a key of another type.
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
