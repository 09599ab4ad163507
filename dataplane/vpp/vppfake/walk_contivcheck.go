package vppfake

import (
	"net/netip"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
)

// Types of neighbour discovery and multicast listener messages (ICMPv6).
const (
	NDRouterSolicitation    = 133
	NDRouterAdvertisement   = 134
	NDNeighborSolicitation  = 135
	NDNeighborAdvertisement = 136
	NDRedirect              = 137
	NDListenerReport        = 143
)

// Discovery is a message of IPv6 neighbour discovery, or of multicast listeners.
type Discovery struct {
	Type   uint8
	Target netip.Addr // of solicitations, advertisements and redirects
}

// len returns the length of the message.
func (d *Discovery) len() int {
	switch d.Type {
	case NDNeighborSolicitation, NDNeighborAdvertisement:
		return 24
	case NDRouterAdvertisement:
		return 16
	case NDRedirect:
		return 40
	}
	return 8
}

// maxExtensions is the number of extension headers that the plugin reads.
const maxExtensions = 8

// contivSource checks the source of a packet; false: the packet was dropped.
func (w *walk) contivSource(i *iface, p *Packet) bool {
	e := w.contiv.endpoints[i.index]
	if e == nil {
		return true
	}
	if p.Extensions > maxExtensions && p.Dst.Is6() {
		return w.contivDrop(nil, "headers cut off or too many")
	}
	if w.contiv.fromItsPlace(e, p) {
		return true
	}
	e.spoofed++
	return w.contivDrop(&w.contiv.conns.stats.Spoofed, "source that is not the pod's")
}

// fromItsPlace reports whether the source is valid: a pod sends only from its own addresses, and no packet from the network has the source of a
// pod of this node. Packets of the host are trusted.
func (c *contivState) fromItsPlace(e *contivEndpoint, p *Packet) bool {
	switch e.set.Role {
	case contiv.CONTIV_ROLE_API_POD:
		return e.mayBeFrom(p)
	case contiv.CONTIV_ROLE_API_UPLINK, contiv.CONTIV_ROLE_API_OVERLAY:
		for _, pod := range c.endpoints {
			if pod.set.Role == contiv.CONTIV_ROLE_API_POD && pod.addrs[p.Src] {
				return false
			}
		}
	}
	return true
}

func (e *contivEndpoint) mayBeFrom(p *Packet) bool {
	nd := uint8(0)
	if p.ND != nil {
		nd = p.ND.Type
	}
	switch {
	case nd == NDRouterAdvertisement, nd == NDRedirect:
		return false
	case p.Proto == ProtoUDP && (p.SrcPort == 67 || p.SrcPort == 547) && !p.later():
		return false
	case nd == NDNeighborAdvertisement && !e.addrs[p.ND.Target]:
		return false
	case e.addrs[p.Src]:
		return true
	case p.Src.Is4():
		return false
	case p.Src.IsUnspecified():
		return nd == NDNeighborSolicitation || nd == NDListenerReport
	}
	return p.Src.IsLinkLocalUnicast() && (nd == NDRouterSolicitation || nd == NDListenerReport)
}

// contivARP checks the sender of an ARP message; a probe, from 0.0.0.0, has no sender address and is accepted.
func (w *walk) contivARP(i *iface, p *Packet) bool {
	e := w.contiv.endpoints[i.index]
	if e == nil || e.set.Role != contiv.CONTIV_ROLE_API_POD || e.addrs[p.ARP.SenderIP] || p.ARP.SenderIP.IsUnspecified() {
		return true
	}
	e.spoofed++
	return w.contivDrop(&w.contiv.conns.stats.Spoofed, "source that is not the pod's")
}

// multicast handles messages between neighbours; false: the packet is not such a message.
func (w *walk) multicast(i *iface, p *Packet) bool {
	if !w.contivSource(i, p) {
		return true
	}
	if p.ND != nil {
		w.arrive(Delivery{Fake: w.fake, Local: true, Packet: *p})
	}
	return p.ND != nil
}

// Fragment describes which fragment of a packet this one is.
type Fragment struct {
	ID     uint32
	Offset uint16 // in units of 8 bytes; only the first fragment, at 0, has a transport header
	More   bool
}

// later reports whether the packet has no transport header.
func (p *Packet) later() bool { return p.Frag != nil && p.Frag.Offset > 0 }

// contivFragment is the key of the fragments of one packet.
type contivFragment struct {
	ifx      uint32
	src, dst netip.Addr
	id       uint32
}

// contivFragments holds the first fragment, which has the ports, and the fragments that arrived before it.
type contivFragments struct {
	first   *Packet
	waiting []Packet
}

// contivReassemble sets the ports of the first fragment in a later one; false: the fragment waits for the first one.
func (w *walk) contivReassemble(i *iface, p *Packet) bool {
	if p.Frag == nil {
		return true
	}
	key := contivFragment{i.index, p.Src, p.Dst, p.Frag.ID}
	f := w.contiv.conns.frags[key]
	if f == nil {
		f = &contivFragments{}
		w.contiv.conns.frags[key] = f
	}
	switch {
	case !p.later():
		first := *p
		f.first = &first
		for _, waiting := range f.waiting {
			w.flights = append(w.flights, flight{w.fake, func(*state) (*iface, error) { return i, nil }, waiting})
		}
		f.waiting = nil
	case f.first == nil:
		f.waiting = append(f.waiting, *p)
		w.step("contiv: waits for its first piece")
		return false
	default:
		p.SrcPort, p.DstPort, p.Echo, p.Flags = f.first.SrcPort, f.first.DstPort, f.first.Echo, f.first.Flags
	}
	return true
}
