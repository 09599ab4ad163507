package nb

import (
	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/proto"
)

// Prefixes of the keys of the values for the two-phase drivers (Linux, Windows). vpp-agent has nothing of the kind; the messages are
// Felix's, and a value is the message that announces it. dataplane/feed hands them over.
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

	// What an endpoint's policy is, and what is in a set, are their own values.
	DriverWorkloadPolicyPrefix = driverPrefix + "workload-policy/"
	DriverSetMemberPrefix      = driverPrefix + "ip-set-member/"
)

// DriverWorkloadKey is the key of an endpoint of a workload.
func DriverWorkloadKey(id *proto.WorkloadEndpointID) string {
	return clean(DriverWorkloadPrefix + id.GetOrchestratorId() + "/" + id.GetWorkloadId() + "/" + id.GetEndpointId())
}

// DriverWorkloadPolicyKey is the key of what applies to an endpoint of a workload.
func DriverWorkloadPolicyKey(id *proto.WorkloadEndpointID) string {
	return clean(DriverWorkloadPolicyPrefix + id.GetOrchestratorId() + "/" + id.GetWorkloadId() + "/" + id.GetEndpointId())
}

// driverKey gives the key of a driver's message and the prefix it must have.
func driverKey(m pb.Message) (key, prefix string) {
	switch m := m.(type) {
	case *proto.IPSetUpdate:
		return clean(DriverIPSetPrefix + m.GetId()), DriverIPSetPrefix
	case *proto.ActiveProfileUpdate:
		return clean(DriverProfilePrefix + m.GetId().GetName()), DriverProfilePrefix
	case *proto.ActivePolicyUpdate:
		return clean(DriverPolicyPrefix + m.GetId().GetTier() + "/" + m.GetId().GetName()), DriverPolicyPrefix
	case *proto.WorkloadEndpointUpdate:
		return DriverWorkloadKey(m.GetId()), DriverWorkloadPrefix
	case *proto.WorkloadPolicy:
		return DriverWorkloadPolicyKey(m.GetId()), DriverWorkloadPolicyPrefix
	case *proto.IPSetMember:
		return clean(DriverSetMemberPrefix + m.GetSetId() + "/" + m.GetMember()), DriverSetMemberPrefix
	case *proto.HostMetadataUpdate:
		return clean(DriverHostPrefix + m.GetHostname()), DriverHostPrefix
	case *proto.IPAMPoolUpdate:
		return clean(DriverPoolPrefix + m.GetId()), DriverPoolPrefix
	case *proto.RouteUpdate:
		return clean(DriverRoutePrefix + m.GetDst()), DriverRoutePrefix
	case *proto.VXLANTunnelEndpointUpdate:
		return clean(DriverVTEPPrefix + m.GetNode()), DriverVTEPPrefix
	case *proto.BalancedServiceUpdate:
		return clean(DriverServicePrefix + m.GetNamespace() + "/" + m.GetName()), DriverServicePrefix
	case *proto.InSync:
		return DriverInSyncKey, ""
	}
	return "", ""
}

// newDriver is an empty message of the kind that a driver's key belongs to, nil if it is not one.
func newDriver(key string) pb.Message {
	switch {
	case key == DriverInSyncKey:
		return new(proto.InSync)
	case isUnder(key, DriverIPSetPrefix):
		return new(proto.IPSetUpdate)
	case isUnder(key, DriverProfilePrefix):
		return new(proto.ActiveProfileUpdate)
	case isUnder(key, DriverPolicyPrefix):
		return new(proto.ActivePolicyUpdate)
	case isUnder(key, DriverWorkloadPrefix):
		return new(proto.WorkloadEndpointUpdate)
	case isUnder(key, DriverWorkloadPolicyPrefix):
		return new(proto.WorkloadPolicy)
	case isUnder(key, DriverSetMemberPrefix):
		return new(proto.IPSetMember)
	case isUnder(key, DriverHostPrefix):
		return new(proto.HostMetadataUpdate)
	case isUnder(key, DriverPoolPrefix):
		return new(proto.IPAMPoolUpdate)
	case isUnder(key, DriverRoutePrefix):
		return new(proto.RouteUpdate)
	case isUnder(key, DriverVTEPPrefix):
		return new(proto.VXLANTunnelEndpointUpdate)
	case isUnder(key, DriverServicePrefix):
		return new(proto.BalancedServiceUpdate)
	}
	return nil
}
