package intdataplane

import (
	"log/slog"
	"net/netip"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// nodeSetsManager keeps the sets of the addresses that may send tunnelled packets to this node: all-hosts-net, the nodes'
// addresses and the nets of nodes outside of the cluster, and all-vxlan-net, the other ends of VXLAN.
type nodeSetsManager struct {
	family   table.Family
	external []netip.Prefix
	out      setSink
	log      *slog.Logger

	hosts map[string]netip.Addr
	vteps map[string]netip.Addr // their addresses in the underlay
	dirty bool
}

func newNodeSetsManager(f table.Family, external []netip.Prefix, out setSink, log *slog.Logger) *nodeSetsManager {
	return &nodeSetsManager{family: f, external: external, out: out, log: log,
		hosts: map[string]netip.Addr{}, vteps: map[string]netip.Addr{}, dirty: true}
}

// OnUpdate takes updates and removals of HostMetadata and of VXLANTunnelEndpoint.
func (m *nodeSetsManager) OnUpdate(msg any) {
	switch msg := msg.(type) {
	case *proto.HostMetadataUpdate:
		addr := msg.GetIpv4Addr()
		if m.family == table.IPv6 {
			addr = msg.GetIpv6Addr()
		}
		m.set(m.hosts, msg.GetHostname(), addr)
	case *proto.HostMetadataRemove:
		m.set(m.hosts, msg.GetHostname(), "")
	case *proto.VXLANTunnelEndpointUpdate:
		parent := msg.GetParentDeviceIp()
		if m.family == table.IPv6 {
			parent = msg.GetParentDeviceIpv6()
		}
		m.set(m.vteps, msg.GetNode(), parent)
	case *proto.VXLANTunnelEndpointRemove:
		m.set(m.vteps, msg.GetNode(), "")
	}
}

// set notes a node's address; one of the other family is none.
func (m *nodeSetsManager) set(list map[string]netip.Addr, node, text string) {
	var a netip.Addr
	if text != "" {
		parsed, err := netip.ParseAddr(text)
		if err != nil {
			m.log.Error("address of a node is ignored", "node", node, "error", err)
		} else if parsed = parsed.WithZone("").Unmap(); familyOf(parsed) == m.family {
			a = parsed
		}
	}
	if list[node] == a {
		return
	}
	if list[node] = a; !a.IsValid() {
		delete(list, node)
	}
	m.dirty = true
}

// CompleteDeferredWork rewrites both sets.
func (m *nodeSetsManager) CompleteDeferredWork() error {
	if !m.dirty {
		return nil
	}
	m.dirty = false
	var all, vxlan []table.Member
	for _, p := range m.external {
		if familyOf(p.Addr()) == m.family {
			all = append(all, table.Member{Net: p})
		}
	}
	for _, a := range m.hosts {
		all = append(all, table.Member{Net: hostNet(a)})
	}
	for _, a := range m.vteps {
		vxlan = append(vxlan, table.Member{Net: hostNet(a)})
	}
	m.out.ReplaceSet(m.family, table.Set{ID: rules.SetAllHosts, Type: table.SetNet}, unique(all))
	m.out.ReplaceSet(m.family, table.Set{ID: rules.SetVXLANPeers, Type: table.SetNet}, unique(vxlan))
	return nil
}
