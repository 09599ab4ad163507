package stack

import (
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/hostports"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// SetAliases sets the aliases of a family.
func (s *Stack) SetAliases(ipv6 bool, a hostports.Aliases) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aliases[index(ipv6)] = a
}

// Aliases are those of a family.
func (s *Stack) Aliases(ipv6 bool) hostports.Aliases {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.aliases[index(ipv6)]
}

// aliasLocked sends a packet of the stack's own to the alias of its destination.
func (s *Stack) aliasLocked(t *track, p *vppfake.Packet) {
	proto := map[uint8]string{vppfake.ProtoTCP: "tcp", vppfake.ProtoUDP: "udp"}[p.Proto]
	list := s.aliases[index(p.Dst.Is6())].Aliases
	i := slices.IndexFunc(list, func(a hostports.Alias) bool {
		return a.At == netip.AddrPortFrom(p.Dst, p.DstPort) && a.Proto == proto
	})
	if i >= 0 && !t.known {
		p.Dst, p.DstPort, t.alias = list[i].To.Addr(), list[i].To.Port(), true
	}
}
