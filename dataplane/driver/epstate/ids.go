package epstate

import (
	"cmp"
	"strings"

	"contiv.dev/vswitch/dataplane/proto"
)

// WorkloadID is proto.WorkloadEndpointID as a key.
type WorkloadID struct{ Orchestrator, Workload, Endpoint string }

// WorkloadIDOf is the key of an ID.
func WorkloadIDOf(id *proto.WorkloadEndpointID) WorkloadID {
	return WorkloadID{id.GetOrchestratorId(), id.GetWorkloadId(), id.GetEndpointId()}
}

// Message is the ID as messages have it.
func (id WorkloadID) Message() *proto.WorkloadEndpointID {
	return &proto.WorkloadEndpointID{OrchestratorId: id.Orchestrator, WorkloadId: id.Workload, EndpointId: id.Endpoint}
}

// String is the ID in logs and errors.
func (id WorkloadID) String() string {
	return strings.Join([]string{id.Orchestrator, id.Workload, id.Endpoint}, "/")
}

// Compare orders IDs.
func (id WorkloadID) Compare(other WorkloadID) int {
	return cmp.Or(cmp.Compare(id.Orchestrator, other.Orchestrator), cmp.Compare(id.Workload, other.Workload),
		cmp.Compare(id.Endpoint, other.Endpoint))
}

// HostID is proto.HostEndpointID as a key.
type HostID string

// Message is the ID as messages have it.
func (id HostID) Message() *proto.HostEndpointID {
	return &proto.HostEndpointID{EndpointId: string(id)}
}
