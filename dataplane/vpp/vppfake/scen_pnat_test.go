package vppfake_test

import (
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/feature"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/pnat"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

func pnatScenarios() []scenario {
	return []scenario{
		{"pnat_bindings", pnatBindings},
		{"pnat_interfaces", pnatInterfaces},
	}
}

func pnatPacketScenarios() []packetScenario {
	return []packetScenario{
		{"pnat_before_nat", pnatPackets},
	}
}

// aliasIn and aliasOut are the bindings of an address that goes by another one where packets come in and leave.
func aliasIn(place, alias string, proto uint8, port uint16) *pnat.PnatBindingAddV2 {
	return &pnat.PnatBindingAddV2{
		Match: pnat.PnatMatchTuple{Dst: addr4(place), Proto: ip_types.IPProto(proto), Dport: port,
			Mask: pnat.PNAT_DA | pnat.PNAT_DPORT | pnat.PNAT_PROTO},
		Rewrite: pnat.PnatRewriteTuple{Dst: addr4(alias), Mask: pnat.PNAT_DA},
	}
}

func aliasOut(place, alias string, proto uint8, port uint16) *pnat.PnatBindingAddV2 {
	return &pnat.PnatBindingAddV2{
		Match: pnat.PnatMatchTuple{Src: addr4(alias), Proto: ip_types.IPProto(proto), Sport: port,
			Mask: pnat.PNAT_SA | pnat.PNAT_SPORT | pnat.PNAT_PROTO},
		Rewrite: pnat.PnatRewriteTuple{Src: addr4(place), Mask: pnat.PNAT_SA},
	}
}

func (s *script) attach(i index, hook pnat.PnatAttachmentPoint, id uint32) {
	s.do(&pnat.PnatBindingAttach{SwIfIndex: i, Attachment: hook, BindingIndex: id})
}

func (s *script) detach(i index, hook pnat.PnatAttachmentPoint, id uint32) {
	s.do(&pnat.PnatBindingDetach{SwIfIndex: i, Attachment: hook, BindingIndex: id})
}

// pnatOn says whether the features are on. Reassembly is counted.
func (s *script) pnatOn(i index) {
	for _, f := range [][2]string{{"ip4-unicast", "ip4-sv-reassembly-feature"}, {"ip4-unicast", "pnat-input"},
		{"ip4-output", "ip4-sv-reassembly-output-feature"}, {"ip4-output", "pnat-output"}} {
		s.do(&feature.FeatureIsEnabled{SwIfIndex: i, ArcName: f[0], FeatureName: f[1]})
	}
}

const (
	in  = pnat.PNAT_IP4_INPUT
	out = pnat.PNAT_IP4_OUTPUT
)

func pnatBindings(s *script) {
	i, j := s.loopUp(), s.loopUp()
	s.dump(&pnat.PnatBindingsGet{})
	s.dump(&pnat.PnatInterfacesGet{})
	one, two := aliasIn("192.0.2.1", "254.0.0.1", 6, 80), aliasIn("192.0.2.2", "254.0.0.2", 17, 80)
	s.do(one)
	s.do(one)
	s.do(two)
	s.do(aliasOut("192.0.2.1", "254.0.0.1", 6, 80))
	s.note("what is refused")
	s.do(&pnat.PnatBindingAddV2{Match: one.Match})
	s.do(&pnat.PnatBindingAddV2{Rewrite: one.Rewrite})
	s.do(aliasIn("192.0.2.1", "254.0.0.1", 1, 80))
	s.attach(99, in, 0)
	s.attach(i, in, 9)
	s.do(&pnat.PnatBindingDel{BindingIndex: 9})
	s.note("one for what it matches")
	s.attach(i, in, 0)
	s.attach(i, in, 1)
	s.attach(i, in, 3)
	s.attach(i, in, 2)
	s.attach(i, out, 3)
	s.attach(j, in, 0)
	s.dump(&pnat.PnatBindingsGet{})
	s.dump(&pnat.PnatInterfacesGet{})
	s.note("the number of an attached binding")
	for _, ifx := range []index{i, j} {
		s.do(&pnat.PnatFlowLookup{SwIfIndex: ifx, Attachment: in, Match: one.Match})
		s.do(&pnat.PnatFlowLookup{SwIfIndex: ifx, Attachment: in, Match: two.Match})
	}
	s.note("numbers are used again")
	s.do(&pnat.PnatBindingDel{BindingIndex: 1})
	s.do(&pnat.PnatBindingDel{BindingIndex: 1})
	s.do(aliasIn("192.0.2.3", "254.0.0.3", 6, 80))
	s.do(aliasIn("192.0.2.4", "254.0.0.4", 6, 80))
	s.dump(&pnat.PnatBindingsGet{})
	s.note("from a number on")
	for _, from := range []uint32{1, 3, 4, 5, 70000} {
		s.dump(&pnat.PnatBindingsGet{Cursor: from})
	}
}

// pnatInterfaces: with whichever binding that goes the feature is switched off, and on with the next one that comes.
func pnatInterfaces(s *script) {
	i := s.loopUp()
	s.addr(i, "10.0.0.1/24")
	s.do(aliasIn("192.0.2.1", "254.0.0.1", 6, 80))
	s.do(aliasIn("192.0.2.2", "254.0.0.2", 6, 80))
	s.do(aliasOut("192.0.2.1", "254.0.0.1", 6, 80))
	s.attach(i, out, 2)
	s.attach(i, in, 0)
	s.attach(i, in, 1)
	s.pnatOn(i)
	s.detach(i, in, 0)
	s.detach(i, in, 0)
	s.detach(99, in, 1)
	s.detach(i, in, 9)
	s.pnatOn(i)
	s.dump(&pnat.PnatInterfacesGet{})
	s.note("on again")
	s.detach(i, in, 1)
	s.attach(i, in, 1)
	s.pnatOn(i)
	s.dump(&pnat.PnatInterfacesGet{})
	s.note("all gone")
	s.detach(i, in, 1)
	s.detach(i, out, 2)
	s.pnatOn(i)
	s.dump(&pnat.PnatInterfacesGet{})
	s.note("an interface that goes leaves its bindings to the one that comes, but not the feature")
	s.attach(i, in, 0)
	s.attach(i, out, 2)
	s.do(&interfaces.DeleteLoopback{SwIfIndex: i})
	j := s.loopUp()
	s.addr(j, "10.0.0.1/24")
	s.dump(&pnat.PnatInterfacesGet{})
	s.do(&pnat.PnatFlowLookup{SwIfIndex: j, Attachment: in, Match: aliasIn("192.0.2.1", "254.0.0.1", 6, 80).Match})
	s.do(&feature.FeatureIsEnabled{SwIfIndex: j, ArcName: "ip4-unicast", FeatureName: "pnat-input"})
	s.attach(j, in, 1)
	s.do(&feature.FeatureIsEnabled{SwIfIndex: j, ArcName: "ip4-unicast", FeatureName: "pnat-input"})
	for id := range uint32(2) {
		s.detach(j, in, id)
	}
	s.detach(j, out, 2)
	s.dump(&pnat.PnatInterfacesGet{})
	s.attach(j, in, 1)
	s.do(&feature.FeatureIsEnabled{SwIfIndex: j, ArcName: "ip4-unicast", FeatureName: "pnat-input"})
}

// pnatPackets: what pnat makes of a packet is what ACLs and NAT44 see; NAT44's answer goes through pnat in the end. 203.0.113.7
// has a mapping for everybody; for the pod behind pg0 there is an alias that has another one.
func pnatPackets(ps *packetScript) {
	natNode(ps)
	const place, alias = "203.0.113.7", "254.184.29.24"
	a, b := backend("10.1.1.3", 8080, 1, 1), backend("10.1.1.4", 8080, 1, 1)
	ps.do(balanced(true, place, tcpProto, selfTwice|out2in, 0, a, backend("10.1.1.3", 0, 0, 1)))
	ps.do(balanced(true, alias, tcpProto, selfTwice|out2in, 0, b, backend("10.1.1.4", 0, 0, 1)))
	ps.do(aliasIn(place, alias, tcpProto, 80))
	ps.do(aliasOut(place, alias, tcpProto, 80))
	ps.attach(1, in, 0)
	ps.attach(1, out, 1)
	ps.out.Reset()
	ps.note("the pod, and the answer")
	ps.tcp(1, "10.1.1.2", 1000, place, 80)
	ps.tcp(3, "10.1.1.4", 8080, "10.1.1.2", 1000, vppfake.FlagSYN, vppfake.FlagACK)
	ps.tcp(1, "10.1.1.2", 1000, place, 80, vppfake.FlagACK)
	ps.note("others")
	ps.tcp(4, "192.168.16.9", 1000, place, 80)
	ps.tcp(3, "10.1.1.4", 1000, place, 80)
	ps.note("another port, another protocol, a ping")
	ps.tcp(1, "10.1.1.2", 1001, place, 81)
	ps.udp(1, "10.1.1.2", 1001, place, 80)
	ps.ping(1, "10.1.1.2", place, 7)
	ps.note("ACLs see the alias")
	ps.do(&acl.ACLAddReplace{ACLIndex: none, Tag: "a", R: []acl_types.ACLRule{
		aclRule(deny, "10.1.1.2/32", alias+"/32", 6, 80), aclRule(permit, "0.0.0.0/0", "0.0.0.0/0", 0, 0)}})
	ps.do(&acl.ACLInterfaceSetACLList{SwIfIndex: 1, NInput: 1, Acls: []uint32{0}})
	ps.tcp(1, "10.1.1.2", 1002, place, 80)
	ps.tcp(1, "10.1.1.2", 1003, "10.1.1.4", 80)
	ps.do(&acl.ACLInterfaceSetACLList{SwIfIndex: 1})
	ps.note("a second alias that goes takes the feature with it; back with the first that comes again")
	ps.do(aliasIn(place, alias, tcpProto, 82))
	ps.attach(1, in, 2)
	ps.detach(1, in, 2)
	ps.tcp(1, "10.1.1.2", 1004, place, 80)
	ps.detach(1, in, 0)
	ps.attach(1, in, 0)
	ps.tcp(1, "10.1.1.2", 1005, place, 80)
	ps.sessions("10.1.1.4")
}
