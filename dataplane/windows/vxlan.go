package windataplane

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hnscall"
)

// ErrUpdatesFailed means that some remote subnets of the overlay are not in the desired state.
var ErrUpdatesFailed = errors.New("some VXLAN route updates failed")

// defaultVXLANPort is the default of HNS.
const defaultVXLANPort = 4789

// RemoteSubnets is the part of version 2 of HNS that the driver needs for VXLANEnabled.
type RemoteSubnets interface {
	ListNetworks() ([]hcn.Network, error)
	AddNetworkPolicies(networkID string, policies ...hcn.Policy) error
	RemoveNetworkPolicies(networkID string, policies ...hcn.Policy) error
}

// vxlanManager keeps the remote subnets of the overlay network, which map blocks of addresses to other nodes.
type vxlanManager struct {
	api      RemoteSubnets
	calls    *hnscall.Caller
	hostname string
	vni      uint16
	port     uint16
	networks *regexp.Regexp
	log      *slog.Logger
	progress func()

	routes map[string]*proto.RouteUpdate
	vteps  map[string]*proto.VXLANTunnelEndpointUpdate
	dirty  bool
	writes int
}

// OnUpdate handles *proto.RouteUpdate, *proto.RouteRemove, *proto.VXLANTunnelEndpointUpdate, *proto.VXLANTunnelEndpointRemove.
func (m *vxlanManager) OnUpdate(msg any) {
	switch msg := msg.(type) {
	case *proto.RouteUpdate:
		if msg.Is(proto.RouteUpdate_TYPES_REMOTE_WORKLOAD) && msg.GetIpPoolType() == proto.IPPoolType_VXLAN {
			m.routes[msg.GetDst()] = msg
			m.dirty = true
			return
		}
		m.removeRoute(msg.GetDst())
	case *proto.RouteRemove:
		m.removeRoute(msg.GetDst())
	case *proto.VXLANTunnelEndpointUpdate:
		m.vteps[msg.GetNode()] = msg
		m.dirty = true
	case *proto.VXLANTunnelEndpointRemove:
		delete(m.vteps, msg.GetNode())
		m.dirty = true
	}
}

func (m *vxlanManager) removeRoute(dst string) {
	if m.routes[dst] != nil {
		delete(m.routes, dst)
		m.dirty = true
	}
}

// CompleteDeferredWork writes what has changed. It removes first, because HNS has one entry for a subnet. After ErrUpdatesFailed the next call
// compares everything again.
func (m *vxlanManager) CompleteDeferredWork() error {
	if !m.dirty {
		return nil
	}
	if err := m.sync(); err != nil {
		return fmt.Errorf("%w: %w", ErrUpdatesFailed, err)
	}
	m.dirty = false
	return nil
}

func (m *vxlanManager) sync() error {
	want, errs := m.desired()
	network, err := m.overlay()
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	has, err := hcn.SettingsOf[hcn.RemoteSubnetSettings](network.Policies, hcn.TypeRemoteSubnet)
	if err != nil {
		return err
	}
	for _, s := range has {
		if want[s.DestinationPrefix] == s {
			delete(want, s.DestinationPrefix)
			continue
		}
		if err := m.change("remove", network.ID, s, m.api.RemoveNetworkPolicies); err != nil && !errors.Is(err, hcn.ErrNotFound) {
			errs = append(errs, err)
			delete(want, s.DestinationPrefix) // HNS would have the subnet twice
		}
	}
	for _, dst := range slices.Sorted(maps.Keys(want)) {
		errs = append(errs, m.change("add", network.ID, want[dst], m.api.AddNetworkPolicies))
	}
	return errors.Join(errs...)
}

func (m *vxlanManager) change(what, network string, s hcn.RemoteSubnetSettings, call func(string, ...hcn.Policy) error) error {
	p, err := hcn.NewPolicy(hcn.TypeRemoteSubnet, s)
	if err != nil {
		return err
	}
	m.writes++
	defer m.progress()
	write := func() (none struct{}, err error) { return none, call(network, p) }
	if _, err := hnscall.Do(m.calls, "remote subnet "+s.DestinationPrefix, write); err != nil {
		return fmt.Errorf("%s remote subnet %s at %s: %w", what, s.DestinationPrefix, s.ProviderAddress, err)
	}
	return nil
}

// overlay returns the network that carries the tunnels. Its settings must match the configuration.
func (m *vxlanManager) overlay() (hcn.Network, error) {
	list, err := hnscall.Do(m.calls, "list of networks", m.api.ListNetworks)
	if err != nil {
		return hcn.Network{}, fmt.Errorf("HNS networks: %w", err)
	}
	i := slices.IndexFunc(list, func(n hcn.Network) bool { return n.Type == hcn.Overlay && m.networks.MatchString(n.Name) })
	if i < 0 {
		return hcn.Network{}, fmt.Errorf("there is no network of type %s whose name matches %s: the agent makes one when VXLAN is on",
			hcn.Overlay, m.networks)
	}
	n := list[i]
	ports, err := hcn.SettingsOf[hcn.VxlanPortSettings](n.Policies, hcn.TypeVxlanPort)
	if err != nil {
		return n, err
	}
	port := uint16(defaultVXLANPort)
	if len(ports) > 0 {
		port = ports[0].Port
	}
	if port != m.port {
		return n, fmt.Errorf("network %s has UDP port %d, and VXLANPort is %d: remove the network, so that it is made again", n.Name,
			port, m.port)
	}
	for _, pool := range n.IPAMs {
		for _, s := range pool.Subnets {
			vsids, err := hcn.SettingsOf[hcn.VSIDSettings](s.Policies, hcn.TypeVSID)
			if err != nil || len(vsids) > 0 && vsids[0].IsolationID != uint32(m.vni) {
				return n, fmt.Errorf("network %s has VNI %v, and VXLANID is %d: remove the network, so that it is made again (%v)", n.Name,
					vsids, m.vni, err)
			}
		}
	}
	return n, nil
}

// desired joins routes with the tunnel ends of their nodes. It omits an invalid route; a route whose node has no tunnel end yet waits for it.
func (m *vxlanManager) desired() (map[string]hcn.RemoteSubnetSettings, []error) {
	want := map[string]hcn.RemoteSubnetSettings{}
	var errs []error
	for _, text := range slices.Sorted(maps.Keys(m.routes)) {
		node := m.routes[text].GetDstNodeName()
		vtep := m.vteps[node]
		if node == m.hostname || vtep == nil {
			continue
		}
		s, err := m.subnet(text, vtep)
		if err != nil {
			errs = append(errs, fmt.Errorf("route %s to node %s: %w", text, node, err))
			continue
		}
		want[s.DestinationPrefix] = s
	}
	return want, errs
}

func (m *vxlanManager) subnet(dst string, vtep *proto.VXLANTunnelEndpointUpdate) (hcn.RemoteSubnetSettings, error) {
	p, err := proto.ParseNet(dst)
	if err != nil {
		return hcn.RemoteSubnetSettings{}, err
	}
	parentText, macText := vtep.GetParentDeviceIp(), vtep.GetMac()
	if familyOf(p) == 6 && vtep.GetParentDeviceIpv6() != "" {
		parentText = vtep.GetParentDeviceIpv6()
	}
	if familyOf(p) == 6 && vtep.GetMacV6() != "" {
		macText = vtep.GetMacV6()
	}
	parent, err := netip.ParseAddr(parentText)
	if err != nil {
		return hcn.RemoteSubnetSettings{}, fmt.Errorf("the node's address: %w", err)
	}
	mac, err := net.ParseMAC(macText)
	if err != nil {
		return hcn.RemoteSubnetSettings{}, fmt.Errorf("MAC %q: %w", macText, err)
	}
	return hcn.RemoteSubnetSettings{DestinationPrefix: p.String(), IsolationID: m.vni, ProviderAddress: parent.Unmap().String(),
		DistributedRouterMacAddress: strings.ToUpper(strings.ReplaceAll(mac.String(), ":", "-"))}, nil
}
