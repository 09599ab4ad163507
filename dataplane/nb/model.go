package nb

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	linux_interfaces "contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	linux_l3 "contiv.dev/vswitch/dataplane/nb/linux/l3"
	vpp_acl "contiv.dev/vswitch/dataplane/nb/vpp/acl"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l2 "contiv.dev/vswitch/dataplane/nb/vpp/l2"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
)

// Key is the key of a configured object. It fails for a message that is not one,
// and for an object whose name is empty or leads out of its kind ("..").
func Key(m proto.Message) (string, error) {
	key, prefix := keyAndPrefix(m)
	if key == "" {
		return "", fmt.Errorf("nb: %s is not a configured object", kindOf(m))
	}
	if prefix != "" && !isUnder(key, prefix) {
		return "", fmt.Errorf("nb: %s has no usable name: its key would be %q", kindOf(m), key)
	}
	return key, nil
}

// keyAndPrefix gives the key of m and the prefix it must have, which is empty for
// a singleton. The key is empty if m is of no known kind.
func keyAndPrefix(m proto.Message) (key, prefix string) {
	switch m := m.(type) {
	case *vpp_interfaces.Interface:
		return VppInterfaceKey(m.GetName()), VppInterfacePrefix
	case *vpp_l2.BridgeDomain:
		return BridgeDomainKey(m.GetName()), BridgeDomainPrefix
	case *vpp_l2.FIBEntry:
		return FIBKey(m.GetBridgeDomain(), m.GetPhysAddress()), FIBPrefix
	case *vpp_l2.XConnectPair:
		return XConnectKey(m.GetReceiveInterface()), XConnectPrefix
	case *vpp_l3.ARPEntry:
		return ARPKey(m.GetInterface(), m.GetIpAddress()), ARPPrefix
	case *vpp_l3.Route:
		return RouteKey(m), RoutePrefix
	case *vpp_l3.VrfTable:
		return VrfTableKey(m.GetId(), m.GetProtocol()), VrfTablePrefix
	case *vpp_l3.ProxyARP:
		return ProxyARPKey, ""
	case *vpp_l3.IPScanNeighbor:
		return IPScanNeighborKey, ""
	case *vpp_nat.Nat44Global:
		return Nat44GlobalKey, ""
	case *vpp_nat.DNat44:
		return DNat44Key(m.GetLabel()), DNat44Prefix
	case *vpp_nat.Nat44Interface:
		return Nat44InterfaceKey(m.GetName()), Nat44InterfacePrefix
	case *vpp_nat.Nat44AddressPool:
		return Nat44AddressPoolKey(m), Nat44AddressPoolPrefix
	case *vpp_acl.ACL:
		return ACLKey(m.GetName()), ACLPrefix
	case *linux_interfaces.Interface:
		return LinuxInterfaceKey(m.GetName()), LinuxInterfacePrefix
	case *linux_l3.ARPEntry:
		return LinuxARPKey(m.GetInterface(), m.GetIpAddress()), LinuxARPPrefix
	case *linux_l3.Route:
		return LinuxRouteKey(m.GetDstNetwork(), m.GetOutgoingInterface()), LinuxRoutePrefix
	}
	if key, prefix := windowsKey(m); key != "" || prefix != "" {
		return key, prefix
	}
	if key, prefix := nodePortsKey(m); key != "" || prefix != "" {
		return key, prefix
	}
	if key, prefix := contivKey(m); key != "" || prefix != "" {
		return key, prefix
	}
	return driverKey(m)
}

// New is an empty message of the kind that key belongs to.
func New(key string) (proto.Message, error) {
	switch key {
	case ProxyARPKey:
		return new(vpp_l3.ProxyARP), nil
	case IPScanNeighborKey:
		return new(vpp_l3.IPScanNeighbor), nil
	case Nat44GlobalKey:
		return new(vpp_nat.Nat44Global), nil
	}
	switch {
	case isUnder(key, VppInterfacePrefix):
		return new(vpp_interfaces.Interface), nil
	case isUnder(key, BridgeDomainPrefix):
		return new(vpp_l2.BridgeDomain), nil
	case isUnder(key, FIBPrefix):
		return new(vpp_l2.FIBEntry), nil
	case isUnder(key, XConnectPrefix):
		return new(vpp_l2.XConnectPair), nil
	case isUnder(key, ARPPrefix):
		return new(vpp_l3.ARPEntry), nil
	case isUnder(key, RoutePrefix):
		return new(vpp_l3.Route), nil
	case isUnder(key, VrfTablePrefix):
		return new(vpp_l3.VrfTable), nil
	case isUnder(key, DNat44Prefix):
		return new(vpp_nat.DNat44), nil
	case isUnder(key, Nat44InterfacePrefix):
		return new(vpp_nat.Nat44Interface), nil
	case isUnder(key, Nat44AddressPoolPrefix):
		return new(vpp_nat.Nat44AddressPool), nil
	case isUnder(key, ACLPrefix):
		return new(vpp_acl.ACL), nil
	case isUnder(key, LinuxInterfacePrefix):
		return new(linux_interfaces.Interface), nil
	case isUnder(key, LinuxARPPrefix):
		return new(linux_l3.ARPEntry), nil
	case isUnder(key, LinuxRoutePrefix):
		return new(linux_l3.Route), nil
	}
	if m := newWindows(key); m != nil {
		return m, nil
	}
	if m := newNodePorts(key); m != nil {
		return m, nil
	}
	if m := newContiv(key); m != nil {
		return m, nil
	}
	if m := newDriver(key); m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("nb: key %q is of no known kind", key)
}

// MarshalJSON is the JSON of m as vpp-agent's tools write it: the field names of
// the .proto files, enum values by name, zero values left out.
func MarshalJSON(m proto.Message) ([]byte, error) {
	if m == nil {
		return nil, errors.New("nb: no message to encode")
	}
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("nb: encode %s: %w", kindOf(m), err)
	}
	// protojson varies its white space from build to build on purpose. What is
	// kept in etcd must not change with the build.
	var out bytes.Buffer
	out.Grow(len(raw))
	if err := json.Compact(&out, raw); err != nil {
		return nil, fmt.Errorf("nb: encode %s: %w", kindOf(m), err)
	}
	return out.Bytes(), nil
}

// UnmarshalJSON reads JSON into m, replacing what m holds. A field that m does not
// have is an error that names the field: a setting that is silently ignored is
// worse than one that is refused.
func UnmarshalJSON(data []byte, m proto.Message) error {
	if m == nil {
		return errors.New("nb: no message to decode into")
	}
	if err := protojson.Unmarshal(data, m); err != nil {
		return fmt.Errorf("nb: decode %s: %w", kindOf(m), err)
	}
	return nil
}

// kindOf is the full protobuf name of m's type, fit for an error.
func kindOf(m proto.Message) string {
	if m == nil {
		return "<nil>"
	}
	return string(m.ProtoReflect().Descriptor().FullName())
}
