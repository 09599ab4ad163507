package nb

import (
	"reflect"
	"slices"

	"google.golang.org/protobuf/proto"

	linux_interfaces "contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	linux_l3 "contiv.dev/vswitch/dataplane/nb/linux/l3"
	vpp_acl "contiv.dev/vswitch/dataplane/nb/vpp/acl"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l2 "contiv.dev/vswitch/dataplane/nb/vpp/l2"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
)

// model describes one kind of configured objects for the rest of the package.
type model struct {
	prefix string // of the kind's keys; for a singleton, the key itself
	single bool
	typ    reflect.Type
	key    func(proto.Message) string
	empty  func() proto.Message
}

// has reports whether a key belongs to the kind and has a name that is not empty and does not lead out of the
// kind.
func (m *model) has(key string) bool {
	if m.single {
		return key == m.prefix
	}
	return isUnder(key, m.prefix)
}

type message[T any] interface {
	*T
	proto.Message
}

// named returns a kind with one key per object, below prefix.
func named[T any, M message[T]](prefix string, key func(M) string) model {
	return model{
		prefix: prefix, typ: reflect.TypeFor[M](), key: func(m proto.Message) string { return key(m.(M)) },
		empty: func() proto.Message { return M(new(T)) },
	}
}

// singleton returns a kind that has exactly one object.
func singleton[T any, M message[T]](key string) model {
	m := named(key, func(M) string { return key })
	m.single = true
	return m
}

// models lists all kinds; add a new kind here.
var models = slices.Concat(vppModels(), linuxModels(), windowsModels(), nodePortsModels(), contivModels(), driverModels())

var byType = func() map[reflect.Type]*model {
	out := make(map[reflect.Type]*model, len(models))
	for i := range models {
		out[models[i].typ] = &models[i]
	}
	return out
}()

// vppModels returns the models of vpp-agent's messages for VPP.
func vppModels() []model {
	return []model{
		named(VppInterfacePrefix, func(m *vpp_interfaces.Interface) string { return VppInterfaceKey(m.GetName()) }),
		named(BridgeDomainPrefix, func(m *vpp_l2.BridgeDomain) string { return BridgeDomainKey(m.GetName()) }),
		named(FIBPrefix, func(m *vpp_l2.FIBEntry) string { return FIBKey(m.GetBridgeDomain(), m.GetPhysAddress()) }),
		named(XConnectPrefix, func(m *vpp_l2.XConnectPair) string { return XConnectKey(m.GetReceiveInterface()) }),
		named(ARPPrefix, func(m *vpp_l3.ARPEntry) string { return ARPKey(m.GetInterface(), m.GetIpAddress()) }),
		named(RoutePrefix, func(m *vpp_l3.Route) string { return RouteKey(m) }),
		named(VrfTablePrefix, func(m *vpp_l3.VrfTable) string { return VrfTableKey(m.GetId(), m.GetProtocol()) }),
		singleton[vpp_l3.ProxyARP](ProxyARPKey),
		singleton[vpp_l3.IPScanNeighbor](IPScanNeighborKey),
		singleton[vpp_nat.Nat44Global](Nat44GlobalKey),
		named(DNat44Prefix, func(m *vpp_nat.DNat44) string { return DNat44Key(m.GetLabel()) }),
		named(Nat44InterfacePrefix, func(m *vpp_nat.Nat44Interface) string { return Nat44InterfaceKey(m.GetName()) }),
		named(Nat44AddressPoolPrefix, func(m *vpp_nat.Nat44AddressPool) string { return Nat44AddressPoolKey(m) }),
		named(ACLPrefix, func(m *vpp_acl.ACL) string { return ACLKey(m.GetName()) }),
	}
}

// linuxModels returns the models of vpp-agent's messages for Linux.
func linuxModels() []model {
	return []model{
		named(LinuxInterfacePrefix, func(m *linux_interfaces.Interface) string { return LinuxInterfaceKey(m.GetName()) }),
		named(LinuxARPPrefix, func(m *linux_l3.ARPEntry) string { return LinuxARPKey(m.GetInterface(), m.GetIpAddress()) }),
		named(LinuxRoutePrefix, func(m *linux_l3.Route) string { return LinuxRouteKey(m.GetDstNetwork(), m.GetOutgoingInterface()) }),
	}
}
