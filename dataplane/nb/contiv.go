package nb

import (
	"net/netip"
	"strconv"

	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
)

// Keys of our own VPP plugin. vpp-agent has no equivalent: the messages are ours, the grammar of the keys is vpp-agent's.
const (
	contivPrefix          = "config/vpp/contiv/v1/"
	ContivConfigKey       = contivPrefix + "config"
	ContivEndpointPrefix  = contivPrefix + "endpoint/"
	ContivNetworkPrefix   = contivPrefix + "network/"
	ContivSourceNATPrefix = contivPrefix + "source-nat/"
	ContivServicePrefix   = contivPrefix + "service/"
	ContivFrontendPrefix  = contivPrefix + "frontend/"
	ContivRangeSetPrefix  = contivPrefix + "range-set/"

	ContivIPSetPrefix          = contivPrefix + "ip-set/"
	ContivIPSetMemberPrefix    = contivPrefix + "ip-set-member/"
	ContivPolicyPrefix         = contivPrefix + "policy/"
	ContivEndpointPolicyPrefix = contivPrefix + "endpoint-policy/"
)

// ContivEndpointKey returns the key of the plugin's data of an interface.
func ContivEndpointKey(ifName string) string { return clean(ContivEndpointPrefix + ifName) }

// ContivNetworkKey returns the key of a network. Host bits of the prefix are cleared; a prefix that cannot be parsed is used
// unchanged.
func ContivNetworkKey(prefix string) string {
	var buf keyBuf
	return cleanBytes(appendNetwork(append(buf[:0], ContivNetworkPrefix...), prefix))
}

// ContivSourceNATKey returns the key of a source NAT.
func ContivSourceNATKey(id uint32) string {
	return ContivSourceNATPrefix + strconv.FormatUint(uint64(id), 10)
}

// ContivServiceKey returns the key of a set of backends.
func ContivServiceKey(id uint64) string { return ContivServicePrefix + strconv.FormatUint(id, 16) }

// ContivRangeSetKey returns the key of a set of source addresses.
func ContivRangeSetKey(id uint64) string { return ContivRangeSetPrefix + strconv.FormatUint(id, 16) }

// ContivFrontendKey returns the key of a frontend: the plugin has one for each combination of address, protocol and port.
func ContivFrontendKey(ip string, p vpp_contiv.Frontend_Protocol, port uint32) string {
	if ip == "" {
		return ""
	}
	if a, err := netip.ParseAddr(ip); err == nil {
		ip = a.String()
	}
	var buf keyBuf
	b := append(buf[:0], ContivFrontendPrefix+"ip/"...)
	b = append(b, ip...)
	b = append(b, "/proto/"...)
	b = append(b, p.String()...)
	b = append(b, "/port/"...)
	return cleanBytes(strconv.AppendUint(b, uint64(port), 10))
}

// ContivIPSetKey returns the key of an IP set that rules refer to.
func ContivIPSetKey(id uint64) string { return ContivIPSetPrefix + strconv.FormatUint(id, 16) }

// ContivIPSetMemberKey returns the key of a member of an IP set. Protocol and port are zero unless the set is a set of ports.
func ContivIPSetMemberKey(set uint64, prefix string, protocol, port uint32) string {
	var buf keyBuf
	b := strconv.AppendUint(append(buf[:0], ContivIPSetMemberPrefix...), set, 16)
	b = appendNetwork(append(b, "/net/"...), prefix)
	if protocol != 0 || port != 0 {
		b = strconv.AppendUint(append(b, "/proto/"...), uint64(protocol), 10)
		b = strconv.AppendUint(append(b, "/port/"...), uint64(port), 10)
	}
	return cleanBytes(b)
}

// ContivPolicyKey returns the key of a policy.
func ContivPolicyKey(id uint64) string { return ContivPolicyPrefix + strconv.FormatUint(id, 16) }

// ContivEndpointPolicyKey returns the key of the policies that apply to the pod behind an interface.
func ContivEndpointPolicyKey(ifName string) string { return clean(ContivEndpointPolicyPrefix + ifName) }

// contivModels returns the models of the plugin's messages.
func contivModels() []model {
	return []model{
		singleton[vpp_contiv.Config](ContivConfigKey),
		named(ContivEndpointPrefix, func(m *vpp_contiv.Endpoint) string { return ContivEndpointKey(m.GetInterface()) }),
		named(ContivNetworkPrefix, func(m *vpp_contiv.Network) string { return ContivNetworkKey(m.GetPrefix()) }),
		named(ContivSourceNATPrefix, func(m *vpp_contiv.SourceNAT) string { return ContivSourceNATKey(m.GetId()) }),
		named(ContivServicePrefix, func(m *vpp_contiv.Service) string { return ContivServiceKey(m.GetId()) }),
		named(ContivFrontendPrefix, func(m *vpp_contiv.Frontend) string { return ContivFrontendKey(m.GetIp(), m.GetProtocol(), m.GetPort()) }),
		named(ContivRangeSetPrefix, func(m *vpp_contiv.RangeSet) string { return ContivRangeSetKey(m.GetId()) }),
		named(ContivIPSetPrefix, func(m *vpp_contiv.IPSet) string { return ContivIPSetKey(m.GetId()) }),
		named(ContivIPSetMemberPrefix, func(m *vpp_contiv.IPSetMember) string {
			return ContivIPSetMemberKey(m.GetSet(), m.GetPrefix(), m.GetProtocol(), m.GetPort())
		}),
		named(ContivPolicyPrefix, func(m *vpp_contiv.Policy) string { return ContivPolicyKey(m.GetId()) }),
		named(ContivEndpointPolicyPrefix, func(m *vpp_contiv.EndpointPolicy) string { return ContivEndpointPolicyKey(m.GetInterface()) }),
	}
}
