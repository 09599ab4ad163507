package stack

import (
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/hostports"
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

// back is the direction of the answers.
func (f flow) back() flow { return flow{f.dst, f.src, f.proto} }

// track is what connection tracking knows of a packet.
type track struct {
	first    flow // as the packet came
	known    bool // it is of a connection that is translated
	redirect bool // its destination is a new one, for a node port
	placed   bool // the same, for a place
	alias    bool // the same, for an alias
	marked   bool // the client came by way of VPP, for a place
	answer   bool // it is one of the answers
	back     bool // it goes to VPP whatever the routes are
}

// translated is what becomes of a flow's packets.
type translated struct {
	to             flow
	answer, marked bool
}

func (s *Stack) portsOf(p *vppfake.Packet) *hostports.Ports { return &s.ports[index(p.Dst.Is6())] }

// trackLocked translates a packet of a connection that is known, or an ICMP error about one.
func (s *Stack) trackLocked(p *vppfake.Packet) *track {
	if p.Error != nil {
		s.trackErrorLocked(p)
		return &track{known: true}
	}
	t := &track{first: flowOf(p)}
	now, known := s.nat[t.first]
	if known {
		t.known, t.answer, t.marked = true, now.answer, now.marked
		rewrite(p, now.to)
	}
	return t
}

func rewrite(p *vppfake.Packet, to flow) {
	p.Src, p.SrcPort, p.Dst, p.DstPort = to.src.Addr(), to.src.Port(), to.dst.Addr(), to.dst.Port()
}

// trackErrorLocked: an error about a packet that was translated here is told to whoever has sent it.
func (s *Stack) trackErrorLocked(p *vppfake.Packet) {
	answer, known := s.nat[flowOf(&p.Error.Inner).back()]
	if !known {
		return
	}
	e := *p.Error
	rewrite(&e.Inner, answer.to.back())
	p.Error, p.Dst = &e, answer.to.dst.Addr()
}

// wantsPortLocked: the packet is for a node port at an address of the host.
func (s *Stack) wantsPortLocked(p *vppfake.Packet) bool {
	rules := s.portsOf(p)
	proto := map[uint8]string{vppfake.ProtoTCP: "tcp", vppfake.ProtoUDP: "udp"}[p.Proto]
	return rules.To.IsValid() && slices.Contains(rules.At, p.Dst) && s.ownsLocked(p.Dst) &&
		slices.Contains(rules.Ports, hostports.Port{Proto: proto, Port: p.DstPort})
}

func (t *track) redirected(p *vppfake.Packet, to netip.Addr) { p.Dst, t.redirect = to, true }

// masqueradeLocked gives a packet another source, and another port if the answers could not be told from others'.
func (s *Stack) masqueradeLocked(t *track, p *vppfake.Packet, src netip.Addr) {
	p.Src = src
	for s.taken(flowOf(p).back(), t.first) {
		p.SrcPort++
	}
}

func (s *Stack) taken(answers, first flow) bool {
	now, ok := s.nat[answers]
	return ok && now.to != first.back()
}

// confirmLocked remembers what has become of the first packet of a connection.
func (s *Stack) confirmLocked(t *track, p *vppfake.Packet) {
	if now := flowOf(p); !t.known && now != t.first {
		s.nat[t.first] = translated{to: now, marked: t.marked}
		s.nat[now.back()] = translated{to: t.first.back(), answer: true, marked: t.marked}
	}
}

// comesBackLocked: what VPP hands back with the host's own address is given an address that is nobody's.
func (s *Stack) comesBackLocked(device string, p *vppfake.Packet) {
	if rules := s.portsOf(p); aliased(rules) && device == rules.Link && p.Src == rules.Own {
		p.Src = rules.Alias
	}
}

// goesAwayLocked undoes it for the answers.
func (s *Stack) goesAwayLocked(device string, p *vppfake.Packet) {
	if rules := s.portsOf(p); aliased(rules) && device == rules.Link && p.Dst == rules.Alias {
		p.Dst = rules.Own
	}
}

func aliased(p *hostports.Ports) bool { return p.Own.IsValid() && p.Alias.IsValid() }
