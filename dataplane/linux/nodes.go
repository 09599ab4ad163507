package intdataplane

import (
	"log/slog"
	"net/netip"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/internal/ipaddr"
)

// nodeSetsManager maintains the sets of addresses that may send tunnelled packets to this node: all-hosts-net holds the nodes' addresses
// and the subnets of nodes outside the cluster, all-vxlan-net the underlay addresses of VXLAN peers.
type nodeSetsManager struct {
	family table.Family
	out    setSink
	log    *slog.Logger

	hosts map[string]netip.Addr
	vteps map[string]netip.Addr // their addresses in the underlay
	all   *addrSet
	vxlan *addrSet
}

func newNodeSetsManager(f table.Family, external []netip.Prefix, out setSink, log *slog.Logger) *nodeSetsManager {
	all := newAddrSet(rules.SetAllHosts)
	for _, p := range external {
		if familyOf(p.Addr()) == f {
			all.count(table.Member{Net: p}, 1)
		}
	}
	return &nodeSetsManager{family: f, out: out, log: log, hosts: map[string]netip.Addr{}, vteps: map[string]netip.Addr{},
		all: all, vxlan: newAddrSet(rules.SetVXLANPeers)}
}

// OnUpdate takes updates and removals of HostMetadata and of VXLANTunnelEndpoint.
func (m *nodeSetsManager) OnUpdate(msg any) {
	switch msg := msg.(type) {
	case *proto.HostMetadataUpdate:
		addr := msg.GetIpv4Addr()
		if m.family == table.IPv6 {
			addr = msg.GetIpv6Addr()
		}
		m.set(m.hosts, m.all, msg.GetHostname(), addr)
	case *proto.HostMetadataRemove:
		m.set(m.hosts, m.all, msg.GetHostname(), "")
	case *proto.VXLANTunnelEndpointUpdate:
		parent := msg.GetParentDeviceIp()
		if m.family == table.IPv6 {
			parent = msg.GetParentDeviceIpv6()
		}
		m.set(m.vteps, m.vxlan, msg.GetNode(), parent)
	case *proto.VXLANTunnelEndpointRemove:
		m.set(m.vteps, m.vxlan, msg.GetNode(), "")
	}
}

// set records a node's address; an address of the other family counts as no address.
func (m *nodeSetsManager) set(list map[string]netip.Addr, in *addrSet, node, text string) {
	var a netip.Addr
	if text != "" {
		parsed, err := netip.ParseAddr(text)
		if err != nil {
			m.log.Error("address of a node is ignored", "node", node, "error", err)
		} else if parsed = parsed.WithZone("").Unmap(); familyOf(parsed) == m.family {
			a = parsed
		}
	}
	before := list[node]
	if before == a {
		return
	}
	if before.IsValid() {
		in.count(table.Member{Net: ipaddr.HostPrefix(before)}, -1)
	}
	if list[node] = a; a.IsValid() {
		in.count(table.Member{Net: ipaddr.HostPrefix(a)}, 1)
	} else {
		delete(list, node)
	}
}

// CompleteDeferredWork passes on the members that have changed.
func (m *nodeSetsManager) CompleteDeferredWork() error {
	m.all.handOn(m.family, m.out)
	m.vxlan.handOn(m.family, m.out)
	return nil
}

// addrSet is a set that counts the reasons for each member. The cost of a change does not depend on the size of the set.
type addrSet struct {
	id      string
	reasons map[table.Member]int
	changed map[table.Member]bool // members that have changed since the last handOn
	there   map[table.Member]bool // members passed on; nil: the set was not created yet
}

func newAddrSet(id string) *addrSet {
	return &addrSet{id: id, reasons: map[table.Member]int{}, changed: map[table.Member]bool{}}
}

// count changes the number of reasons for a member.
func (s *addrSet) count(m table.Member, by int) {
	if s.reasons[m] += by; s.reasons[m] == 0 {
		delete(s.reasons, m)
	}
	s.changed[m] = true
}

func (s *addrSet) handOn(f table.Family, out setSink) {
	var add, remove []table.Member
	created := s.there == nil
	if created {
		s.there = map[table.Member]bool{}
	}
	for m := range s.changed {
		switch wanted := s.reasons[m] > 0; {
		case wanted && !s.there[m]:
			add = append(add, m)
			s.there[m] = true
		case !wanted && s.there[m]:
			remove = append(remove, m)
			delete(s.there, m)
		}
	}
	clear(s.changed)
	switch {
	case created:
		out.ReplaceSet(f, table.Set{ID: s.id, Type: table.SetNet}, add)
	case len(add)+len(remove) > 0:
		out.ChangeSet(f, s.id, add, remove)
	}
}
