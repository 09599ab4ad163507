package gate

import (
	"cmp"
	"net/netip"
	"slices"

	"google.golang.org/protobuf/proto"

	vpp_acl "contiv.dev/vswitch/dataplane/nb/vpp/acl"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// mostDrops is how many places may be dropped instead of rejected. VPP goes through all rules for each interface when one has
// changed, and meanwhile handles no packets (docs/adr/0009). Of more than that the rest is rejected.
const mostDrops = 100

// Place is what a client sends to. Without a port it is all that goes to the address.
type Place struct {
	Addr  netip.Addr
	Port  uint16
	Proto renderer.ProtocolType
}

func (p Place) compare(q Place) int {
	return cmp.Or(p.Addr.Compare(q.Addr), cmp.Compare(p.Port, q.Port), cmp.Compare(p.Proto, q.Proto))
}

// Node is what the ACL depends on besides services.
type Node struct {
	// Interfaces are those by which clients come.
	Interfaces renderer.Interfaces
	// Host is the source of what the host sends, invalid if there is none. To those that write source ranges the host is the node, so it
	// may use what an address of the node may.
	Host netip.Addr
	// Own are the node's addresses.
	Own *renderer.IPAddresses
}

// Gates are the places that not everybody may use.
type Gates struct {
	acl     string
	places  map[Place][]netip.Prefix
	changed bool
	value   *vpp_acl.ACL // as it was put; nil: there is none
	node    Node
}

// New has no gates; acl is the name of the ACL.
func New(acl string) *Gates { return &Gates{acl: acl, places: map[Place][]netip.Prefix{}} }

// ACL is its name.
func (g *Gates) ACL() string { return g.acl }

// Set opens a place to clients in some networks only.
func (g *Gates) Set(p Place, from []netip.Prefix) {
	if have, ok := g.places[p]; ok && slices.Equal(have, from) {
		return
	}
	g.places[p], g.changed = from, true
}

// Clear opens a place to everybody.
func (g *Gates) Clear(p Place) {
	if _, ok := g.places[p]; ok {
		delete(g.places, p)
		g.changed = true
	}
}

// Emit puts the ACL, or removes it, if there is something new.
func (g *Gates) Emit(node Node, put, remove func(proto.Message)) {
	if len(g.places) == 0 && g.value == nil {
		g.changed = false
		return
	}
	if !g.changed && g.value != nil && g.node.same(node) {
		return
	}
	g.changed, g.node = false, node
	if len(g.places) == 0 {
		remove(g.value)
		g.value = nil
		return
	}
	if v := g.render(); g.value == nil || !proto.Equal(v, g.value) {
		put(v)
		g.value = v
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

func (g *Gates) render() *vpp_acl.ACL {
	v := &vpp_acl.ACL{Name: g.acl, Interfaces: &vpp_acl.ACL_Interfaces{}}
	for name := range g.node.Interfaces {
		v.Interfaces.Ingress = append(v.Interfaces.Ingress, name)
	}
	slices.Sort(v.Interfaces.Ingress)
	places := make([]Place, 0, len(g.places))
	for p := range g.places {
		places = append(places, p)
	}
	slices.SortFunc(places, Place.compare)
	drops := 0
	for _, p := range places {
		from := g.places[p]
		if len(from) == 0 && p.Port != 0 {
			if drops++; drops > mostDrops {
				continue
			}
		}
		for _, net := range g.sources(p, from) {
			v.Rules = append(v.Rules, rule(vpp_acl.ACL_Rule_PERMIT, net, p))
		}
		v.Rules = append(v.Rules, rule(vpp_acl.ACL_Rule_DENY, everywhere(p.Addr), p))
	}
	return v
}

// sources are the networks of those that may use a place.
func (g *Gates) sources(p Place, from []netip.Prefix) []netip.Prefix {
	out := slices.Clone(from)
	host := g.node.Host
	if !host.IsValid() || host.Is6() != p.Addr.Is6() {
		return out
	}
	for _, own := range g.node.Own.Addrs() {
		if slices.ContainsFunc(from, func(net netip.Prefix) bool { return net.Contains(own) }) {
			return append(out, whole(host))
		}
	}
	return out
}

func whole(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

func everywhere(like netip.Addr) netip.Prefix {
	if like.Is6() {
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
}

func rule(action vpp_acl.ACL_Rule_Action, from netip.Prefix, to Place) *vpp_acl.ACL_Rule {
	port := &vpp_acl.ACL_Rule_IpRule_PortRange{LowerPort: uint32(to.Port), UpperPort: uint32(to.Port)}
	r := &vpp_acl.ACL_Rule_IpRule{Ip: &vpp_acl.ACL_Rule_IpRule_Ip{
		SourceNetwork: from.String(), DestinationNetwork: whole(to.Addr).String(),
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
