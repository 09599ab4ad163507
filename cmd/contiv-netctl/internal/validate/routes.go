package validate

import (
	"fmt"
	"net/netip"
	"slices"
)

// routes checks that each node has a route to the pods of each other node, and that the route leads to that node.
func (s *state) routes(n *node) {
	if n.report == nil {
		return
	}
	for _, p := range s.peers(n) {
		for _, sub := range p.Allocations.Subnets {
			if n.Info.Dataplane == dataplaneLinux {
				s.linuxRoute(n, p, sub.Subnet)
			} else {
				s.vppRoute(n, p, sub.Subnet)
			}
		}
	}
}

// nextHops returns the next hops of routes to a node's pods.
func (p *node) nextHops() []netip.Addr {
	if p.Info.Transport != transportVXLAN {
		return p.ips
	}
	if p.Info.Dataplane == dataplaneLinux {
		own := p.vteps[p.Node]
		return addrs([]string{own.IP4, own.IP6})
	}
	return addrs(p.interfaces[bvi].IPs)
}

func (s *state) vppRoute(n, p *node, subnet netip.Prefix) {
	found := false
	for _, r := range n.routes {
		if r.Dst != subnet.String() || r.Type == "INTER_VRF" || r.Type == "DROP" {
			continue
		}
		found = true
		if hops := p.nextHops(); !slices.Contains(hops, addr(r.NextHop)) {
			s.find(n.Node, "route", r.Dst, fmt.Sprintf("leads to %s by %s; the pods of %s are behind %v", r.NextHop, r.Outgoing,
				p.Node, hops))
		}
	}
	if !found {
		s.find(n.Node, "route", subnet.String(), fmt.Sprintf("there is no route to the pods of %s", p.Node))
	}
}

// linuxRoute checks the kernel's routes, because those are in effect; the driver repairs them by itself within a minute or two.
func (s *state) linuxRoute(n, p *node, subnet netip.Prefix) {
	if n.Kernel == nil || !reachable(n, subnet) {
		return
	}
	found := false
	for _, r := range n.Kernel.Routes {
		if inside(r.Dst, subnet) {
			s.find(n.Node, "route", r.Dst, fmt.Sprintf("another program's route (%s, protocol %d) takes packets for pods of %s; remove it",
				r.Type, r.Proto, p.Node))
		}
		if r.Dst != subnet.String() || r.Type != "unicast" {
			continue
		}
		found = true
		if hops := p.nextHops(); !slices.Contains(hops, addr(r.Via)) {
			s.find(n.Node, "route", r.Dst, fmt.Sprintf("leads to %s by %s; the pods of %s are behind %v", r.Via, r.Device, p.Node, hops))
		}
	}
	if !found {
		s.find(n.Node, "route", subnet.String(), fmt.Sprintf("there is no route to the pods of %s in the kernel", p.Node))
	}
}

// inside reports whether a route is for a part of the subnet: no node needs such a route to the pods of another node.
func inside(dst string, subnet netip.Prefix) bool {
	p, err := netip.ParsePrefix(dst)
	return err == nil && p.Bits() > subnet.Bits() && subnet.Contains(p.Addr())
}

// reachable returns false if the node has no address of the subnet's family, so that it cannot have a route.
func reachable(n *node, subnet netip.Prefix) bool {
	for _, ip := range slices.Concat(n.ips, n.nextHops()) {
		if ip.Is4() == subnet.Addr().Is4() {
			return true
		}
	}
	return false
}
