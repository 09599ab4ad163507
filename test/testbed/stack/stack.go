package stack

import (
	"fmt"
	"net/netip"
	"sync"

	linux_nodeports "contiv.dev/vswitch/dataplane/nb/linux/nodeports"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// Stack is one network namespace. Its methods may be called from any goroutine.
type Stack struct {
	Name     string
	Forwards bool // forwards packets that are not for itself

	mu     sync.Mutex // guards the fields below
	links  map[string]Link
	routes map[string]Route
	peers  map[peer]vppfake.MAC
	ports  [2]*linux_nodeports.NodePorts // by family; nil: none
	nat    map[flow]flow                 // translations by flow
}

// Link is a device.
type Link struct {
	Device string
	MAC    vppfake.MAC
	Addrs  []netip.Prefix
}

// Route is a route by a device; Via is invalid for destinations on the link itself.
type Route struct {
	Dst    netip.Prefix
	Via    netip.Addr
	Device string
}

type peer struct {
	device string
	addr   netip.Addr
}

// Outcome is the outcome of a packet at a stack: it is for the stack itself, it is sent, or it is dropped.
type Outcome struct {
	Local  bool
	Drop   string // reason; empty unless the packet is dropped
	Device string // device by which the packet is sent
	To     netip.Addr
	Packet vppfake.Packet // with Ethernet addresses, as far as the stack has them
}

// New returns a stack without links.
func New(name string) *Stack {
	return &Stack{
		Name: name, links: map[string]Link{}, routes: map[string]Route{}, peers: map[peer]vppfake.MAC{}, nat: map[flow]flow{},
	}
}

// SetLink adds or replaces a device.
func (s *Stack) SetLink(l Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links[l.Device] = l
}

// DeleteLink removes a device.
func (s *Stack) DeleteLink(device string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.links, device)
}

// SetRoute adds or replaces the route of a name.
func (s *Stack) SetRoute(name string, r Route) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routes[name] = r
}

// DeleteRoute removes a named route.
func (s *Stack) DeleteRoute(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.routes, name)
}

// SetNeighbor sets the MAC address of a neighbour on a link; the zero MAC removes it.
func (s *Stack) SetNeighbor(device string, addr netip.Addr, mac vppfake.MAC) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mac == (vppfake.MAC{}) {
		delete(s.peers, peer{device, addr})
		return
	}
	s.peers[peer{device, addr}] = mac
}

// SetPorts sets the node ports of a family; nil: none.
func (s *Stack) SetPorts(ipv6 bool, p *linux_nodeports.NodePorts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ports[index(ipv6)] = p
}

func index(ipv6 bool) int {
	if ipv6 {
		return 1
	}
	return 0
}

// MAC returns the MAC address of a device.
func (s *Stack) MAC(device string) (vppfake.MAC, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.links[device]
	return l.MAC, ok
}

// Source returns the source address for packets to another address.
func (s *Stack) Source(to netip.Addr) (netip.Addr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ownsLocked(to) {
		return to, nil
	}
	r, ok := s.routeLocked(to)
	if !ok {
		return netip.Addr{}, fmt.Errorf("%s has no route to %s", s.Name, to)
	}
	next := r.Via
	if !next.IsValid() {
		next = to
	}
	var any netip.Addr
	for _, p := range s.links[r.Device].Addrs {
		if p.Contains(next) {
			return p.Addr(), nil
		}
		if p.Addr().Is4() == to.Is4() && !any.IsValid() {
			any = p.Addr()
		}
	}
	if any.IsValid() {
		return any, nil
	}
	return netip.Addr{}, fmt.Errorf("%s has no address on %s for %s", s.Name, r.Device, to)
}

func (s *Stack) ownsLocked(a netip.Addr) bool {
	for _, l := range s.links {
		for _, p := range l.Addrs {
			if p.Addr() == a {
				return true
			}
		}
	}
	return false
}

// routeLocked returns the most specific route; networks on a link take precedence.
func (s *Stack) routeLocked(to netip.Addr) (best Route, ok bool) {
	consider := func(r Route) {
		if r.Dst.Contains(to) && (!ok || r.Dst.Bits() > best.Dst.Bits()) {
			best, ok = r, true
		}
	}
	for _, l := range s.links {
		for _, p := range l.Addrs {
			consider(Route{Dst: p.Masked(), Device: l.Device})
		}
	}
	for _, r := range s.routes {
		consider(r)
	}
	return best, ok
}

// Send sends a packet of the stack itself.
func (s *Stack) Send(p vppfake.Packet) Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.TTL == 0 {
		p.TTL = 64
	}
	t := s.trackLocked(&p)
	if !t.known {
		s.redirectLocked(t, &p)
	}
	if s.ownsLocked(p.Dst) {
		s.confirmLocked(t, &p)
		return Outcome{Local: true, Packet: p}
	}
	return s.leaveLocked(t, p)
}

// Receive processes a packet that arrives on a device.
func (s *Stack) Receive(device string, p vppfake.Packet) Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.links[device]
	if !ok {
		return Outcome{Drop: fmt.Sprintf("%s has no %s", s.Name, device)}
	}
	if l.MAC != (vppfake.MAC{}) && p.EthDst != l.MAC {
		return Outcome{Drop: fmt.Sprintf("%s: MAC %s is not that of %s", s.Name, p.EthDst, device)}
	}
	t := s.trackLocked(&p)
	if !t.known && device != s.portsOf(&p).GetDevice() {
		s.redirectLocked(t, &p)
	}
	switch {
	case s.ownsLocked(p.Dst):
		s.confirmLocked(t, &p)
		return Outcome{Local: true, Packet: p}
	case !s.Forwards:
		return Outcome{Drop: fmt.Sprintf("%s does not forward to %s", s.Name, p.Dst)}
	case p.TTL <= 1:
		return Outcome{Drop: s.Name + ": ttl expired"}
	}
	p.TTL--
	return s.leaveLocked(t, p)
}

// leaveLocked routes and sends a packet.
func (s *Stack) leaveLocked(t *track, p vppfake.Packet) Outcome {
	r, ok := s.routeLocked(p.Dst)
	if !ok {
		return Outcome{Drop: fmt.Sprintf("%s has no route to %s", s.Name, p.Dst)}
	}
	next := r.Via
	if !next.IsValid() {
		next = p.Dst
	}
	if t.redirect && !t.keeps && r.Device == s.portsOf(&p).GetDevice() {
		src, ok := s.addressLocked(r.Device, next)
		if !ok {
			return Outcome{Drop: fmt.Sprintf("%s has no address on %s", s.Name, r.Device)}
		}
		s.masqueradeLocked(t, &p, src)
	}
	s.confirmLocked(t, &p)
	p.EthSrc, p.EthDst, p.VLAN = s.links[r.Device].MAC, s.peers[peer{r.Device, next}], nil
	return Outcome{Device: r.Device, To: next, Packet: p}
}

// addressLocked returns a device's address for a neighbour.
func (s *Stack) addressLocked(device string, next netip.Addr) (netip.Addr, bool) {
	for _, p := range s.links[device].Addrs {
		if p.Contains(next) {
			return p.Addr(), true
		}
	}
	return netip.Addr{}, false
}
