package validate

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

const (
	transportVXLAN = "vxlan"
	dataplaneLinux = "linux"
	vxlanDevice    = "contiv-vxlan"
)

// overlay checks that each node has one tunnel end, ARP entry and forwarding entry for each other node, and that they match the other node's.
func (s *state) overlay(n *node) {
	if n.Info.Transport != transportVXLAN || n.report == nil {
		return
	}
	if n.Info.Dataplane == dataplaneLinux {
		s.linuxOverlay(n)
		return
	}
	for _, p := range s.peers(n) {
		tunnel := s.tunnelTo(n, p)
		if p.Info.Dataplane == dataplaneLinux { // a Linux node has no VPP interfaces to compare; linuxOverlay checks its side
			continue
		}
		s.arp(n, p)
		s.fib(n, p, tunnel)
	}
	s.unknownTunnels(n)
}

// tunnelTo checks the tunnel ends of two nodes.
func (s *state) tunnelTo(n, p *node) (name string) {
	for _, i := range n.interfaces {
		if i.Type != "VXLAN_TUNNEL" || !slices.Contains(p.ips, addr(i.Vxlan.Dst)) {
			continue
		}
		if name != "" {
			s.find(n.Node, "tunnel", i.Name, fmt.Sprintf("is a second tunnel to %s, besides %s", p.Node, name))
			continue
		}
		name = i.Name
		if !slices.Contains(n.ips, addr(i.Vxlan.Src)) {
			s.find(n.Node, "tunnel", i.Name, fmt.Sprintf("begins at %s, which is not an address of this node (%v)", i.Vxlan.Src, n.ips))
		}
		if p.Info.Dataplane != dataplaneLinux {
			s.otherEnd(n, p, i)
		}
	}
	if name == "" {
		s.find(n.Node, "tunnel", p.Node, fmt.Sprintf("there is no tunnel to %s, whose address is %v", p.Node, p.ips))
	}
	return name
}

// otherEnd checks the peer's end of a tunnel: its addresses and VNI must match.
func (s *state) otherEnd(n, p *node, mine vppInterface) {
	for _, i := range p.interfaces {
		if i.Type != "VXLAN_TUNNEL" || addr(i.Vxlan.Dst) != addr(mine.Vxlan.Src) {
			continue
		}
		if addr(i.Vxlan.Src) != addr(mine.Vxlan.Dst) {
			s.find(n.Node, "tunnel", mine.Name, fmt.Sprintf("leads to %s, and the other end, %s of %s, begins at %s", mine.Vxlan.Dst,
				i.Name, p.Node, i.Vxlan.Src))
		}
		if i.Vxlan.VNI != mine.Vxlan.VNI {
			s.find(n.Node, "tunnel", mine.Name, fmt.Sprintf("has the VNI %d, and the other end, %s of %s, %d", mine.Vxlan.VNI, i.Name,
				p.Node, i.Vxlan.VNI))
		}
		return
	}
	s.find(p.Node, "tunnel", n.Node, fmt.Sprintf("has no tunnel back to %s, whose %s begins at %s", n.Node, mine.Name,
		mine.Vxlan.Src))
}

// unknownTunnels reports tunnels to addresses that are not nodes.
func (s *state) unknownTunnels(n *node) {
	for _, i := range n.interfaces {
		if i.Type != "VXLAN_TUNNEL" {
			continue
		}
		known := false
		for _, r := range n.Nodes {
			known = known || r.State == "claimed" && slices.Contains(addrs(r.VPPIPs), addr(i.Vxlan.Dst))
		}
		if !known {
			s.find(n.Node, "tunnel", i.Name, fmt.Sprintf("leads to %s, which is not a node", i.Vxlan.Dst))
		}
	}
}

// arp checks that the node's ARP entries for the peer's addresses in the overlay have the peer's MAC address.
func (s *state) arp(n, p *node) {
	theirs, ok := p.interfaces[bvi]
	if !ok {
		s.find(p.Node, "tunnel", bvi, "there is no "+bvi+": this node is not in the overlay")
		return
	}
	for _, ip := range addrs(theirs.IPs) {
		found := false
		for _, e := range n.neighbours {
			if e.Interface != bvi || addr(e.IP) != ip {
				continue
			}
			found = true
			if !strings.EqualFold(e.MAC, theirs.PhysAddress) {
				s.find(n.Node, "arp", ip.String(), fmt.Sprintf("has the MAC %s, but %s of %s has %s", e.MAC, bvi, p.Node,
					theirs.PhysAddress))
			}
		}
		if !found {
			s.find(n.Node, "arp", ip.String(), fmt.Sprintf("there is no ARP entry for %s of %s on %s", ip, p.Node, bvi))
		}
	}
}

// fib checks that the peer's MAC address is behind the tunnel to the peer.
func (s *state) fib(n, p *node, tunnel string) {
	mac := p.interfaces[bvi].PhysAddress
	if mac == "" || tunnel == "" {
		return // reported already
	}
	for _, e := range n.fibs {
		if !strings.EqualFold(e.MAC, mac) {
			continue
		}
		if e.Outgoing != tunnel {
			s.find(n.Node, "fib", mac, fmt.Sprintf("of %s is behind %s, not behind the tunnel to it, %s", p.Node, e.Outgoing, tunnel))
		}
		return
	}
	s.find(n.Node, "fib", mac, fmt.Sprintf("there is no forwarding entry for %s, the MAC of %s", mac, p.Node))
}

// linuxOverlay compares a node's data about tunnel ends with what those ends report about themselves, and with the kernel.
func (s *state) linuxOverlay(n *node) {
	for _, p := range s.peers(n) {
		theirs, ok := p.vteps[p.Node]
		if !ok {
			continue // reported by its own values
		}
		mine, ok := n.vteps[p.Node]
		if !ok {
			s.find(n.Node, "tunnel", p.Node, "there is no tunnel to "+p.Node)
			continue
		}
		parent, has := mine.reached(), theirs.Parent
		if addr(parent).Is6() {
			has = theirs.Parent6
		}
		if parent != has || !strings.EqualFold(mine.MAC, theirs.MAC) || mine.IP4 != theirs.IP4 || mine.IP6 != theirs.IP6 {
			s.find(n.Node, "tunnel", p.Node, fmt.Sprintf("leads to %s, MAC %s, address %s; %s says %s, %s, %s", parent, mine.MAC,
				mine.overlay(), p.Node, has, theirs.MAC, theirs.overlay()))
			continue
		}
		if n.Kernel != nil {
			s.kernelOverlay(n, p, theirs, addr(parent))
		}
	}
}

// reached returns the address that other nodes use to reach the node.
func (v vtep) reached() string { return cmp.Or(v.Parent, v.Parent6) }

// overlay returns the addresses in the overlay.
func (v vtep) overlay() string { return strings.Trim(v.IP4+","+v.IP6, ",") }

func (s *state) kernelOverlay(n, p *node, theirs vtep, parent netip.Addr) {
	found := false
	for _, f := range n.Kernel.Forwarding {
		if f.Device != vxlanDevice || !strings.EqualFold(f.MAC, theirs.MAC) {
			continue
		}
		found = found || addr(f.Dst) == parent
		if addr(f.Dst) != parent && addr(f.Dst).Is4() == parent.Is4() {
			s.find(n.Node, "fib", f.MAC, fmt.Sprintf("of %s is sent to %s, not to %s", p.Node, f.Dst, parent))
		}
	}
	if !found {
		s.find(n.Node, "fib", theirs.MAC, fmt.Sprintf("there is no forwarding entry of %s for %s, the MAC of %s", vxlanDevice,
			theirs.MAC, p.Node))
	}
	for _, text := range []string{theirs.IP4, theirs.IP6} {
		if ip := addr(text); ip.IsValid() {
			s.kernelNeighbour(n, p, ip, theirs.MAC)
		}
	}
}

func (s *state) kernelNeighbour(n, p *node, ip netip.Addr, mac string) {
	for _, e := range n.Kernel.Neighbours {
		if e.Device != vxlanDevice || addr(e.IP) != ip {
			continue
		}
		if !strings.EqualFold(e.MAC, mac) || e.State != "permanent" {
			s.find(n.Node, "arp", ip.String(), fmt.Sprintf("of %s has the MAC %s (%s) on %s, not %s", p.Node, e.MAC, e.State,
				vxlanDevice, mac))
		}
		return
	}
	s.find(n.Node, "arp", ip.String(), fmt.Sprintf("there is no neighbour entry for %s of %s on %s", ip, p.Node, vxlanDevice))
}
