package renderer

import (
	"net/netip"
	"slices"
)

// This file is not part of the documented API. All renderers use it to read a service.

// Families is a set of address families.
type Families uint8

// The families.
const (
	FamilyIPv4 Families = 1 << iota
	FamilyIPv6
)

// FamilyOf returns the family of an address.
func FamilyOf(ipv6 bool) Families {
	if ipv6 {
		return FamilyIPv6
	}
	return FamilyIPv4
}

// Has reports whether the family is in the set.
func (f Families) Has(ipv6 bool) bool { return f&FamilyOf(ipv6) != 0 }

// Verdict is the treatment of traffic to a port of a service.
type Verdict int

const (
	// Balance distributes traffic over the backends.
	Balance Verdict = iota
	// Drop drops traffic without an answer: only this node has no backend, so the client should detect this by a timeout, or its load
	// balancer by the health check.
	Drop
	// Reject answers traffic with a TCP reset or an ICMP error: nothing serves the port.
	Reject
)

// String returns the name of the verdict.
func (v Verdict) String() string {
	switch v {
	case Balance:
		return "balance"
	case Drop:
		return "drop"
	case Reject:
		return "reject"
	}
	return "INVALID"
}

// Select returns the backends of a port for traffic under a policy, to an address of a family.
func (cs *ContivService) Select(port string, policy TrafficPolicyType, ipv6 bool) ([]*ServiceBackend, Verdict) {
	all := cs.Backends[port]
	if extra := cs.LocalPolicyBackends[port]; policy == NodeLocal && len(extra) > 0 {
		all = slices.Concat(all, extra)
	}
	n, family := 0, false
	for _, b := range all {
		family = family || b.isIPv6() == ipv6
		if b.serves(policy, ipv6) {
			n++
		}
	}
	switch {
	case n == len(all) && n > 0:
		return all, Balance
	case n == 0 && (family || cs.Reachable[port].Has(ipv6)):
		return nil, Drop
	case n == 0:
		return nil, Reject
	}
	out := make([]*ServiceBackend, 0, n)
	for _, b := range all {
		if b.serves(policy, ipv6) {
			out = append(out, b)
		}
	}
	return out, Balance
}

// AllBackends returns the backends of a port under any policy.
func (cs *ContivService) AllBackends(port string) []*ServiceBackend {
	if extra := cs.LocalPolicyBackends[port]; len(extra) > 0 {
		return slices.Concat(cs.Backends[port], extra)
	}
	return cs.Backends[port]
}

// KeptBeside returns the backends of a UDP or SCTP port and a family that still serve, without those in the given lists of backends that get
// new connections. Connections to them stay.
func (cs *ContivService) KeptBeside(port string, ipv6 bool, chosen ...[]*ServiceBackend) []*ServiceBackend {
	if p := cs.Ports[port]; p == nil || p.Protocol != UDP && p.Protocol != SCTP {
		return nil
	}
	skip := map[netip.AddrPort]bool{}
	for _, list := range chosen {
		for _, b := range list {
			skip[b.end()] = true
		}
	}
	var out []*ServiceBackend
	for _, list := range [][]*ServiceBackend{cs.Backends[port], cs.LocalPolicyBackends[port], cs.KeptBackends[port]} {
		for _, b := range list {
			if b.isIPv6() == ipv6 && !skip[b.end()] {
				out = append(out, b)
			}
		}
	}
	return out
}

func (sb *ServiceBackend) end() netip.AddrPort { return netip.AddrPortFrom(sb.Addr(), sb.Port) }

func (sb *ServiceBackend) serves(policy TrafficPolicyType, ipv6 bool) bool {
	return sb.isIPv6() == ipv6 && (policy != NodeLocal || sb.Local)
}

func (sb *ServiceBackend) isIPv6() bool { return sb.IP.To4() == nil }

// Addr returns the address of the backend.
func (sb *ServiceBackend) Addr() netip.Addr {
	addr, _ := netip.AddrFromSlice(sb.IP)
	return addr.Unmap()
}

// SourceRanges returns the networks of a family from which LoadBalancerIPs of that family may be used; restricted is false if all clients
// may use them. If the service has ranges but none of this family, no client of this family may use them: the service lists the permitted
// clients, and these are not among them. (kube-proxy handles each family separately, and permits all clients in this case.) A range of
// length 0 permits all clients of its family, and also those of the other family if that has no ranges.
func (cs *ContivService) SourceRanges(ipv6 bool) (ranges []netip.Prefix, restricted bool) {
	if !cs.SourceRangesSet {
		return nil, false
	}
	unrestricted := false
	for _, p := range cs.LoadBalancerSourceRanges {
		same := p.Addr().Is6() == ipv6
		switch {
		case p.Bits() == 0 && same:
			return nil, false
		case p.Bits() == 0:
			unrestricted = true
		case same:
			ranges = append(ranges, p)
		}
	}
	return ranges, len(ranges) > 0 || !unrestricted
}

// Equal reports whether two services are equal in all fields.
func (cs *ContivService) Equal(other *ContivService) bool {
	return cs.equalHead(other) && equalPorts(cs.Ports, other.Ports) && equalReachable(cs.Reachable, other.Reachable) &&
		equalBackends(cs.Backends, other.Backends) && equalBackends(cs.LocalPolicyBackends, other.LocalPolicyBackends) &&
		equalBackends(cs.KeptBackends, other.KeptBackends)
}

func (cs *ContivService) equalHead(other *ContivService) bool {
	return cs.ID == other.ID && cs.TrafficPolicy == other.TrafficPolicy &&
		cs.InternalTrafficPolicy == other.InternalTrafficPolicy &&
		cs.SessionAffinityTimeout == other.SessionAffinityTimeout &&
		cs.HealthCheckNodePort == other.HealthCheckNodePort && cs.SourceRangesSet == other.SourceRangesSet &&
		cs.ClusterIPs.Equal(other.ClusterIPs) && cs.ExternalIPs.Equal(other.ExternalIPs) &&
		cs.LoadBalancerIPs.Equal(other.LoadBalancerIPs) && slices.Equal(cs.Lost, other.Lost) &&
		slices.Equal(cs.LoadBalancerSourceRanges, other.LoadBalancerSourceRanges)
}

func equalPorts(a, b map[string]*ServicePort) bool {
	if len(a) != len(b) {
		return false
	}
	for name, port := range a {
		if b[name] == nil || *port != *b[name] {
			return false
		}
	}
	return true
}

func equalReachable(a, b map[string]Families) bool {
	if len(a) != len(b) {
		return false
	}
	for name, f := range a {
		if b[name] != f {
			return false
		}
	}
	return true
}

func equalBackends(a, b map[string][]*ServiceBackend) bool {
	if len(a) != len(b) {
		return false
	}
	for name, backends := range a {
		if !slices.EqualFunc(backends, b[name], equalBackend) {
			return false
		}
	}
	return true
}

func equalBackend(a, b *ServiceBackend) bool {
	return a == b || a.Port == b.Port && a.Local == b.Local && a.HostNetwork == b.HostNetwork && a.IP.Equal(b.IP)
}
