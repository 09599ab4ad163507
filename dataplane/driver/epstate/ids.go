package epstate

import (
	"cmp"
	"strings"

	"contiv.dev/vswitch/dataplane/proto"
)

// WorkloadID is proto.WorkloadEndpointID as a map key.
type WorkloadID struct{ Orchestrator, Workload, Endpoint string }

// WorkloadIDOf returns the map key of an ID.
func WorkloadIDOf(id *proto.WorkloadEndpointID) WorkloadID {
	return WorkloadID{id.GetOrchestratorId(), id.GetWorkloadId(), id.GetEndpointId()}
}

// Message returns the ID in the form that messages use.
func (id WorkloadID) Message() *proto.WorkloadEndpointID {
	return &proto.WorkloadEndpointID{OrchestratorId: id.Orchestrator, WorkloadId: id.Workload, EndpointId: id.Endpoint}
}

// String returns the ID for logs and errors.
func (id WorkloadID) String() string {
	return strings.Join([]string{id.Orchestrator, id.Workload, id.Endpoint}, "/")
}

// Compare orders IDs.
func (id WorkloadID) Compare(other WorkloadID) int {
	return cmp.Or(cmp.Compare(id.Orchestrator, other.Orchestrator), cmp.Compare(id.Workload, other.Workload),
		cmp.Compare(id.Endpoint, other.Endpoint))
}

// HostID is proto.HostEndpointID as a map key.
type HostID string

// Message returns the ID in the form that messages use.
func (id HostID) Message() *proto.HostEndpointID {
	return &proto.HostEndpointID{EndpointId: string(id)}
}
