package nb

import (
	"contiv.dev/vswitch/dataplane/proto"
)

// Prefixes of the keys of the values for the two-phase drivers (Linux, Windows). vpp-agent has no equivalent; the messages are
// Felix's: each value is the message that announces the object. dataplane/feed hands the values to the drivers.
const (
	driverPrefix          = "config/contiv/driver/v1/"
	DriverIPSetPrefix     = driverPrefix + "ip-set/"
	DriverProfilePrefix   = driverPrefix + "profile/"
	DriverPolicyPrefix    = driverPrefix + "policy/"
	DriverWorkloadPrefix  = driverPrefix + "workload/"
	DriverHostPrefix      = driverPrefix + "host/"
	DriverPoolPrefix      = driverPrefix + "pool/"
	DriverRoutePrefix     = driverPrefix + "route/"
	DriverVTEPPrefix      = driverPrefix + "vtep/"
	DriverServicePrefix   = driverPrefix + "service/"
	DriverInSyncKey       = driverPrefix + "in-sync"
	DriverWorkloadUpState = "contiv/driver/workload-up/" // prefix of derived keys

	// The policies of an endpoint and the members of a set are separate values.
	DriverWorkloadPolicyPrefix = driverPrefix + "workload-policy/"
	DriverSetMemberPrefix      = driverPrefix + "ip-set-member/"
)

// DriverWorkloadKey returns the key of an endpoint of a workload.
func DriverWorkloadKey(id *proto.WorkloadEndpointID) string {
	return clean(DriverWorkloadPrefix + id.GetOrchestratorId() + "/" + id.GetWorkloadId() + "/" + id.GetEndpointId())
}

// DriverWorkloadPolicyKey returns the key of the policies that apply to an endpoint of a workload.
func DriverWorkloadPolicyKey(id *proto.WorkloadEndpointID) string {
	return clean(DriverWorkloadPolicyPrefix + id.GetOrchestratorId() + "/" + id.GetWorkloadId() + "/" + id.GetEndpointId())
}

// driverModels returns the models of the drivers' messages.
func driverModels() []model {
	return []model{
		named(DriverIPSetPrefix, func(m *proto.IPSetUpdate) string { return clean(DriverIPSetPrefix + m.GetId()) }),
		named(DriverProfilePrefix, func(m *proto.ActiveProfileUpdate) string { return clean(DriverProfilePrefix + m.GetId().GetName()) }),
		named(DriverPolicyPrefix, func(m *proto.ActivePolicyUpdate) string {
			return clean(DriverPolicyPrefix + m.GetId().GetTier() + "/" + m.GetId().GetName())
		}),
		named(DriverWorkloadPrefix, func(m *proto.WorkloadEndpointUpdate) string { return DriverWorkloadKey(m.GetId()) }),
		named(DriverWorkloadPolicyPrefix, func(m *proto.WorkloadPolicy) string { return DriverWorkloadPolicyKey(m.GetId()) }),
		named(DriverSetMemberPrefix, func(m *proto.IPSetMember) string {
			return clean(DriverSetMemberPrefix + m.GetSetId() + "/" + m.GetMember())
		}),
		named(DriverHostPrefix, func(m *proto.HostMetadataUpdate) string { return clean(DriverHostPrefix + m.GetHostname()) }),
		named(DriverPoolPrefix, func(m *proto.IPAMPoolUpdate) string { return clean(DriverPoolPrefix + m.GetId()) }),
		named(DriverRoutePrefix, func(m *proto.RouteUpdate) string { return clean(DriverRoutePrefix + m.GetDst()) }),
		named(DriverVTEPPrefix, func(m *proto.VXLANTunnelEndpointUpdate) string { return clean(DriverVTEPPrefix + m.GetNode()) }),
		named(DriverServicePrefix, func(m *proto.BalancedServiceUpdate) string {
			return clean(DriverServicePrefix + m.GetNamespace() + "/" + m.GetName())
		}),
		singleton[proto.InSync](DriverInSyncKey),
	}
}
