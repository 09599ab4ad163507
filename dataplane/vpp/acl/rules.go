package acl

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"

	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/ip_types"

	vpp_acl "contiv.dev/vswitch/dataplane/nb/vpp/acl"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

const protoICMP, protoICMPv6 = 1, 58

// aclRest returns rules that permit everything.
func aclRest() []acl_types.ACLRule {
	var out []acl_types.ACLRule
	for _, all := range []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)} {
		out = append(out, acl_types.ACLRule{
			IsPermit: acl_types.ACL_ACTION_API_PERMIT, SrcPrefix: kit.ToPrefix(all), DstPrefix: kit.ToPrefix(all),
			SrcportOrIcmptypeLast: math.MaxUint16, DstportOrIcmpcodeLast: math.MaxUint16,
		})
	}
	return out
}

func allPorts(first, last uint16) bool { return first == 0 && last == math.MaxUint16 }

// validateACL rejects rules that VPP would reject, or would interpret differently.
func validateACL(v *vpp_acl.ACL) error {
	var f kit.Faults
	f.Name("name", v.Name)
	if strings.HasPrefix(v.Name, aclRestTag) {
		f.Add("name", "begins with %s, which is taken", aclRestTag)
	}
	for i, r := range v.Rules {
		validateACLRule(&f, "rules["+strconv.Itoa(i)+"].", r)
	}
	for field, names := range map[string][]string{
		"ingress": v.GetInterfaces().GetIngress(), "egress": v.GetInterfaces().GetEgress(),
	} {
		seen := map[string]bool{}
		for i, name := range names {
			at := "interfaces." + field + "[" + strconv.Itoa(i) + "]"
			f.Name(at, name)
			if seen[name] {
				f.Add(at, "%s is there twice", name)
			}
			seen[name] = true
		}
	}
	return f.Err()
}

func validateACLRule(f *kit.Faults, field string, r *vpp_acl.ACL_Rule) {
	if _, known := vpp_acl.ACL_Rule_Action_name[int32(r.GetAction())]; !known {
		f.Add(field+"action", "%d is not known", r.GetAction())
	}
	if r.GetMacipRule() != nil {
		f.Add(field+"macip_rule", "is not supported: say ip_rule")
	}
	ip := r.GetIpRule()
	if ip == nil {
		f.Add(field+"ip_rule", "is not set")
		return
	}
	src, dst, err := aclNetworks(ip.GetIp())
	if err != nil {
		f.Add(field+"ip_rule.ip", "%v", err)
		return
	}
	if ip.GetIp().GetProtocol() > math.MaxUint8 {
		f.Add(field+"ip_rule.ip.protocol", "%d is not a protocol", ip.GetIp().GetProtocol())
	}
	if src.Addr().Is4() != dst.Addr().Is4() {
		f.Add(field+"ip_rule.ip", "%s and %s are of different families", src, dst)
	}
	validateACLPorts(f, field+"ip_rule.", ip, src.Addr().Is6())
}

func validateACLPorts(f *kit.Faults, field string, ip *vpp_acl.ACL_Rule_IpRule, v6 bool) {
	n := 0
	check := func(proto uint32, name string) {
		n++
		if p := ip.GetIp().GetProtocol(); p != 0 && p != proto {
			f.Add(field+"ip.protocol", "%d is not that of %s", p, name)
		}
	}
	ports := func(name string, r *vpp_acl.ACL_Rule_IpRule_PortRange) {
		if r != nil && (r.LowerPort > r.UpperPort || r.UpperPort > math.MaxUint16) {
			f.Add(field+name, "%d to %d is not a range of ports", r.LowerPort, r.UpperPort)
		}
	}
	if t := ip.GetTcp(); t != nil {
		check(kit.ProtoTCP, "tcp")
		ports("tcp.destination_port_range", t.DestinationPortRange)
		ports("tcp.source_port_range", t.SourcePortRange)
		if t.TcpFlagsMask > math.MaxUint8 || t.TcpFlagsValue > math.MaxUint8 {
			f.Add(field+"tcp.tcp_flags_mask", "TCP has 8 flags")
		}
	}
	if u := ip.GetUdp(); u != nil {
		check(kit.ProtoUDP, "udp")
		ports("udp.destination_port_range", u.DestinationPortRange)
		ports("udp.source_port_range", u.SourcePortRange)
	}
	if i := ip.GetIcmp(); i != nil {
		check(icmpOf(v6), "icmp")
		if i.Icmpv6 != v6 {
			f.Add(field+"icmp.icmpv6", "does not go with the networks")
		}
		for name, r := range map[string]*vpp_acl.ACL_Rule_IpRule_Icmp_Range{
			"icmp.icmp_type_range": i.IcmpTypeRange, "icmp.icmp_code_range": i.IcmpCodeRange,
		} {
			if r != nil && (r.First > r.Last || r.Last > math.MaxUint8) {
				f.Add(field+name, "%d to %d is not a range", r.First, r.Last)
			}
		}
	}
	if n > 1 {
		f.Add(field+"tcp", "only one of tcp, udp and icmp can be set")
	}
}

func icmpOf(v6 bool) uint32 {
	if v6 {
		return protoICMPv6
	}
	return protoICMP
}

// aclNetworks returns the networks of a rule. A network that is not set becomes all addresses of the other
// one's family.
func aclNetworks(ip *vpp_acl.ACL_Rule_IpRule_Ip) (src, dst netip.Prefix, err error) {
	if ip.GetSourceNetwork() == "" && ip.GetDestinationNetwork() == "" {
		return src, dst, fmt.Errorf("has no network: say 0.0.0.0/0 or ::/0")
	}
	if src, err = aclNetwork(ip.GetSourceNetwork()); err != nil {
		return src, dst, fmt.Errorf("source_network %w", err)
	}
	if dst, err = aclNetwork(ip.GetDestinationNetwork()); err != nil {
		return src, dst, fmt.Errorf("destination_network %w", err)
	}
	all := func(like netip.Prefix) netip.Prefix {
		if like.Addr().Is4() {
			return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		}
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	switch {
	case !src.IsValid():
		src = all(dst)
	case !dst.IsValid():
		dst = all(src)
	}
	return src, dst, nil
}

func aclNetwork(text string) (netip.Prefix, error) {
	if text == "" {
		return netip.Prefix{}, nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4In6() {
		return p, fmt.Errorf("%q is not a network", text)
	}
	return p.Masked(), nil
}

// aclRules returns the rules of a validated ACL in VPP's format.
func aclRules(v *vpp_acl.ACL) []acl_types.ACLRule {
	out := make([]acl_types.ACLRule, len(v.Rules))
	for i, r := range v.Rules {
		out[i] = aclRule(r)
	}
	return out
}

func aclRule(r *vpp_acl.ACL_Rule) acl_types.ACLRule {
	ip := r.GetIpRule()
	src, dst, _ := aclNetworks(ip.GetIp())
	out := acl_types.ACLRule{
		IsPermit: acl_types.ACLAction(r.GetAction()), SrcPrefix: kit.ToPrefix(src), DstPrefix: kit.ToPrefix(dst),
		Proto: ip_types.IPProto(ip.GetIp().GetProtocol()), SrcportOrIcmptypeLast: math.MaxUint16,
		DstportOrIcmpcodeLast: math.MaxUint16,
	}
	ports := func(from, to *vpp_acl.ACL_Rule_IpRule_PortRange) {
		if from != nil {
			out.SrcportOrIcmptypeFirst, out.SrcportOrIcmptypeLast = uint16(from.LowerPort), uint16(from.UpperPort)
		}
		if to != nil {
			out.DstportOrIcmpcodeFirst, out.DstportOrIcmpcodeLast = uint16(to.LowerPort), uint16(to.UpperPort)
		}
	}
	switch {
	case ip.GetTcp() != nil:
		t := ip.GetTcp()
		out.Proto = kit.ProtoTCP
		ports(t.SourcePortRange, t.DestinationPortRange)
		out.TCPFlagsMask, out.TCPFlagsValue = uint8(t.TcpFlagsMask), uint8(t.TcpFlagsValue)
	case ip.GetUdp() != nil:
		out.Proto = kit.ProtoUDP
		ports(ip.GetUdp().SourcePortRange, ip.GetUdp().DestinationPortRange)
	case ip.GetIcmp() != nil:
		out.Proto = ip_types.IPProto(icmpOf(src.Addr().Is6()))
		asPorts := func(r *vpp_acl.ACL_Rule_IpRule_Icmp_Range) *vpp_acl.ACL_Rule_IpRule_PortRange {
			if r == nil {
				return nil
			}
			return &vpp_acl.ACL_Rule_IpRule_PortRange{LowerPort: r.First, UpperPort: r.Last}
		}
		ports(asPorts(ip.GetIcmp().IcmpTypeRange), asPorts(ip.GetIcmp().IcmpCodeRange))
	}
	return out
}

// fromACLRules converts an ACL from VPP's format.
func fromACLRules(name string, rules []acl_types.ACLRule) *vpp_acl.ACL {
	v := &vpp_acl.ACL{Name: name}
	for _, r := range rules {
		v.Rules = append(v.Rules, &vpp_acl.ACL_Rule{Action: vpp_acl.ACL_Rule_Action(r.IsPermit), IpRule: fromACLRule(r)})
	}
	return v
}

func fromACLRule(r acl_types.ACLRule) *vpp_acl.ACL_Rule_IpRule {
	out := &vpp_acl.ACL_Rule_IpRule{Ip: &vpp_acl.ACL_Rule_IpRule_Ip{
		SourceNetwork: kit.FromPrefix(r.SrcPrefix).String(), DestinationNetwork: kit.FromPrefix(r.DstPrefix).String(), Protocol: uint32(r.Proto),
	}}
	ports := func(first, last uint16) *vpp_acl.ACL_Rule_IpRule_PortRange {
		return &vpp_acl.ACL_Rule_IpRule_PortRange{LowerPort: uint32(first), UpperPort: uint32(last)}
	}
	icmp := func(first, last uint16) *vpp_acl.ACL_Rule_IpRule_Icmp_Range {
		if allPorts(first, last) {
			return nil
		}
		return &vpp_acl.ACL_Rule_IpRule_Icmp_Range{First: uint32(first), Last: uint32(last)}
	}
	from, to := ports(r.SrcportOrIcmptypeFirst, r.SrcportOrIcmptypeLast), ports(r.DstportOrIcmpcodeFirst, r.DstportOrIcmpcodeLast)
	switch r.Proto {
	case kit.ProtoTCP:
		out.Tcp = &vpp_acl.ACL_Rule_IpRule_Tcp{SourcePortRange: from, DestinationPortRange: to,
			TcpFlagsMask: uint32(r.TCPFlagsMask), TcpFlagsValue: uint32(r.TCPFlagsValue)}
	case kit.ProtoUDP:
		out.Udp = &vpp_acl.ACL_Rule_IpRule_Udp{SourcePortRange: from, DestinationPortRange: to}
	case protoICMP, protoICMPv6:
		out.Icmp = &vpp_acl.ACL_Rule_IpRule_Icmp{Icmpv6: r.Proto == protoICMPv6,
			IcmpTypeRange: icmp(r.SrcportOrIcmptypeFirst, r.SrcportOrIcmptypeLast),
			IcmpCodeRange: icmp(r.DstportOrIcmpcodeFirst, r.DstportOrIcmpcodeLast)}
	}
	return out
}
