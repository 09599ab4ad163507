package sourceranges

import (
	"cmp"
	"net/netip"
	"slices"

	"google.golang.org/protobuf/proto"

	vpp_acl "contiv.dev/vswitch/dataplane/nb/vpp/acl"
	"contiv.dev/vswitch/internal/ipaddr"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// mostDrops is the maximum number of frontends whose packets are dropped instead of rejected; above it they are rejected. VPP walks all rules
// for each interface after a change, and forwards no packets meanwhile (docs/adr/0009).
const mostDrops = 100

// Frontend is an address, port and protocol that clients use. Port 0 stands for all packets to the address.
type Frontend struct {
	Addr  netip.Addr
	Port  uint16
	Proto renderer.ProtocolType
}

func (p Frontend) compare(q Frontend) int {
	return cmp.Or(p.Addr.Compare(q.Addr), cmp.Compare(p.Port, q.Port), cmp.Compare(p.Proto, q.Proto))
}

// Node holds what the ACL depends on besides services.
type Node struct {
	// Interfaces are the interfaces from which clients send.
	Interfaces renderer.Interfaces
	// Host is the source address of what the host sends to VPP; invalid if there is none. For users the host is the node, so the host may use
	// what an address of the node may use.
	Host netip.Addr
	// Own are the node's addresses.
	Own *renderer.IPAddresses
}

// ACL renders the frontends that only some clients may use.
type ACL struct {
	name      string
	frontends map[Frontend][]netip.Prefix
	changed   bool
	value     *vpp_acl.ACL // the ACL that was put last; nil: none
	node      Node
}

// New returns an ACL without frontends; name is its name in the northbound model.
func New(name string) *ACL { return &ACL{name: name, frontends: map[Frontend][]netip.Prefix{}} }

// Name returns the name of the ACL.
func (a *ACL) Name() string { return a.name }

// Set restricts a frontend to clients in the networks from.
func (a *ACL) Set(p Frontend, from []netip.Prefix) {
	if have, ok := a.frontends[p]; ok && slices.Equal(have, from) {
		return
	}
	a.frontends[p], a.changed = from, true
}

// Clear removes the restriction of a frontend.
func (a *ACL) Clear(p Frontend) {
	if _, ok := a.frontends[p]; ok {
		delete(a.frontends, p)
		a.changed = true
	}
}

// Emit puts or removes the ACL if it has changed.
func (a *ACL) Emit(node Node, put, remove func(proto.Message)) {
	if len(a.frontends) == 0 && a.value == nil {
		a.changed = false
		return
	}
	if !a.changed && a.value != nil && a.node.same(node) {
		return
	}
	a.changed, a.node = false, node
	if len(a.frontends) == 0 {
		remove(a.value)
		a.value = nil
		return
	}
	if v := a.render(); a.value == nil || !proto.Equal(v, a.value) {
		put(v)
		a.value = v
	}
}

func (n Node) same(o Node) bool {
	if len(n.Interfaces) != len(o.Interfaces) || n.Host != o.Host || !n.Own.Equal(o.Own) {
		return false
	}
	for name := range n.Interfaces {
		if !o.Interfaces.Has(name) {
			return false
		}
	}
	return true
}

func (a *ACL) render() *vpp_acl.ACL {
	v := &vpp_acl.ACL{Name: a.name, Interfaces: &vpp_acl.ACL_Interfaces{}}
	for name := range a.node.Interfaces {
		v.Interfaces.Ingress = append(v.Interfaces.Ingress, name)
	}
	slices.Sort(v.Interfaces.Ingress)
	frontends := make([]Frontend, 0, len(a.frontends))
	for p := range a.frontends {
		frontends = append(frontends, p)
	}
	slices.SortFunc(frontends, Frontend.compare)
	drops := 0
	for _, p := range frontends {
		from := a.frontends[p]
		if len(from) == 0 && p.Port != 0 {
			if drops++; drops > mostDrops {
				continue
			}
		}
		for _, net := range a.sources(p, from) {
			v.Rules = append(v.Rules, rule(vpp_acl.ACL_Rule_PERMIT, net, p))
		}
		v.Rules = append(v.Rules, rule(vpp_acl.ACL_Rule_DENY, everywhere(p.Addr), p))
	}
	return v
}

// sources returns the networks of the clients that may use a frontend.
func (a *ACL) sources(p Frontend, from []netip.Prefix) []netip.Prefix {
	out := slices.Clone(from)
	host := a.node.Host
	if !host.IsValid() || host.Is6() != p.Addr.Is6() {
		return out
	}
	for _, own := range a.node.Own.Addrs() {
		if slices.ContainsFunc(from, func(net netip.Prefix) bool { return net.Contains(own) }) {
			return append(out, ipaddr.HostPrefix(host))
		}
	}
	return out
}

func everywhere(like netip.Addr) netip.Prefix {
	if like.Is6() {
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
}

func rule(action vpp_acl.ACL_Rule_Action, from netip.Prefix, to Frontend) *vpp_acl.ACL_Rule {
	port := &vpp_acl.ACL_Rule_IpRule_PortRange{LowerPort: uint32(to.Port), UpperPort: uint32(to.Port)}
	r := &vpp_acl.ACL_Rule_IpRule{Ip: &vpp_acl.ACL_Rule_IpRule_Ip{
		SourceNetwork: from.String(), DestinationNetwork: ipaddr.HostPrefix(to.Addr).String(),
	}}
	switch {
	case to.Port == 0:
	case to.Proto == renderer.UDP:
		r.Udp = &vpp_acl.ACL_Rule_IpRule_Udp{DestinationPortRange: port}
	default:
		r.Tcp = &vpp_acl.ACL_Rule_IpRule_Tcp{DestinationPortRange: port}
	}
	return &vpp_acl.ACL_Rule{Action: action, IpRule: r}
}
