package services

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/test/testbed/stack"
	"contiv.dev/vswitch/test/testbed/whoami"
)

// fakeSite is a client, and a server at targetPort and otherPort, on a stack: it replaces package whoami.
type fakeSite struct {
	*stack.Stack
	name  string
	net   *fakeNet
	node  *fakeNode // nil: outside
	serve bool

	mu      sync.Mutex             // guards the fields below
	open    map[fakeFlow]bool      // TCP connections of the server
	clients map[fakeFlow]*fakeTalk // by the flow of their answers
}

// fakeFlow is a direction of a connection.
type fakeFlow struct {
	proto    uint8
	from, to netip.AddrPort
}

func flowOf(p *vppfake.Packet) fakeFlow {
	return fakeFlow{p.Proto, netip.AddrPortFrom(p.Src, p.SrcPort), netip.AddrPortFrom(p.Dst, p.DstPort)}
}

func newFakeSite(name string, s *stack.Stack, node *fakeNode) *fakeSite {
	return &fakeSite{
		Stack: s, name: name, node: node, serve: node != nil, open: map[fakeFlow]bool{}, clients: map[fakeFlow]*fakeTalk{},
	}
}

// handle processes a packet that has arrived, and returns the site's answers.
func (s *fakeSite) handle(l letter) []letter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.Error != nil {
		about := flowOf(&l.Error.Inner)
		if c := s.clients[fakeFlow{about.proto, about.to, about.from}]; c != nil {
			c.got = append(c.got, l)
		}
		return nil
	}
	flow := flowOf(&l.Packet)
	if c := s.clients[flow]; c != nil {
		c.got = append(c.got, l)
		return nil
	}
	listens := s.serve && (l.DstPort == targetPort || l.DstPort == otherPort)
	answer := whoami.Answer{Server: s.name, Local: flow.to, Client: flow.from}
	switch {
	case (l.Proto == vppfake.ProtoUDP || l.Proto == vppfake.ProtoSCTP) && listens:
		return []letter{{reply(l.Packet, 0), answer}}
	case l.Proto == vppfake.ProtoUDP:
		return []letter{{Packet: portUnreachable(l.Packet)}}
	case l.Proto == vppfake.ProtoTCP:
		return s.handleTCPLocked(flow, l.Packet, listens, answer)
	}
	return nil
}

func (s *fakeSite) handleTCPLocked(flow fakeFlow, p vppfake.Packet, listens bool, answer whoami.Answer) []letter {
	flags := p.Flags
	switch {
	case flags&vppfake.FlagRST != 0:
		delete(s.open, flow)
		return nil
	case flags == vppfake.FlagSYN && listens:
		s.open[flow] = true
		return []letter{{Packet: reply(p, vppfake.FlagSYN|vppfake.FlagACK)}}
	case !s.open[flow]:
		return []letter{{Packet: reply(p, vppfake.FlagRST)}}
	case flags&vppfake.FlagPSH != 0:
		return []letter{{reply(p, vppfake.FlagPSH|vppfake.FlagACK), answer}}
	}
	return nil
}

// reply returns an answer to a packet.
func reply(p vppfake.Packet, flags uint8) vppfake.Packet {
	return vppfake.Packet{
		Src: p.Dst, SrcPort: p.DstPort, Dst: p.Src, DstPort: p.SrcPort, Proto: p.Proto, Flags: flags, Size: p.Size,
	}
}

// portUnreachable returns the ICMP error of a host at whose port nothing listens.
func portUnreachable(p vppfake.Packet) vppfake.Packet {
	e := &vppfake.ICMPError{Type: 3, Code: 3, Inner: p}
	out := vppfake.Packet{Src: p.Dst, Dst: p.Src, Proto: vppfake.ProtoICMP, Error: e}
	if p.Dst.Is6() {
		out.Proto, e.Type, e.Code = vppfake.ProtoICMPv6, 1, 4
	}
	return out
}

// fakeTalk is a connection of a client, or a series of UDP packets.
type fakeTalk struct {
	site *fakeSite
	flow fakeFlow // of the client's packets
	got  []letter // guarded by site.mu
}

// dial implements site.
func (s *fakeSite) dial(_ context.Context, network string, to netip.AddrPort, _ time.Duration) (talk, error) {
	port, err := s.net.nextPort(network, to.Addr())
	if err != nil {
		return nil, err
	}
	return s.connect(port, network, to)
}

// dialFrom implements site.
func (s *fakeSite) dialFrom(_ context.Context, port uint16, to netip.AddrPort, _ time.Duration) (talk, error) {
	return s.connect(port, "tcp", to)
}

// connect connects from a source port.
func (s *fakeSite) connect(port uint16, network string, to netip.AddrPort) (talk, error) {
	proto := map[string]uint8{"tcp": vppfake.ProtoTCP, "udp": vppfake.ProtoUDP, "sctp": vppfake.ProtoSCTP}[network]
	source, err := s.Source(to.Addr())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", whoami.ErrRejected, err) // same error as connect()
	}
	c := &fakeTalk{site: s, flow: fakeFlow{proto, netip.AddrPortFrom(source, port), to}}
	s.mu.Lock()
	s.clients[fakeFlow{proto, to, c.flow.from}] = c
	s.mu.Unlock()
	if network != "tcp" {
		return c, nil
	}
	if _, err := c.exchange(vppfake.FlagSYN, vppfake.FlagSYN|vppfake.FlagACK); err != nil {
		c.reset()
		return nil, err
	}
	if _, err := c.exchange(vppfake.FlagACK, 0); err != nil {
		c.reset()
		return nil, err
	}
	return c, nil
}

func (c *fakeTalk) reset() {
	c.site.mu.Lock()
	defer c.site.mu.Unlock()
	delete(c.site.clients, fakeFlow{c.flow.proto, c.flow.to, c.flow.from})
}

// exchange sends a packet and waits for one with the flags; without flags it waits for no packet.
func (c *fakeTalk) exchange(flags, want uint8) (whoami.Answer, error) {
	p := vppfake.Packet{
		Src: c.flow.from.Addr(), SrcPort: c.flow.from.Port(), Dst: c.flow.to.Addr(), DstPort: c.flow.to.Port(),
		Proto: c.flow.proto, Size: 40,
	}
	if p.Proto == vppfake.ProtoTCP {
		p.Flags = flags
	}
	trail, err := c.site.net.carry(c.site, letter{Packet: p})
	if err != nil {
		return whoami.Answer{}, fmt.Errorf("%w\n  %s", err, trail)
	}
	c.site.mu.Lock()
	got := c.got
	c.got = nil
	c.site.mu.Unlock()
	for _, l := range got {
		switch {
		case l.Error != nil, l.Flags&vppfake.FlagRST != 0:
			return whoami.Answer{}, fmt.Errorf("%w\n  %s", whoami.ErrRejected, trail)
		case c.flow.proto != vppfake.ProtoTCP || l.Flags == want:
			return l.answer, nil
		}
	}
	if c.flow.proto == vppfake.ProtoTCP && want == 0 {
		return whoami.Answer{}, nil
	}
	return whoami.Answer{}, fmt.Errorf("%w\n  %s", whoami.ErrDropped, trail)
}

// Query implements talk.
func (c *fakeTalk) Query() (whoami.Answer, error) {
	return c.exchange(vppfake.FlagPSH|vppfake.FlagACK, vppfake.FlagPSH|vppfake.FlagACK)
}

// Close implements talk: the end of whoami's connections is a reset.
func (c *fakeTalk) Close() error {
	var err error
	if c.flow.proto == vppfake.ProtoTCP {
		_, err = c.exchange(vppfake.FlagRST, 0)
	}
	c.reset()
	return err
}
