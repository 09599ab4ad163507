package intdataplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tunnel"
	"contiv.dev/vswitch/dataplane/proto"
)

// vxlanDevice maintains the device and its entries for the other nodes. *tunnel.VXLAN implements it.
type vxlanDevice interface {
	SetLocal(local ...tunnel.VTEP)
	SetVTEPs(vteps []tunnel.VTEP)
	SetNode(node string, ends ...tunnel.VTEP)
	Resync()
	Apply(ctx context.Context) error
	Close() error
}

// vxlanManager maintains the VXLAN device. One device carries both families; its underlay is the family of this node's own VTEP, IPv4 if
// the VTEP has both. Without an own VTEP there is no device.
type vxlanManager struct {
	hostname string
	address  netip.Addr // of the own VTEP, if its message has no tunnel address
	name     string     // of the device
	enabled  bool
	make     func(underlay table.Family) vxlanDevice
	log      *slog.Logger

	nodeVTEPs
	links    hostLinks
	dirty    bool            // all VTEPs are processed again
	changed  map[string]bool // nodes whose VTEPs have changed
	device   vxlanDevice
	underlay table.Family
	active   bool // there is a device: VXLAN is enabled, and this node has a VTEP
	resync   bool
	gone     bool // VXLAN is disabled, and a device from before was removed
}

func newVXLANManager(c rules.Config, makeDevice func(table.Family) vxlanDevice, log *slog.Logger) *vxlanManager {
	return &vxlanManager{hostname: c.Hostname, address: c.VXLANTunnelAddress, name: c.VXLANDevice, enabled: c.VXLANEnabled, make: makeDevice, log: log,
		links:     hostLinks{prefixes: c.WorkloadIfacePrefixes, addrs: map[string][]netip.Addr{}},
		nodeVTEPs: nodeVTEPs{map[string]*proto.VXLANTunnelEndpointUpdate{}, map[string]error{}}, changed: map[string]bool{}, dirty: true}
}

// OnUpdate takes *proto.VXLANTunnelEndpointUpdate, *proto.VXLANTunnelEndpointRemove and the interface monitor's updates.
func (m *vxlanManager) OnUpdate(msg any) {
	switch msg := msg.(type) {
	case *proto.VXLANTunnelEndpointUpdate:
		m.vteps[msg.GetNode()] = msg
		m.note(msg.GetNode())
	case *proto.VXLANTunnelEndpointRemove:
		delete(m.vteps, msg.GetNode())
		delete(m.bad, msg.GetNode())
		m.note(msg.GetNode())
	case *ifaceState:
		m.resync = m.resync || msg.Name == m.name // the kernel removes the entries together with the device
	case *ifaceMTU:
		m.resync = m.resync || m.carries(msg.Name) // the device's MTU is that of the underlay minus the encapsulation
	case *ifaceAddrs:
		m.addrsChanged(msg)
	}
}

// addrsChanged records the addresses of a link. A link that gets the address of the own VTEP becomes the underlay.
func (m *vxlanManager) addrsChanged(msg *ifaceAddrs) {
	did := m.carries(msg.Name)
	m.links.set(msg)
	m.resync = m.resync || !did && m.carries(msg.Name)
}

// carries reports whether a link has the underlay address of the own VTEP. The links of containers come and go, and do not matter.
func (m *vxlanManager) carries(link string) bool {
	own := m.vteps[m.hostname]
	return slices.ContainsFunc([]string{own.GetParentDeviceIp(), own.GetParentDeviceIpv6()}, func(text string) bool {
		parent, err := netip.ParseAddr(text)
		return err == nil && slices.Contains(m.links.addrs[link], parent)
	})
}

// nodeVTEPs holds the VTEPs of all nodes, by node.
type nodeVTEPs struct {
	vteps map[string]*proto.VXLANTunnelEndpointUpdate
	bad   map[string]error // why a node is not connected
}

// broken returns the nodes that are not connected, each with its reason.
func (n nodeVTEPs) broken() map[string]error {
	out := make(map[string]error, len(n.bad))
	for node, err := range n.bad {
		out["VTEP of node "+node] = err
	}
	return out
}

// hostLinks holds the addresses of links that do not lead to workloads.
type hostLinks struct {
	prefixes []string // of the names of workloads' links
	addrs    map[string][]netip.Addr
}

func (l *hostLinks) set(msg *ifaceAddrs) {
	workload := slices.ContainsFunc(l.prefixes, func(prefix string) bool { return strings.HasPrefix(msg.Name, prefix) })
	if len(msg.Addrs) == 0 || workload {
		delete(l.addrs, msg.Name)
		return
	}
	l.addrs[msg.Name] = msg.Addrs
}

// note records that a node's VTEP has changed; a change of this node's VTEP affects all.
func (m *vxlanManager) note(node string) {
	m.changed[node] = true
	m.dirty = m.dirty || node == m.hostname
}

// CompleteDeferredWork sets the desired state of the device. An invalid VTEP is ignored; the others work.
func (m *vxlanManager) CompleteDeferredWork() error {
	defer clear(m.changed)
	if m.dirty {
		return m.completeAll()
	}
	if !m.active {
		return nil
	}
	for node := range m.changed {
		m.device.SetNode(node, m.ends(node)...)
	}
	return nil
}

// ends returns the VTEPs of a node, or none if the node is unknown or its VTEP is invalid.
func (m *vxlanManager) ends(node string) []tunnel.VTEP {
	msg := m.vteps[node]
	if msg == nil {
		return nil
	}
	if node == m.hostname && m.address.IsValid() && msg.GetIpv4Addr() == "" && msg.GetIpv6Addr() == "" {
		msg = pb.CloneOf(msg)
		if m.address.Is4() {
			msg.Ipv4Addr = m.address.String()
		} else {
			msg.Ipv6Addr = m.address.String()
		}
	}
	list, err := vtepsOf(msg, m.underlay)
	if before := m.bad[node]; err != nil && (before == nil || before.Error() != err.Error()) {
		m.log.Error("a node is not connected to this one: its VTEP cannot be used", "node", node, "error", err)
	}
	if m.bad[node] = err; err == nil {
		delete(m.bad, node)
	}
	return list
}

func (m *vxlanManager) completeAll() error {
	underlay := table.IPv4
	own := m.vteps[m.hostname]
	if own != nil && own.GetParentDeviceIp() == "" && own.GetParentDeviceIpv6() != "" {
		underlay = table.IPv6
	}
	if m.device == nil || underlay != m.underlay {
		if m.device != nil {
			if err := m.device.Close(); err != nil {
				return fmt.Errorf("VXLAN device: %w", err)
			}
		}
		m.device, m.underlay = m.make(underlay), underlay
	}
	m.dirty = false
	var local, others []tunnel.VTEP
	nodes := slices.Sorted(maps.Keys(m.vteps))
	if own == nil {
		nodes = nil // there will be no device, and which family it uses is not known yet
		clear(m.bad)
	}
	for _, node := range nodes {
		if list := m.ends(node); node == m.hostname {
			local = list
		} else {
			others = append(others, list...)
		}
	}
	m.active = m.enabled && len(local) > 0
	if !m.active {
		local, others = nil, nil
	}
	m.resync = m.resync || m.active // the device may be created
	m.device.SetLocal(local...)
	m.device.SetVTEPs(others)
	return nil
}

// apply writes the device and its entries.
func (m *vxlanManager) apply(ctx context.Context) error {
	if m.device == nil || m.gone {
		return nil
	}
	if m.resync {
		m.resync = false
		m.device.Resync()
	}
	if err := m.device.Apply(ctx); err != nil {
		return fmt.Errorf("VXLAN device: %w", err)
	}
	m.gone = !m.enabled
	return nil
}

func (m *vxlanManager) close() error {
	if m.device == nil {
		return nil
	}
	return m.device.Close()
}

// vtepsOf returns the VTEPs of a node, one for each family in which it has a tunnel address.
func vtepsOf(msg *proto.VXLANTunnelEndpointUpdate, underlay table.Family) ([]tunnel.VTEP, error) {
	parentText, macText := msg.GetParentDeviceIp(), msg.GetMac()
	if underlay == table.IPv6 {
		parentText = msg.GetParentDeviceIpv6()
		if msg.GetMacV6() != "" {
			macText = msg.GetMacV6()
		}
	}
	if parentText == "" {
		return nil, fmt.Errorf("it has no IPv%[1]d address, and the VXLAN device of this node uses IPv%[1]d; give the node an IPv%[1]d address", underlay)
	}
	parent, err := parseAddr(parentText, underlay)
	if err != nil {
		return nil, fmt.Errorf("parent device: %w", err)
	}
	mac, err := net.ParseMAC(macText)
	if err != nil {
		return nil, fmt.Errorf("MAC %q: %w", macText, err)
	}
	var list []tunnel.VTEP
	for f, text := range map[table.Family]string{table.IPv4: msg.GetIpv4Addr(), table.IPv6: msg.GetIpv6Addr()} {
		if text == "" {
			continue
		}
		a, err := parseAddr(text, f)
		if err != nil {
			return nil, err
		}
		list = append(list, tunnel.VTEP{Node: msg.GetNode(), MAC: mac, TunnelAddr: a, ParentAddr: parent})
	}
	if len(list) == 0 {
		return nil, errors.New("has no tunnel address")
	}
	slices.SortFunc(list, func(a, b tunnel.VTEP) int { return a.TunnelAddr.Compare(b.TunnelAddr) })
	return list, nil
}
