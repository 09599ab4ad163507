package wiring

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/windows/hcn"
)

// balancer is a desired load balancer: for one port of one address, or of the node itself (no address).
type balancer struct {
	VIP      netip.Addr // invalid: a node port
	IPv6     bool
	Protocol uint32
	Port     uint16
	Target   uint16 // the backends' port: HNS has one port for all of them
	Backends []netip.Addr
	Local    bool // only backends of this node, which receive the clients' addresses
	Sticky   bool // a client stays with its backend
}

// id returns the identity of a load balancer, which is unique on a node.
func (b balancer) id() string {
	at := "node"
	if b.VIP.IsValid() {
		at = b.VIP.String()
	}
	return fmt.Sprintf("%s/%v/%d/%d", at, b.IPv6, b.Protocol, b.Port)
}

// String describes the load balancer in messages.
func (b balancer) String() string {
	at, protocol := "each address of the node", "TCP"
	if b.VIP.IsValid() {
		at = b.VIP.String()
	}
	if b.Protocol == 17 {
		protocol = "UDP"
	}
	return fmt.Sprintf("%s port %d of %s", protocol, b.Port, at)
}

// balancers computes the load balancers of a service. It omits what HNS cannot express: that part of the service is then not served, instead
// of being served more widely than requested. The renderer has informed users (plugins/service/renderer/hnssvc).
func balancers(s *proto.BalancedServiceUpdate, own []netip.Addr) []balancer {
	var out []balancer
	seen := map[string]bool{}
	for _, p := range s.GetPorts() {
		if p.GetProtocol() != 6 && p.GetProtocol() != 17 {
			continue
		}
		for _, f := range p.GetFrontends() {
			b, ok := balancerOf(p, f, own)
			b.Sticky = s.GetAffinitySeconds() > 0
			if ok && !seen[b.id()] {
				seen[b.id()] = true
				out = append(out, b)
			}
		}
	}
	return out
}

func balancerOf(p *proto.BalancedPort, f *proto.BalancedFrontend, own []netip.Addr) (balancer, bool) {
	b := balancer{IPv6: p.GetIpv6(), Protocol: p.GetProtocol(), Port: uint16(f.GetPort())}
	at, ok := netip.AddrFromSlice(f.GetAddress())
	if !ok || f.GetRestricted() {
		return b, false
	}
	if at = at.Unmap(); !slices.Contains(own, at) {
		b.VIP = at
	}
	group := p.GetEverywhere()
	if b.Local = f.GetHereOnly() || f.GetSource() == proto.BalancedFrontend_EXTERNAL_LOCAL; b.Local {
		group = p.GetHere()
	}
	if group.GetVerdict() != proto.BalancedGroup_BALANCE {
		return b, false
	}
	size := 4
	if b.IPv6 {
		size = 16
	}
	for chunk := range slices.Chunk(group.GetAddresses(), size) {
		if a, ok := netip.AddrFromSlice(chunk); ok {
			b.Backends = append(b.Backends, a)
		}
	}
	for i, port := range group.GetPorts() {
		if i > 0 && port != group.GetPorts()[0] {
			return b, false // HNS has one port for all backends
		}
		b.Target = uint16(port)
	}
	b.Backends = slices.Compact(b.Backends)
	return b, len(b.Backends) > 0 && b.Target != 0
}

// spec converts the load balancer to HNS. It omits a backend without an ID in HNS.
func (b balancer) spec(ids map[netip.Addr]string, features hcn.Features, source string) (hcn.LoadBalancer, bool) {
	lb := hcn.LoadBalancer{SchemaVersion: hcn.V2, SourceVIP: source}
	m := hcn.LBPortMapping{Protocol: b.Protocol, InternalPort: b.Target, ExternalPort: b.Port}
	if b.Sticky && features.SessionAffinity {
		m.DistributionType = hcn.LBDistributeSourceIP
	}
	if b.VIP.IsValid() {
		lb.FrontendVIPs = []string{b.VIP.String()}
		if !b.Local { // also connections from the node itself; a local one keeps the client's address
			m.Flags |= hcn.LBPortLocalRoutedVIP
		}
	}
	if features.DSR {
		lb.Flags |= hcn.LBFlagDSR
		if b.Local {
			m.Flags |= hcn.LBPortPreserveDIP
		}
	}
	if b.IPv6 {
		lb.Flags |= hcn.LBFlagIPv6
	}
	for _, a := range b.Backends {
		if id := ids[a]; id != "" {
			lb.HostComputeEndpoints = append(lb.HostComputeEndpoints, id)
		}
	}
	slices.Sort(lb.HostComputeEndpoints)
	lb.PortMappings = []hcn.LBPortMapping{m}
	return lb, len(lb.HostComputeEndpoints) > 0
}

// lbID returns the identity of a load balancer of HNS, in the form of balancer.id.
func lbID(lb hcn.LoadBalancer) string {
	at := "node"
	if len(lb.FrontendVIPs) > 0 {
		at = canonical(lb.FrontendVIPs[0])
	}
	m := lb.PortMappings[0]
	return fmt.Sprintf("%s/%v/%d/%d", at, lb.Flags&hcn.LBFlagIPv6 != 0, m.Protocol, m.ExternalPort)
}

// sameLB reports whether a load balancer in HNS is as desired.
func sameLB(a, b hcn.LoadBalancer) bool {
	norm := func(list []string) []string {
		out := make([]string, len(list))
		for i, s := range list {
			out[i] = strings.ToUpper(s)
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(norm(a.HostComputeEndpoints), norm(b.HostComputeEndpoints)) && canonical(a.SourceVIP) == canonical(b.SourceVIP) &&
		sameTexts(a.FrontendVIPs, b.FrontendVIPs) && slices.Equal(a.PortMappings, b.PortMappings) && a.Flags == b.Flags
}
