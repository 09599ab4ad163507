package lb

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// Service describes a service for the dataplane.
type Service struct {
	Name     string        // namespace/name
	Affinity time.Duration // 0: connections are balanced independently
	Ports    []Port
}

// Port is a port of a service in one family.
type Port struct {
	Name      string
	Family    table.Family
	Proto     uint8
	Frontends []Frontend
	Kept      *Group // UDP and SCTP: backends that get no new connections, but keep those that they have; nil: none
}

// Key is the destination that clients use.
type Key struct {
	Addr  netip.Addr
	Proto uint8
	Port  uint16
}

// Frontend is a key, with the handling of packets to it.
type Frontend struct {
	Key
	Cluster         bool // it is a cluster IP: the address is used for nothing else
	Inside, Outside *Group
	Masquerade      Masquerade
	// Sources are the prefixes that clients must belong to if Restricted is set.
	Restricted bool
	Sources    []netip.Prefix
}

// Masquerade determines which connections are translated to the node's address, as seen by backends. Connections of a pod to itself always
// are.
type Masquerade uint32

// The kinds.
const (
	Always  Masquerade = iota + 1
	NotPods            // of all senders except pods
	OwnOnly            // of the node itself
)

// Verdict is the handling of packets to a group.
type Verdict = proto.BalancedGroup_Verdict

// The verdicts.
const (
	Balance = proto.BalancedGroup_BALANCE
	Drop    = proto.BalancedGroup_DROP
	Reject  = proto.BalancedGroup_REJECT
)

// Group is a list of backends. Groups are immutable and use the message's memory, about 6 bytes per IPv4 backend.
type Group struct {
	ID      uint64 // unique unless 64 bits of a hash collide, and the same in each process
	Verdict Verdict
	own     []netip.Addr
	addrs   []byte
	ports   []uint32
	size    int // of an address, in bytes
}

// Len returns the number of backends.
func (g *Group) Len() int {
	if g.size == 0 {
		return 0
	}
	return len(g.addrs) / g.size
}

// AddrSize returns the size of an address in bytes.
func (g *Group) AddrSize() int { return g.size }

// AddrBytes returns the address of a backend. The caller must not change it.
func (g *Group) AddrBytes(i int) []byte { return g.addrs[i*g.size : (i+1)*g.size] }

// Port returns the port of a backend.
func (g *Group) Port(i int) uint16 {
	if len(g.ports) == 1 {
		return uint16(g.ports[0])
	}
	return uint16(g.ports[i])
}

// At returns a backend.
func (g *Group) At(i int) netip.AddrPort {
	a, _ := netip.AddrFromSlice(g.AddrBytes(i))
	return netip.AddrPortFrom(a, g.Port(i))
}

// Own returns the backends that are pods of this node.
func (g *Group) Own() []netip.Addr { return g.own }

// Same reports whether both groups have a backend at i, and it is the same.
func (g *Group) Same(o *Group, i int) bool {
	return g.size == o.size && i < g.Len() && i < o.Len() && g.Port(i) == o.Port(i) &&
		string(g.AddrBytes(i)) == string(o.AddrBytes(i))
}

// Name returns the name of a message's service.
func Name(m interface {
	GetNamespace() string
	GetName() string
}) string {
	return m.GetNamespace() + "/" + m.GetName()
}

// maxAffinity limits the session affinity. Kubernetes' API allows a day; somewhat more does no harm.
const maxAffinity = 30 * 24 * time.Hour

// Parse converts and validates a message. The error names the invalid part; then the service is not served at all.
func Parse(m *proto.BalancedServiceUpdate) (*Service, error) {
	s := &Service{Name: Name(m), Affinity: time.Duration(m.GetAffinitySeconds()) * time.Second}
	if s.Affinity > maxAffinity {
		return nil, fmt.Errorf("session affinity of %s is longer than %s", s.Affinity, maxAffinity)
	}
	for _, p := range m.GetPorts() {
		port, err := parsePort(s.Name, p)
		if err != nil {
			return nil, fmt.Errorf("port %q: %w", p.GetName(), err)
		}
		s.Ports = append(s.Ports, port)
	}
	return s, nil
}

func parsePort(service string, p *proto.BalancedPort) (Port, error) {
	out := Port{Name: p.GetName(), Family: table.IPv4, Proto: uint8(p.GetProtocol())}
	if p.GetIpv6() {
		out.Family = table.IPv6
	}
	switch p.GetProtocol() {
	case 6, 17, 132:
	default:
		return out, fmt.Errorf("protocol %d is not TCP, UDP or SCTP", p.GetProtocol())
	}
	id := fmt.Sprintf("%s/%d/%d/%s", service, out.Family, out.Proto, out.Name)
	everywhere, err := parseGroup(id+"/everywhere", out.Family, p.GetEverywhere())
	if err != nil {
		return out, err
	}
	here, err := parseGroup(id+"/here", out.Family, p.GetHere())
	if err != nil {
		return out, err
	}
	if out.Kept, err = parseGroup(id+"/kept", out.Family, p.GetKept()); err != nil {
		return out, err
	}
	for _, f := range p.GetFrontends() {
		front, err := parseFrontend(out, f, everywhere, here)
		if err != nil {
			return out, err
		}
		out.Frontends = append(out.Frontends, front)
	}
	return out, nil
}

func parseGroup(name string, f table.Family, m *proto.BalancedGroup) (*Group, error) {
	if m == nil {
		return nil, nil
	}
	g := &Group{ID: idOf(name), Verdict: m.GetVerdict(), addrs: m.GetAddresses(), ports: m.GetPorts(), size: addrSize(f)}
	if len(g.addrs)%g.size != 0 || len(m.GetOwn())%g.size != 0 {
		return nil, fmt.Errorf("%d bytes of addresses are not addresses of IPv%d", len(g.addrs), f)
	}
	if n := g.Len(); n > 0 && len(g.ports) != 1 && len(g.ports) != n {
		return nil, fmt.Errorf("%d ports for %d backends", len(g.ports), n)
	}
	if (g.Len() > 0) != (g.Verdict == Balance) {
		return nil, fmt.Errorf("%d backends to %s", g.Len(), g.Verdict)
	}
	for _, port := range g.ports {
		if port == 0 || port > 65535 {
			return nil, fmt.Errorf("port %d of a backend is not in 1..65535", port)
		}
	}
	for own := m.GetOwn(); len(own) > 0; own = own[g.size:] {
		a, _ := netip.AddrFromSlice(own[:g.size])
		g.own = append(g.own, a)
	}
	return g, nil
}

func parseFrontend(p Port, m *proto.BalancedFrontend, everywhere, here *Group) (Frontend, error) {
	addr, ok := netip.AddrFromSlice(m.GetAddress())
	if !ok || len(m.GetAddress()) != addrSize(p.Family) {
		return Frontend{}, fmt.Errorf("frontend %x is not an address of IPv%d", m.GetAddress(), p.Family)
	}
	if m.GetPort() == 0 || m.GetPort() > 65535 {
		return Frontend{}, fmt.Errorf("port %d of frontend %s is not in 1..65535", m.GetPort(), addr)
	}
	if addr.IsLoopback() || addr.IsUnspecified() || addr.IsMulticast() {
		return Frontend{}, fmt.Errorf("frontend %s is not an address that a service can have", addr)
	}
	f := Frontend{Key: Key{Addr: addr, Proto: p.Proto, Port: uint16(m.GetPort())}, Inside: everywhere, Outside: everywhere,
		Restricted: m.GetRestricted()}
	switch m.GetSource() {
	case proto.BalancedFrontend_CLUSTER:
		f.Cluster, f.Masquerade = true, NotPods
		if m.GetHereOnly() {
			f.Inside, f.Outside = here, here
		}
	case proto.BalancedFrontend_EXTERNAL:
		f.Masquerade = Always
	case proto.BalancedFrontend_EXTERNAL_LOCAL:
		f.Outside, f.Masquerade = here, OwnOnly
	default:
		return f, fmt.Errorf("frontend %s: unknown source %d", addr, m.GetSource())
	}
	if f.Inside == nil || f.Outside == nil {
		return f, fmt.Errorf("frontend %s has no group of backends", addr)
	}
	for _, text := range m.GetSourceRanges() {
		net, err := netip.ParsePrefix(text)
		if err != nil || net.Addr().Is4() != addr.Is4() {
			return f, fmt.Errorf("source range %q of %s is not a net of its family", text, addr)
		}
		f.Sources = append(f.Sources, net.Masked())
	}
	slices.SortFunc(f.Sources, netip.Prefix.Compare)
	f.Sources = slices.Compact(f.Sources)
	return f, nil
}

func addrSize(f table.Family) int {
	if f == table.IPv4 {
		return 4
	}
	return 16
}

// idOf returns the ID for a name. Users choose parts of the names, so it must be a hash for which a second input cannot be computed:
// otherwise the group of one service could replace that of another.
func idOf(name string) uint64 {
	sum := sha256.Sum256([]byte(name))
	return binary.BigEndian.Uint64(sum[:8])
}
