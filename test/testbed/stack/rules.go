package stack

import (
	"net/netip"
	"slices"

	linux_nodeports "contiv.dev/vswitch/dataplane/nb/linux/nodeports"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// flow is a direction of a connection.
type flow struct {
	src, dst netip.AddrPort
	proto    uint8
}

func flowOf(p *vppfake.Packet) flow {
	return flow{netip.AddrPortFrom(p.Src, p.SrcPort), netip.AddrPortFrom(p.Dst, p.DstPort), p.Proto}
}

// back returns the direction of the answers.
func (f flow) back() flow { return flow{f.dst, f.src, f.proto} }

// track is the connection tracking data of a packet.
type track struct {
	first    flow // flow of the packet as it arrived
	known    bool // the packet belongs to a translated connection
	redirect bool // the destination is replaced, for a node port
	keeps    bool // the source is not replaced
}

func (s *Stack) portsOf(p *vppfake.Packet) *linux_nodeports.NodePorts {
	return s.ports[index(p.Dst.Is6())]
}

// trackLocked translates a packet of a known connection, or an ICMP error about one.
func (s *Stack) trackLocked(p *vppfake.Packet) *track {
	if p.Error != nil {
		s.trackErrorLocked(p)
		return &track{known: true}
	}
	t := &track{first: flowOf(p)}
	now, known := s.nat[t.first]
	if known {
		t.known = true
		rewrite(p, now)
	}
	return t
}

func rewrite(p *vppfake.Packet, to flow) {
	p.Src, p.SrcPort, p.Dst, p.DstPort = to.src.Addr(), to.src.Port(), to.dst.Addr(), to.dst.Port()
}

// trackErrorLocked sends an error about a packet that was translated here to the packet's original sender.
func (s *Stack) trackErrorLocked(p *vppfake.Packet) {
	answer, known := s.nat[flowOf(&p.Error.Inner).back()]
	if !known {
		return
	}
	e := *p.Error
	rewrite(&e.Inner, answer.back())
	p.Error, p.Dst = &e, answer.dst.Addr()
}

var protocols = map[linux_nodeports.NodePorts_Protocol]uint8{
	linux_nodeports.NodePorts_TCP: vppfake.ProtoTCP, linux_nodeports.NodePorts_UDP: vppfake.ProtoUDP, linux_nodeports.NodePorts_SCTP: vppfake.ProtoSCTP,
}

// portLocked returns the node port for a packet to an address of the host; nil: there is none.
func (s *Stack) portLocked(p *vppfake.Packet) *linux_nodeports.NodePorts_Port {
	rules := s.portsOf(p)
	if !slices.Contains(rules.GetAddresses(), p.Dst.String()) || !s.ownsLocked(p.Dst) {
		return nil
	}
	for _, port := range rules.GetPorts() {
		if protocols[port.Protocol] == p.Proto && port.Port == uint32(p.DstPort) {
			return port
		}
	}
	return nil
}

// redirectLocked sends a packet to a node port to VPP's end of the link.
func (s *Stack) redirectLocked(t *track, p *vppfake.Packet) {
	port := s.portLocked(p)
	if port == nil {
		return
	}
	if to, err := netip.ParseAddr(s.portsOf(p).To); err == nil {
		p.Dst, t.redirect, t.keeps = to, true, port.KeepClient && !s.ownsLocked(p.Src)
	}
}

// masqueradeLocked replaces the source of a packet, and also its port if its answers would otherwise be ambiguous.
func (s *Stack) masqueradeLocked(t *track, p *vppfake.Packet, src netip.Addr) {
	p.Src = src
	for s.taken(flowOf(p).back(), t.first) {
		p.SrcPort++
	}
}

func (s *Stack) taken(answers, first flow) bool {
	now, ok := s.nat[answers]
	return ok && now != first.back()
}

// confirmLocked records the translation of the first packet of a connection.
func (s *Stack) confirmLocked(t *track, p *vppfake.Packet) {
	if now := flowOf(p); !t.known && now != t.first {
		s.nat[t.first], s.nat[now.back()] = now, t.first.back()
	}
}
