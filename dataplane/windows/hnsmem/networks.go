package hnsmem

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/windows/hcn"
)

// V2 returns version 2 of the machine's HNS.
func (h *Host) V2() V2 { return V2{h, nil} }

// V2 is version 2 of a machine's HNS: it has the methods of hcn.Service.
type V2 struct {
	*Host
	client *Client
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), hcn.ErrInvalid)
}

func (h V2) Features() (hcn.Features, error) {
	unlock, err := h.begin("Features", "")
	if err != nil {
		return hcn.Features{}, err
	}
	defer unlock()
	return h.features, nil
}

func (h V2) ListNetworks() ([]hcn.Network, error) {
	unlock, err := h.begin("ListNetworks", "")
	if err != nil {
		return nil, err
	}
	defer unlock()
	list := []hcn.Network{}
	for _, id := range sortedKeys(h.networks) {
		n := clone(*h.networks[id])
		h.disorderNetwork(&n)
		list = append(list, n)
	}
	return shuffled(h.Host, list), nil
}

func (h V2) CreateNetwork(n hcn.Network) (hcn.Network, error) {
	unlock, err := h.begin("CreateNetwork", n.Name)
	if err != nil {
		return hcn.Network{}, err
	}
	defer unlock()
	for _, other := range h.networks {
		if other.Name == n.Name {
			return hcn.Network{}, fmt.Errorf("network %q: %w", n.Name, hcn.ErrExists)
		}
	}
	if err := h.checkNetwork(n); err != nil {
		return hcn.Network{}, fmt.Errorf("network %q: %w", n.Name, err)
	}
	n = clone(n)
	n.ID = h.newID()
	h.networks[n.ID] = &n
	return clone(n), nil
}

func (h *Host) checkNetwork(n hcn.Network) error {
	switch n.Type {
	case hcn.L2Bridge, hcn.Overlay, hcn.NAT:
	default:
		return invalid("type %q", n.Type)
	}
	four, six := 0, 0
	for _, pool := range n.IPAMs {
		for _, s := range pool.Subnets {
			if err := checkSubnet(n.Type, s); err != nil {
				return err
			}
			if strings.Contains(s.IPAddressPrefix, ":") {
				six++
			} else {
				four++
			}
		}
	}
	if six > 0 && (four == 0 || n.Type != hcn.L2Bridge || !h.features.IPv6DualStack) {
		return fmt.Errorf("IPv6 with %d IPv4 subnets in a network of type %s: %w", four, n.Type, hcn.ErrUnsupported)
	}
	return h.checkNetworkPolicies(n.Type, n.Policies)
}

func checkSubnet(kind hcn.NetworkType, s hcn.Subnet) error {
	net, err := netip.ParsePrefix(s.IPAddressPrefix)
	if err != nil {
		return invalid("subnet %q", s.IPAddressPrefix)
	}
	isDefault := func(r hcn.Route) bool {
		gateway, err := netip.ParseAddr(r.NextHop)
		return err == nil && net.Contains(gateway) && (r.DestinationPrefix == "0.0.0.0/0" || r.DestinationPrefix == "::/0")
	}
	if !slices.ContainsFunc(s.Routes, isDefault) {
		return invalid("subnet %s has no default route through a gateway of its own", net)
	}
	vsids, err := hcn.SettingsOf[hcn.VSIDSettings](s.Policies, hcn.TypeVSID)
	if err != nil {
		return invalid("subnet %s: %v", net, err)
	}
	if kind != hcn.Overlay {
		if len(vsids) > 0 {
			return invalid("subnet %s: a VNI on a network that is no overlay", net)
		}
		return nil
	}
	if len(vsids) != 1 || vsids[0].IsolationID < minVNI || vsids[0].IsolationID > maxVNI {
		return invalid("subnet %s: an overlay needs one VNI in %d..%d", net, minVNI, maxVNI)
	}
	return nil
}

// The range of VNIs of an overlay in Windows. The upper limit is that of the field in the RemoteSubnetRoute policy, which has 16 bits.
const (
	minVNI = 4096
	maxVNI = 65535
)

func (h *Host) checkNetworkPolicies(kind hcn.NetworkType, policies []hcn.Policy) error {
	for _, p := range policies {
		switch p.Type {
		case hcn.TypeRemoteSubnet:
			if kind != hcn.Overlay || !h.features.RemoteSubnet {
				return fmt.Errorf("remote subnets on a network of type %s: %w", kind, hcn.ErrUnsupported)
			}
			if err := checkRemoteSubnet(p); err != nil {
				return err
			}
		case hcn.TypeVxlanPort:
			if kind != hcn.Overlay || !h.features.VxlanPort {
				return fmt.Errorf("a VXLAN port on a network of type %s: %w", kind, hcn.ErrUnsupported)
			}
		case hcn.TypeHostRoute:
			if !h.features.HostRoute {
				return fmt.Errorf("host routes: %w", hcn.ErrUnsupported)
			}
		case hcn.TypeNetAdapterName, hcn.TypeProviderAddr, hcn.TypeDrMacAddress:
		default:
			return invalid("policy %s of a network", p.Type)
		}
	}
	return nil
}

func checkRemoteSubnet(p hcn.Policy) error {
	list, err := hcn.SettingsOf[hcn.RemoteSubnetSettings]([]hcn.Policy{p}, p.Type)
	if err != nil {
		return invalid("%v", err)
	}
	s := list[0]
	dst, err := netip.ParsePrefix(s.DestinationPrefix)
	if err != nil || dst != dst.Masked() {
		return invalid("remote subnet %q", s.DestinationPrefix)
	}
	if _, err := netip.ParseAddr(s.ProviderAddress); err != nil {
		return invalid("remote subnet %s: provider address %q", dst, s.ProviderAddress)
	}
	if s.IsolationID < minVNI {
		return invalid("remote subnet %s: VNI %d is below %d", dst, s.IsolationID, minVNI)
	}
	if !isMAC(s.DistributedRouterMacAddress) {
		return invalid("remote subnet %s: MAC address %q is not of the form 0A-00-00-00-00-01", dst, s.DistributedRouterMacAddress)
	}
	return nil
}

func isMAC(s string) bool {
	if len(s) != 17 {
		return false
	}
	for i, c := range s {
		hex := c >= '0' && c <= '9' || c >= 'A' && c <= 'F' || c >= 'a' && c <= 'f'
		if i%3 == 2 && c != '-' || i%3 != 2 && !hex {
			return false
		}
	}
	return true
}

func (h V2) DeleteNetwork(id string) error {
	unlock, err := h.begin("DeleteNetwork", id)
	if err != nil {
		return err
	}
	defer unlock()
	if err := checkIDs(id); err != nil {
		return err
	}
	if h.networks[id] == nil {
		return fmt.Errorf("network %s: %w", id, hcn.ErrNotFound)
	}
	delete(h.networks, id)
	for _, ep := range sortedKeys(h.endpoints) {
		if h.endpoints[ep].HostComputeNetwork == id {
			h.removeEndpoint(ep)
		}
	}
	return nil
}

func (h V2) AddNetworkPolicies(id string, policies ...hcn.Policy) error {
	unlock, err := h.begin("AddNetworkPolicies", id)
	if err != nil {
		return err
	}
	defer unlock()
	n := h.networks[id]
	if n == nil {
		return fmt.Errorf("network %s: %w", id, hcn.ErrNotFound)
	}
	if err := h.checkNetworkPolicies(n.Type, policies); err != nil {
		return err
	}
	for _, p := range policies {
		for _, there := range n.Policies {
			if samePolicy(p, there) || sameSubnet(p, there) {
				return fmt.Errorf("policy %s %s: %w", p.Type, p.Settings, hcn.ErrExists)
			}
		}
	}
	n.Policies = append(n.Policies, clone(policies)...)
	return nil
}

// sameSubnet reports whether two policies have the same remote subnet.
func sameSubnet(a, b hcn.Policy) bool {
	list, err := hcn.SettingsOf[hcn.RemoteSubnetSettings]([]hcn.Policy{a, b}, hcn.TypeRemoteSubnet)
	return err == nil && len(list) == 2 && list[0].DestinationPrefix == list[1].DestinationPrefix
}

func samePolicy(a, b hcn.Policy) bool { return a.Type == b.Type && bytes.Equal(a.Settings, b.Settings) }

func (h V2) RemoveNetworkPolicies(id string, policies ...hcn.Policy) error {
	unlock, err := h.begin("RemoveNetworkPolicies", id)
	if err != nil {
		return err
	}
	defer unlock()
	n := h.networks[id]
	if n == nil {
		return fmt.Errorf("network %s: %w", id, hcn.ErrNotFound)
	}
	left, err := without(n.Policies, policies)
	if err != nil {
		return err
	}
	n.Policies = left
	return nil
}

func without(have, gone []hcn.Policy) ([]hcn.Policy, error) {
	left := slices.Clone(have)
	for _, p := range gone {
		i := slices.IndexFunc(left, func(q hcn.Policy) bool { return samePolicy(p, q) })
		if i < 0 {
			return nil, fmt.Errorf("policy %s %s: %w", p.Type, p.Settings, hcn.ErrNotFound)
		}
		left = slices.Delete(left, i, i+1)
	}
	return left, nil
}
