package drivertest

import (
	"net/netip"

	"contiv.dev/vswitch/dataplane/proto"
)

// The addresses of the tests. Web is a workload of this node, far is elsewhere.
var (
	web4, web6 = netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("fd00::1")
	far4, far6 = netip.MustParseAddr("198.51.100.9"), netip.MustParseAddr("2001:db8:f::9")
)

// Packet is the first packet of a connection.
type Packet struct {
	Src, Dst           netip.Addr
	Proto              uint8
	SrcPort, DstPort   uint16
	ICMPType, ICMPCode uint8
}

// toWeb returns a TCP segment from far to web's port 80.
func toWeb(family int) Packet {
	p := Packet{Src: far4, Dst: web4, Proto: 6, SrcPort: 40000, DstPort: 80}
	if family == 6 {
		p.Src, p.Dst = far6, web6
	}
	return p
}

func with(p Packet, change func(*Packet)) Packet {
	change(&p)
	return p
}

// toPort returns a TCP segment to another port of web.
func toPort(port uint16) Packet { return with(toWeb(4), func(p *Packet) { p.DstPort = port }) }

// fromWeb returns a TCP segment from web to a port of far.
func fromWeb(port uint16) Packet {
	return Packet{Src: web4, Dst: far4, Proto: 6, SrcPort: 40000, DstPort: port}
}

func udpToWeb(port uint16) Packet {
	return with(toWeb(4), func(p *Packet) { p.Proto, p.DstPort = 17, port })
}

func icmpToWeb(family int, kind, code uint8) Packet {
	return with(toWeb(family), func(p *Packet) {
		p.Proto, p.ICMPType, p.ICMPCode, p.SrcPort, p.DstPort = 1, kind, code, 0, 0
		if family == 6 {
			p.Proto = 58
		}
	})
}

// from returns a TCP segment from an address to web's port 80.
func from(src string) Packet {
	a := netip.MustParseAddr(src)
	f := 6
	if a.Is4() {
		f = 4
	}
	return with(toWeb(f), func(p *Packet) { p.Src = a })
}

// workload returns the ID of a workload's endpoint.
func workload(name string) *proto.WorkloadEndpointID {
	return &proto.WorkloadEndpointID{OrchestratorId: "k8s", WorkloadId: name, EndpointId: "eth0"}
}

// Web returns the endpoint of workload web, without a tier, with profile open.
func Web(change ...func(*proto.WorkloadEndpoint)) *proto.WorkloadEndpointUpdate {
	ep := &proto.WorkloadEndpoint{State: "active", Name: "caliweb", ProfileIds: []string{"open"},
		Ipv4Nets: []string{web4.String() + "/32"}, Ipv6Nets: []string{web6.String() + "/128"}}
	for _, f := range change {
		f(ep)
	}
	return &proto.WorkloadEndpointUpdate{Id: workload("web"), Endpoint: ep}
}

// Tiers returns a change that sets the tiers of an endpoint.
func Tiers(tiers ...*proto.TierInfo) func(*proto.WorkloadEndpoint) {
	return func(ep *proto.WorkloadEndpoint) { ep.Tiers = tiers }
}

// profiles returns a change that sets the profiles of an endpoint.
func profiles(names ...string) func(*proto.WorkloadEndpoint) {
	return func(ep *proto.WorkloadEndpoint) { ep.ProfileIds = names }
}

// Ingress returns a tier with policies for packets to the endpoint.
func Ingress(tier string, policies ...string) *proto.TierInfo {
	return &proto.TierInfo{Name: tier, IngressPolicies: policies}
}

// profile returns a profile with the same rules in both directions.
func profile(name string, list ...*proto.Rule) *proto.ActiveProfileUpdate {
	return &proto.ActiveProfileUpdate{Id: &proto.ProfileID{Name: name},
		Profile: &proto.Profile{InboundRules: list, OutboundRules: list}}
}

// Open returns the profile that allows everything.
func Open() *proto.ActiveProfileUpdate { return profile("open", &proto.Rule{Action: "allow"}) }

// Policy returns a policy with the same rules in both directions.
func Policy(tier, name string, list ...*proto.Rule) *proto.ActivePolicyUpdate {
	return &proto.ActivePolicyUpdate{Id: &proto.PolicyID{Tier: tier, Name: name},
		Policy: &proto.Policy{InboundRules: list, OutboundRules: list}}
}

// noPolicy returns the removal of a policy.
func noPolicy(tier, name string) *proto.ActivePolicyRemove {
	return &proto.ActivePolicyRemove{Id: &proto.PolicyID{Tier: tier, Name: name}}
}

// tcp returns a rule for a TCP port.
func tcp(action string, port int32) *proto.Rule {
	return &proto.Rule{Action: action, Protocol: protocol("tcp"), DstPorts: ports(port)}
}

// fromSet returns a rule for packets from a set.
func fromSet(action, set string) *proto.Rule {
	return &proto.Rule{Action: action, SrcIpSetIds: []string{set}}
}

// set returns a set of addresses.
func set(id string, members ...string) *proto.IPSetUpdate {
	return &proto.IPSetUpdate{Id: id, Type: proto.IPSetUpdate_IP, Members: members}
}

func protocol(name string) *proto.Protocol {
	return &proto.Protocol{NumberOrName: &proto.Protocol_Name{Name: name}}
}

func number(n int32) *proto.Protocol {
	return &proto.Protocol{NumberOrName: &proto.Protocol_Number{Number: n}}
}

func ports(list ...int32) []*proto.PortRange {
	var out []*proto.PortRange
	for _, p := range list {
		out = append(out, &proto.PortRange{First: p, Last: p})
	}
	return out
}
