package nb

import (
	"net/netip"
	"strconv"

	"google.golang.org/protobuf/proto"

	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
)

// Keys of our own VPP plugin. vpp-agent has nothing of the kind: the messages are ours, the grammar of the keys is vpp-agent's.
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

// ContivEndpointKey is the key of the plugin's data of an interface.
func ContivEndpointKey(ifName string) string { return clean(ContivEndpointPrefix + ifName) }

// ContivNetworkKey is the key of a network. The prefix is reduced to its network; one that cannot be parsed is kept as it is.
func ContivNetworkKey(prefix string) string {
	var buf keyBuf
	return cleanBytes(appendNetwork(append(buf[:0], ContivNetworkPrefix...), prefix))
}

// ContivSourceNATKey is the key of a source NAT.
func ContivSourceNATKey(id uint32) string {
	return ContivSourceNATPrefix + strconv.FormatUint(uint64(id), 10)
}

// ContivServiceKey is the key of a set of backends.
func ContivServiceKey(id uint64) string { return ContivServicePrefix + strconv.FormatUint(id, 16) }

// ContivRangeSetKey is the key of a set of source addresses.
func ContivRangeSetKey(id uint64) string { return ContivRangeSetPrefix + strconv.FormatUint(id, 16) }

// ContivFrontendKey is the key of a frontend: the plugin has one for an address, protocol and port.
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

// ContivIPSetKey is the key of a set that rules refer to.
func ContivIPSetKey(id uint64) string { return ContivIPSetPrefix + strconv.FormatUint(id, 16) }

// ContivIPSetMemberKey is the key of a member of a set. Protocol and port are those of a set of ports, else zeros.
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

// ContivPolicyKey is the key of a policy.
func ContivPolicyKey(id uint64) string { return ContivPolicyPrefix + strconv.FormatUint(id, 16) }

// ContivEndpointPolicyKey is the key of what applies to the pod behind an interface.
func ContivEndpointPolicyKey(ifName string) string { return clean(ContivEndpointPolicyPrefix + ifName) }

// contivKey gives the key of one of the plugin's messages and the prefix it must have.
func contivKey(m proto.Message) (key, prefix string) {
	switch m := m.(type) {
	case *vpp_contiv.Config:
		return ContivConfigKey, ""
	case *vpp_contiv.Endpoint:
		return ContivEndpointKey(m.GetInterface()), ContivEndpointPrefix
	case *vpp_contiv.Network:
		return ContivNetworkKey(m.GetPrefix()), ContivNetworkPrefix
	case *vpp_contiv.SourceNAT:
		return ContivSourceNATKey(m.GetId()), ContivSourceNATPrefix
	case *vpp_contiv.Service:
		return ContivServiceKey(m.GetId()), ContivServicePrefix
	case *vpp_contiv.Frontend:
		return ContivFrontendKey(m.GetIp(), m.GetProtocol(), m.GetPort()), ContivFrontendPrefix
	case *vpp_contiv.RangeSet:
		return ContivRangeSetKey(m.GetId()), ContivRangeSetPrefix
	case *vpp_contiv.IPSet:
		return ContivIPSetKey(m.GetId()), ContivIPSetPrefix
	case *vpp_contiv.IPSetMember:
		return ContivIPSetMemberKey(m.GetSet(), m.GetPrefix(), m.GetProtocol(), m.GetPort()), ContivIPSetMemberPrefix
	case *vpp_contiv.Policy:
		return ContivPolicyKey(m.GetId()), ContivPolicyPrefix
	case *vpp_contiv.EndpointPolicy:
		return ContivEndpointPolicyKey(m.GetInterface()), ContivEndpointPolicyPrefix
	}
	return "", ""
}

// newContiv is an empty message of the kind that a key of the plugin belongs to, nil if it is not one.
func newContiv(key string) proto.Message {
	switch {
	case key == ContivConfigKey:
		return new(vpp_contiv.Config)
	case isUnder(key, ContivEndpointPrefix):
		return new(vpp_contiv.Endpoint)
	case isUnder(key, ContivNetworkPrefix):
		return new(vpp_contiv.Network)
	case isUnder(key, ContivSourceNATPrefix):
		return new(vpp_contiv.SourceNAT)
	case isUnder(key, ContivServicePrefix):
		return new(vpp_contiv.Service)
	case isUnder(key, ContivFrontendPrefix):
		return new(vpp_contiv.Frontend)
	case isUnder(key, ContivRangeSetPrefix):
		return new(vpp_contiv.RangeSet)
	case isUnder(key, ContivIPSetPrefix):
		return new(vpp_contiv.IPSet)
	case isUnder(key, ContivIPSetMemberPrefix):
		return new(vpp_contiv.IPSetMember)
	case isUnder(key, ContivPolicyPrefix):
		return new(vpp_contiv.Policy)
	case isUnder(key, ContivEndpointPolicyPrefix):
		return new(vpp_contiv.EndpointPolicy)
	}
	return nil
}
