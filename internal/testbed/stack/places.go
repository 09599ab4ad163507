package stack

import (
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/hostports"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// firstPort is before the ports of connections to places: each has one of its own.
const firstPort = 32767

func (s *Stack) placesOf(p *vppfake.Packet) *hostports.Places { return &s.places[index(p.Dst.Is6())] }

// placeOf is the place that a packet is for.
func (s *Stack) placeOf(p *vppfake.Packet) *hostports.Place {
	proto := map[uint8]string{vppfake.ProtoTCP: "tcp", vppfake.ProtoUDP: "udp"}[p.Proto]
	list := s.placesOf(p).Places
	i := slices.IndexFunc(list, func(place hostports.Place) bool {
		return place.At == netip.AddrPortFrom(p.Dst, p.DstPort) && place.Proto == proto
	})
	if i < 0 {
		return nil
	}
	return &list[i]
}

func (s *Stack) isPlaceLocked(a netip.Addr) bool {
	return slices.ContainsFunc(s.places[index(a.Is6())].Places, func(p hostports.Place) bool { return p.At.Addr() == a })
}

// mayUseLocked: places are for some clients only.
func (s *Stack) mayUseLocked(p *vppfake.Packet, own bool) bool {
	place := s.placeOf(p)
	return place == nil || own && place.Own ||
		slices.ContainsFunc(place.From, func(net netip.Prefix) bool { return net.Contains(p.Src) })
}

// markLocked: connections that came by way of VPP are answered that way.
func (s *Stack) markLocked(t *track, device string, p *vppfake.Packet) {
	if p.Error != nil || device != s.placesOf(p).Link {
		return
	}
	if !t.known {
		t.marked = s.isPlaceLocked(p.Dst)
	}
	t.back = t.answer && t.marked
}

// placeLocked sends what is for a place where it leads.
func (s *Stack) placeLocked(t *track, p *vppfake.Packet) {
	if place := s.placeOf(p); !t.known && place != nil {
		p.Dst, p.DstPort, t.placed = place.To.Addr(), place.To.Port(), true
	}
}

// ownPortLocked gives the first packet of a connection to a place the host's address and a port of its own.
func (s *Stack) ownPortLocked(t *track, p *vppfake.Packet, src netip.Addr) {
	p.Src = src
	for {
		if s.port++; s.port < firstPort {
			s.port = firstPort
		}
		if p.SrcPort = s.port; !s.taken(flowOf(p).back(), t.first) {
			return
		}
	}
}

// rejectLocked: what VPP hands over and no place takes is not handed back.
func (s *Stack) rejectLocked(device string, p vppfake.Packet) Outcome {
	e := vppfake.Packet{
		Dst: p.Src, Proto: vppfake.ProtoICMP, TTL: 64, Error: &vppfake.ICMPError{Type: 3, Code: 13, Inner: p},
	}
	if p.Dst.Is6() {
		e.Proto, e.Error.Type, e.Error.Code = vppfake.ProtoICMPv6, 1, 1
	}
	for _, addr := range s.links[device].Addrs {
		if addr.Addr().Is6() == p.Dst.Is6() {
			e.Src = addr.Addr()
		}
	}
	return s.leaveLocked(&track{known: true}, e)
}
