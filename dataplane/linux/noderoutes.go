package intdataplane

import (
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/linux/routetable"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// The kinds of routes that do not belong to an endpoint. Each route is its own class, named by its kind and destination, so that the cost
// of a change does not depend on the number of nodes.
const (
	classVXLAN  = "vxlan"  // to other nodes' workloads through the VXLAN device
	classIPIP   = "ipip"   // through tunl0
	classDirect = "direct" // with the other node as the next hop
	classBlocks = "blocks" // addresses of this node's blocks that no workload has
)

// nodeRouteManager maintains one family's routes to the workloads of other nodes. It also blackholes this node's own blocks, so that
// packets to an unassigned address in them are not forwarded to the default gateway and back.
type nodeRouteManager struct {
	family     table.Family
	config     rules.Config
	isWorkload func(iface string) bool
	out        routeSink
	log        *slog.Logger

	routes map[netip.Prefix]*proto.RouteUpdate
	byNode map[string]map[netip.Prefix]bool // destinations by the node that owns them
	vteps  map[string]netip.Addr            // nodes' tunnel addresses of the family
	parent map[string]netip.Addr            // nodes' addresses in the underlay
	hosts  map[string]netip.Addr
	addrs  map[string][]netip.Addr // of this node's interfaces
	link   string                  // the interface with this node's address; "" if unknown

	changed map[netip.Prefix]bool   // destinations to compute again
	placed  map[netip.Prefix]string // class under which a route was passed to out
	// waiting holds, for each route with a missing dependency, the name of this dependency.
	waiting map[netip.Prefix]string
}

func newNodeRouteManager(f table.Family, c rules.Config, out routeSink, log *slog.Logger) *nodeRouteManager {
	return &nodeRouteManager{family: f, config: c, isWorkload: c.IsWorkloadIface, out: out, log: log,
		routes: map[netip.Prefix]*proto.RouteUpdate{}, byNode: map[string]map[netip.Prefix]bool{},
		vteps: map[string]netip.Addr{}, parent: map[string]netip.Addr{}, hosts: map[string]netip.Addr{},
		addrs: map[string][]netip.Addr{}, changed: map[netip.Prefix]bool{}, placed: map[netip.Prefix]string{},
		waiting: map[netip.Prefix]string{}}
}

// OnUpdate takes updates and removals of routes, VTEPs and nodes, and the addresses of interfaces.
func (m *nodeRouteManager) OnUpdate(msg any) {
	switch msg := msg.(type) {
	case *proto.RouteUpdate:
		m.setRoute(msg.GetDst(), msg)
	case *proto.RouteRemove:
		m.setRoute(msg.GetDst(), nil)
	case *proto.VXLANTunnelEndpointUpdate:
		addr, parent := msg.GetIpv4Addr(), msg.GetParentDeviceIp()
		if m.family == table.IPv6 {
			addr, parent = msg.GetIpv6Addr(), msg.GetParentDeviceIpv6()
		}
		m.set(m.vteps, msg.GetNode(), addr)
		m.set(m.parent, msg.GetNode(), parent)
	case *proto.VXLANTunnelEndpointRemove:
		m.set(m.vteps, msg.GetNode(), "")
		m.set(m.parent, msg.GetNode(), "")
	case *proto.HostMetadataUpdate:
		addr := msg.GetIpv4Addr()
		if m.family == table.IPv6 {
			addr = msg.GetIpv6Addr()
		}
		m.set(m.hosts, msg.GetHostname(), addr)
	case *proto.HostMetadataRemove:
		m.set(m.hosts, msg.GetHostname(), "")
	case *ifaceAddrs:
		m.setAddrs(msg)
	}
}

func (m *nodeRouteManager) setAddrs(msg *ifaceAddrs) {
	if m.isWorkload(msg.Name) || slices.Equal(m.addrs[msg.Name], msg.Addrs) {
		return
	}
	if m.addrs[msg.Name] = msg.Addrs; msg.Addrs == nil {
		delete(m.addrs, msg.Name)
	}
	m.findUplink()
}

// findUplink determines the uplink again; if it has changed, all routes are computed again.
func (m *nodeRouteManager) findUplink() {
	if link := m.uplink(); link != m.link {
		m.link = link
		m.changeAll()
	}
}

func (m *nodeRouteManager) changeAll() {
	for dst := range m.routes {
		m.changed[dst] = true
	}
}

// set records an address of a node. Routes to that node are computed again; if it is this node, all routes.
func (m *nodeRouteManager) set(list map[string]netip.Addr, node, text string) {
	a, err := netip.ParseAddr(text)
	if a = a.Unmap(); err != nil || familyOf(a) != m.family {
		a = netip.Addr{}
	}
	if list[node] == a {
		return
	}
	if list[node] = a; !a.IsValid() {
		delete(list, node)
	}
	if node == m.config.Hostname {
		m.findUplink()
		m.changeAll()
		return
	}
	for dst := range m.byNode[node] {
		m.changed[dst] = true
	}
}

func (m *nodeRouteManager) setRoute(dst string, r *proto.RouteUpdate) {
	p, err := rules.ParseNet(dst)
	if err != nil {
		m.log.Error("route is ignored", "destination", dst, "error", err)
		return
	}
	if familyOf(p.Addr()) != m.family {
		return
	}
	if old := m.routes[p]; old != nil {
		node := old.GetDstNodeName()
		if delete(m.byNode[node], p); len(m.byNode[node]) == 0 {
			delete(m.byNode, node)
		}
	}
	m.changed[p] = true
	if r == nil {
		delete(m.routes, p)
		return
	}
	m.routes[p] = r
	of := m.byNode[r.GetDstNodeName()]
	if of == nil {
		of = map[netip.Prefix]bool{}
		m.byNode[r.GetDstNodeName()] = of
	}
	of[p] = true
}

// CompleteDeferredWork passes on the routes that have changed.
func (m *nodeRouteManager) CompleteDeferredWork() error {
	for _, dst := range slices.SortedFunc(maps.Keys(m.changed), comparePrefixes) {
		m.complete(dst)
	}
	clear(m.changed)
	return nil
}

func (m *nodeRouteManager) complete(dst netip.Prefix) {
	var kind, lacks string
	var target routeTarget
	if r := m.routes[dst]; r != nil {
		kind, target, lacks = m.target(dst, r)
	}
	if lacks != "" && m.waiting[dst] != lacks {
		m.log.Info("route is not programmed yet", "destination", dst, "missing", lacks)
	}
	if m.waiting[dst] = lacks; lacks == "" {
		delete(m.waiting, dst)
	}
	class := ""
	if kind != "" {
		class = kind + "/" + dst.String()
	}
	if before := m.placed[dst]; before != "" && before != class {
		m.out.DeleteClass(before)
		delete(m.placed, dst)
	}
	if class != "" {
		m.out.SetRoutes(class, []routeTarget{target})
		m.placed[dst] = class
	}
}

func comparePrefixes(a, b netip.Prefix) int {
	if c := a.Addr().Compare(b.Addr()); c != 0 {
		return c
	}
	return a.Bits() - b.Bits()
}

// target computes one route. An empty kind means that there is nothing to program; lacks is the missing dependency, if any.
func (m *nodeRouteManager) target(dst netip.Prefix, r *proto.RouteUpdate) (kind string, t routeTarget, lacks string) {
	if r.Is(proto.RouteUpdate_TYPES_REMOTE_WORKLOAD) && r.GetDstNodeName() != m.config.Hostname {
		return m.remote(dst, r)
	}
	if r.Is(proto.RouteUpdate_TYPES_LOCAL_WORKLOAD) && !dst.IsSingleIP() {
		return classBlocks, routeTarget{CIDR: dst, Type: routetable.Blackhole}, ""
	}
	return "", routeTarget{}, ""
}

func (m *nodeRouteManager) remote(dst netip.Prefix, r *proto.RouteUpdate) (string, routeTarget, string) {
	node := r.GetDstNodeName()
	direct := r.GetSameSubnet() || r.GetIpPoolType() == proto.IPPoolType_NO_ENCAP
	switch {
	case direct:
		return m.direct(dst, r)
	case r.GetIpPoolType() == proto.IPPoolType_VXLAN && !m.config.VXLANEnabled:
		return "", routeTarget{}, "RulesConfig.VXLANEnabled"
	case r.GetIpPoolType() == proto.IPPoolType_VXLAN:
		gw, known := m.vteps[node]
		if !known {
			return "", routeTarget{}, fmt.Sprintf("the VTEP of node %s", node)
		}
		if _, known := m.vteps[m.config.Hostname]; !known {
			return "", routeTarget{}, "this node's VTEP"
		}
		return classVXLAN, routeTarget{CIDR: dst, Iface: m.config.VXLANDevice, GW: gw, OnLink: true}, ""
	case r.GetIpPoolType() == proto.IPPoolType_IPIP && m.family == table.IPv4:
		if !m.config.IPIPEnabled {
			return "", routeTarget{}, "RulesConfig.IPIPEnabled"
		}
		gw, err := parseAddr(r.GetDstNodeIp(), m.family)
		if err != nil {
			return "", routeTarget{}, fmt.Sprintf("an address of node %s", node)
		}
		return classIPIP, routeTarget{CIDR: dst, Iface: rules.IPIPDevice, GW: gw, OnLink: true}, ""
	}
	return "", routeTarget{}, ""
}

// direct returns a route with the other node as the next hop, on the link that has this node's own address.
func (m *nodeRouteManager) direct(dst netip.Prefix, r *proto.RouteUpdate) (string, routeTarget, string) {
	gw, err := parseAddr(r.GetDstNodeIp(), m.family)
	if err != nil {
		return "", routeTarget{}, fmt.Sprintf("an address of node %s", r.GetDstNodeName())
	}
	if m.link == "" {
		return "", routeTarget{}, "the interface that has this node's address"
	}
	return classDirect, routeTarget{CIDR: dst, Iface: m.link, GW: gw}, ""
}

// uplink returns the interface with this node's address, or "" if it is unknown.
func (m *nodeRouteManager) uplink() string {
	for _, own := range []netip.Addr{m.hosts[m.config.Hostname], m.parent[m.config.Hostname]} {
		if !own.IsValid() {
			continue
		}
		for _, iface := range slices.Sorted(maps.Keys(m.addrs)) {
			if slices.ContainsFunc(m.addrs[iface], func(a netip.Addr) bool { return a.WithZone("").Unmap() == own }) {
				return iface
			}
		}
	}
	return ""
}
