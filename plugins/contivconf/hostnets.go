package contivconf

import (
	"net/netip"
	"slices"
)

// HostNetwork is a network to which the node is already connected by an address on one of its interfaces.
type HostNetwork struct {
	Interface string
	Address   netip.Prefix // with the length of the network
	// Dummy means that the interface only holds addresses, such as kube-ipvs0 and nodelocaldns, which hold those of services.
	Dummy bool
}

// ownNetwork is a network of this configuration that its nodes route.
type ownNetwork struct {
	option string
	p      netip.Prefix
}

// CheckHost rejects a configuration with a network that overlaps with a network of the node: the node could no longer reach its neighbours
// there. NodeInterconnectCIDR may overlap: the uplink is in it.
func (c *Config) CheckHost(host []HostNetwork) error {
	var bad faults
	for _, own := range c.ipam.routed(c.routing.NodeToNodeTransport) {
		for _, h := range host {
			if !own.collides(h) {
				continue
			}
			note := ""
			if own.p == own.standard() {
				note = " (its default)"
			}
			bad.add("ipamConfig."+own.option, "%s%s overlaps with %s, the network of this node's interface %s (address %s); "+
				"choose networks that have no address in common, or remove the interface if another network plugin has left it behind",
				own.p, note, h.Address.Masked(), h.Interface, h.Address.Addr())
		}
	}
	return bad.err()
}

// routed returns the networks to which every node has routes that would hide other networks.
func (c IPAMConfig) routed(t Transport) []ownNetwork {
	var out []ownNetwork
	add := func(option string, list []netip.Prefix, split bool) {
		for _, p := range list {
			name := option
			if split && prefixOf(c.ContivCIDR, VersionOf(p.Addr())).IsValid() {
				name = "contivCIDR"
			}
			out = append(out, ownNetwork{name, p})
		}
	}
	add("podSubnetCIDR", c.PodSubnetCIDR, true)
	add("vppHostSubnetCIDR", c.VPPHostSubnetCIDR, true)
	add("serviceCIDR", c.ServiceCIDR, false)
	if t != TransportNoOverlay {
		add("vxlanCIDR", c.VxlanCIDR, true)
	}
	return out
}

// collides reports whether n overlaps with h. kube-proxy and node-local DNS give addresses of services to the node on purpose: these do not
// count.
func (n ownNetwork) collides(h HostNetwork) bool {
	if n.option == "serviceCIDR" && h.Dummy && h.Address.IsSingleIP() {
		return false
	}
	return n.p.Overlaps(h.Address.Masked())
}

// standard returns the default of the option for the family.
func (n ownNetwork) standard() netip.Prefix {
	def := defaultNetworks(VersionOf(n.p.Addr()))
	switch n.option {
	case "podSubnetCIDR":
		return def.PodSubnetCIDR
	case "vppHostSubnetCIDR":
		return def.VPPHostSubnetCIDR
	case "serviceCIDR":
		return def.ServiceCIDR
	case "vxlanCIDR":
		return def.VxlanCIDR
	}
	return netip.Prefix{}
}

// InterconnectOf returns the network of nodeInterconnectCIDR that overlaps with a network of the host on another interface than the uplink:
// this works only if VPP's NIC is in the same network. It returns the network and the host's interface; found is false if there is none. A
// node whose main interface has addresses of its own has none of nodeInterconnectCIDR.
func (c *Config) InterconnectOf(host []HostNetwork, uplink string) (cidr netip.Prefix, other HostNetwork, found bool) {
	if len(c.node.MainVPPInterface.IPs) > 0 || c.node.MainVPPInterface.UseDHCP {
		return netip.Prefix{}, HostNetwork{}, false
	}
	for _, p := range c.ipam.NodeInterconnectCIDR {
		at := slices.IndexFunc(host, func(h HostNetwork) bool { return h.Interface != uplink && p.Overlaps(h.Address.Masked()) })
		if at >= 0 {
			return p, host[at], true
		}
	}
	return netip.Prefix{}, HostNetwork{}, false
}
