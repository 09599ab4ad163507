package vppfake_test

import (
	"fmt"
	"math"
	"strings"

	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

func aclScenarios() []scenario {
	return []scenario{
		{"acl_rules", aclRules},
		{"acl_interfaces", aclInterfaces},
	}
}

func aclPacketScenarios() []packetScenario {
	return []packetScenario{
		{"acl_matches", aclMatchPackets},
		{"acl_before_nat", aclNATPackets},
	}
}

// aclRule returns a rule for a protocol and port; 0 for any.
func aclRule(action acl_types.ACLAction, src, dst string, proto ip_types.IPProto, port uint16) acl_types.ACLRule {
	r := acl_types.ACLRule{IsPermit: action, SrcPrefix: ip_types.Prefix(prefixWithAddr(src)), DstPrefix: ip_types.Prefix(prefixWithAddr(dst)), Proto: proto,
		SrcportOrIcmptypeLast: math.MaxUint16, DstportOrIcmpcodeFirst: port, DstportOrIcmpcodeLast: port}
	if port == 0 {
		r.DstportOrIcmpcodeLast = math.MaxUint16
	}
	return r
}

const (
	deny   = acl_types.ACL_ACTION_API_DENY
	permit = acl_types.ACL_ACTION_API_PERMIT
)

func aclRules(s *script) {
	add := func(id uint32, tag string, rules ...acl_types.ACLRule) {
		s.do(&acl.ACLAddReplace{ACLIndex: id, Tag: tag, R: rules})
	}
	s.do(&acl.ACLPluginGetConnTableMaxEntries{})
	s.dump(&acl.ACLDump{ACLIndex: none})
	add(none, "a", aclRule(permit, "10.0.0.0/8", "192.0.2.1/32", 6, 80), aclRule(deny, "0.0.0.0/0", "192.0.2.1/32", 6, 80))
	add(none, "b", aclRule(deny, "fd00::/8", "::/0", 17, 53))
	add(none, "a")
	s.dump(&acl.ACLDump{ACLIndex: none})
	s.note("in place, tag included")
	add(1, "c", aclRule(permit, "0.0.0.0/0", "0.0.0.0/0", 0, 0))
	s.dump(&acl.ACLDump{ACLIndex: 1})
	s.dump(&acl.ACLDump{ACLIndex: 9})
	s.note("what is refused")
	add(9, "x")
	add(none, "x", aclRule(permit, "10.0.0.0/8", "fd00::1/128", 6, 80))
	bad := aclRule(permit, "10.0.0.0/8", "10.0.0.0/8", 6, 80)
	bad.DstPrefix.Len = 33
	add(none, "x", bad)
	bad.SrcPrefix.Len = 33
	add(none, "x", bad)
	ports := aclRule(permit, "10.0.0.0/8", "10.0.0.0/8", 6, 80)
	ports.DstportOrIcmpcodeLast = 79
	add(none, "x", ports)
	add(none, strings.Repeat("t", 63))
	s.note("indices are used again")
	s.do(&acl.ACLDel{ACLIndex: 0})
	s.do(&acl.ACLDel{ACLIndex: 2})
	s.do(&acl.ACLDel{ACLIndex: 2})
	add(none, "y")
	add(none, "z")
	add(none, "z")
	s.dump(&acl.ACLDump{ACLIndex: none})
}

func aclInterfaces(s *script) {
	i, j := s.loop(), s.loop()
	for _, tag := range []string{"a", "b", "c"} {
		s.do(&acl.ACLAddReplace{ACLIndex: none, Tag: tag, R: []acl_types.ACLRule{aclRule(permit, "0.0.0.0/0", "0.0.0.0/0", 0, 0)}})
	}
	list := func(i interface_types.InterfaceIndex, in uint8, acls ...uint32) {
		s.do(&acl.ACLInterfaceSetACLList{SwIfIndex: i, NInput: in, Acls: acls})
	}
	s.dump(&acl.ACLInterfaceListDump{SwIfIndex: index(none)})
	list(i, 2, 1, 0, 2)
	list(j, 0, 2)
	s.dump(&acl.ACLInterfaceListDump{SwIfIndex: index(none)})
	list(i, 1, 1)
	s.dump(&acl.ACLInterfaceListDump{SwIfIndex: i})
	s.dump(&acl.ACLInterfaceListDump{SwIfIndex: 99})
	s.note("what is refused; an ACL that is there twice in one direction only spoils that one")
	list(99, 1, 1)
	list(i, 1, 9)
	list(i, 2, 1, 1)
	list(i, 1, 1, 2, 2)
	s.dump(&acl.ACLInterfaceListDump{SwIfIndex: i})
	s.do(&acl.ACLDel{ACLIndex: 1})
	s.do(&acl.ACLDel{ACLIndex: 2})
	s.note("the lists of an interface go with it")
	s.do(&interfaces.DeleteLoopback{SwIfIndex: j})
	s.do(&acl.ACLDel{ACLIndex: 2})
	s.loop()
	s.dump(&acl.ACLInterfaceListDump{SwIfIndex: j})
	list(i, 0)
	s.do(&acl.ACLDel{ACLIndex: 1})
}

// aclMatchPackets tests that the first matching rule of the first matching ACL decides.
func aclMatchPackets(ps *packetScript) {
	for n := index(1); n <= 2; n++ {
		ps.addr(n, fmt.Sprintf("10.1.%d.1/24", n))
		ps.host(n, fmt.Sprintf("10.1.%d.2", n), int(n))
		ps.addr(n, fmt.Sprintf("fd00:%d::1/64", n))
		ps.host(n, fmt.Sprintf("fd00:%d::2", n), int(n))
	}
	ping := aclRule(deny, "0.0.0.0/0", "10.1.2.0/24", 1, 0)
	ping.SrcportOrIcmptypeFirst, ping.SrcportOrIcmptypeLast = 8, 8
	syn := aclRule(deny, "0.0.0.0/0", "10.1.2.0/24", 6, 82)
	syn.TCPFlagsMask, syn.TCPFlagsValue = 0x12, 0x02
	ps.do(&acl.ACLAddReplace{ACLIndex: none, Tag: "a", R: []acl_types.ACLRule{
		aclRule(permit, "10.1.1.2/32", "10.1.2.2/32", 6, 80), aclRule(deny, "0.0.0.0/0", "10.1.2.2/32", 6, 80),
		aclRule(deny, "10.1.1.2/32", "10.1.2.2/32", 17, 80), ping, syn, aclRule(deny, "::/0", "fd00:2::2/128", 6, 80)}})
	ps.do(&acl.ACLAddReplace{ACLIndex: none, Tag: "rest", R: []acl_types.ACLRule{
		aclRule(permit, "0.0.0.0/0", "0.0.0.0/0", 0, 0), aclRule(permit, "::/0", "::/0", 0, 0)}})
	ps.do(&acl.ACLInterfaceSetACLList{SwIfIndex: 1, NInput: 2, Acls: []uint32{0, 1}})
	ps.out.Reset()
	ps.note("one client may, others may not")
	ps.tcp(1, "10.1.1.2", 1000, "10.1.2.2", 80)
	ps.tcp(1, "10.1.1.3", 1000, "10.1.2.2", 80)
	ps.tcp(1, "10.1.1.3", 1000, "10.1.2.2", 81)
	ps.udp(1, "10.1.1.2", 1000, "10.1.2.2", 80)
	ps.udp(1, "10.1.1.3", 1000, "10.1.2.2", 80)
	ps.note("pings, SYNs")
	ps.ping(1, "10.1.1.2", "10.1.2.2", 7)
	ps.tcp(1, "10.1.1.2", 1000, "10.1.2.2", 82)
	ps.tcp(1, "10.1.1.2", 1000, "10.1.2.2", 82, vppfake.FlagACK)
	ps.note("IPv6")
	ps.tcp(1, "fd00:1::2", 1000, "fd00:2::2", 80)
	ps.tcp(1, "fd00:1::2", 1000, "fd00:2::2", 81)
	ps.note("the other way")
	ps.tcp(2, "10.1.2.2", 80, "10.1.1.3", 1000, vppfake.FlagSYN, vppfake.FlagACK)
	ps.note("the same on the way out; without the last ACL nothing else passes")
	ps.do(&acl.ACLInterfaceSetACLList{SwIfIndex: 1})
	ps.do(&acl.ACLInterfaceSetACLList{SwIfIndex: 2, Acls: []uint32{0}})
	ps.tcp(1, "10.1.1.2", 1000, "10.1.2.2", 80)
	ps.tcp(1, "10.1.1.3", 1000, "10.1.2.2", 80)
	ps.tcp(1, "10.1.1.2", 1000, "10.1.2.2", 81)
}

// aclNATPackets tests that VPP evaluates the ACLs of an interface before NAT44 translates.
func aclNATPackets(ps *packetScript) {
	natNode(ps)
	ps.do(balanced(true, "10.96.0.10", tcpProto, selfTwice, 0, backend("10.1.1.3", 8080, 1, 1), backend("10.1.1.3", 8081, 1, 1)))
	ps.do(&acl.ACLAddReplace{ACLIndex: none, Tag: "a", R: []acl_types.ACLRule{
		aclRule(permit, "10.1.1.2/32", "10.96.0.10/32", 6, 80), aclRule(deny, "0.0.0.0/0", "10.96.0.10/32", 6, 80),
		aclRule(permit, "0.0.0.0/0", "0.0.0.0/0", 0, 0)}})
	ps.do(&acl.ACLInterfaceSetACLList{SwIfIndex: 1, NInput: 1, Acls: []uint32{0}})
	ps.out.Reset()
	ps.tcp(1, "10.1.1.2", 1000, "10.96.0.10", 80)
	ps.tcp(1, "10.1.1.2", 1000, "10.96.0.10", 80, vppfake.FlagACK)
	ps.tcp(1, "10.1.1.5", 1000, "10.96.0.10", 80)
	ps.tcp(1, "10.1.1.5", 1000, "10.1.1.3", 8080)
}
