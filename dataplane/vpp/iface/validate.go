package iface

import (
	"net/netip"
	"strconv"
	"strings"

	"go.fd.io/govpp/binapi/interface_types"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

const (
	minMTU = 68
	maxMTU = 65535
)

func (k *Descriptors) validateInterface(v *vpp_interfaces.Interface) error {
	var f kit.Faults
	f.Name("name", v.Name)
	k.Names.Add(v.Name)
	t := k.types[v.Type]
	if t == nil {
		f.Add("type", "%s is not supported", v.Type)
		return f.Err()
	}
	if v.PhysAddress != "" {
		if _, err := kit.ParseMAC(v.PhysAddress); err != nil {
			f.Add("phys_address", "%v", err)
		}
	}
	if v.Mtu != 0 && (v.Mtu < minMTU || v.Mtu > maxMTU) {
		f.Add("mtu", "%d is not between %d and %d", v.Mtu, minMTU, maxMTU)
	}
	if v.GetIp6Nd().GetAddressAutoconfig() || v.GetIp6Nd().GetInstallDefaultRoutes() {
		f.Add("ip6_nd", "is not supported; configure the address and the route")
	}
	validateAddresses(v, &f)
	validateDHCP(v, &f)
	validateQueues(v, &f)
	if t.validate != nil {
		t.validate(v, &f)
	}
	return f.Err()
}

// validateDHCP checks the DHCP client of an interface: all IPv4 addresses of
// the interface belong to the client.
func validateDHCP(v *vpp_interfaces.Interface, f *kit.Faults) {
	if !v.SetDhcpClient {
		return
	}
	if v.Unnumbered != nil {
		f.Add("set_dhcp_client", "an unnumbered interface has no addresses of its own")
	}
	if v.Type == vpp_interfaces.Interface_VXLAN_TUNNEL {
		f.Add("set_dhcp_client", "a tunnel has no DHCP server behind it")
	}
	for _, a := range v.IpAddresses {
		if p, err := netip.ParsePrefix(a); err == nil && p.Addr().Is4() {
			f.Add("set_dhcp_client", "is set, and so is the address %s", a)
		}
	}
}

func validateAddresses(v *vpp_interfaces.Interface, f *kit.Faults) {
	from := v.GetUnnumbered().GetInterfaceWithIp()
	switch {
	case v.Unnumbered == nil:
	case from == "":
		f.Add("unnumbered.interface_with_ip", "is empty")
	case from == v.Name:
		f.Add("unnumbered.interface_with_ip", "is the interface itself")
	case len(v.IpAddresses) > 0:
		f.Add("ip_addresses", "an unnumbered interface has no addresses of its own")
	}
	seen := make(map[netip.Prefix]bool, len(v.IpAddresses))
	for i, a := range v.IpAddresses {
		field := "ip_addresses[" + strconv.Itoa(i) + "]"
		p, err := netip.ParsePrefix(a)
		switch {
		case strings.HasPrefix(a, nb.AllocRefPrefix):
			f.Add(field, "references to allocated addresses are not supported")
		case err != nil:
			f.Add(field, "%q is not an address with a mask length", a)
		case p.Addr().Is4In6():
			f.Add(field, "%q is an IPv4 address written as IPv6", a)
		case p.Addr().IsLinkLocalUnicast() && p.Addr().Is6():
			f.Add(field, "%q: VPP assigns link-local addresses itself", a)
		case p.Addr().IsUnspecified() || p.Addr().IsMulticast():
			f.Add(field, "%q is not an address of an interface", a)
		case seen[p]:
			f.Add(field, "%q is there twice", a)
		}
		seen[p] = true
	}
}

func validateQueues(v *vpp_interfaces.Interface, f *kit.Faults) {
	for i, m := range v.RxModes {
		field := "rx_modes[" + strconv.Itoa(i) + "].mode"
		if m.Mode < vpp_interfaces.Interface_RxMode_POLLING || m.Mode > vpp_interfaces.Interface_RxMode_DEFAULT {
			f.Add(field, "%s is not a receive mode", m.Mode)
		}
		if v.Type == vpp_interfaces.Interface_AF_PACKET && m.Mode == vpp_interfaces.Interface_RxMode_ADAPTIVE {
			f.Add(field, "an af_packet interface has no adaptive mode")
		}
	}
	if len(v.RxModes) > 0 && v.Type == vpp_interfaces.Interface_SUB_INTERFACE {
		f.Add("rx_modes", "a sub-interface has no queues; set it on its parent")
	}
	queues := map[uint32]bool{}
	for i, p := range v.RxPlacements {
		if queues[p.Queue] {
			f.Add("rx_placements["+strconv.Itoa(i)+"].queue", "%d is placed twice", p.Queue)
		}
		queues[p.Queue] = true
	}
	if len(v.RxPlacements) > 0 && v.Type == vpp_interfaces.Interface_SUB_INTERFACE {
		f.Add("rx_placements", "a sub-interface has no queues; set it on its parent")
	}
}

// rxModeOf translates a receive mode.
func rxModeOf(m vpp_interfaces.Interface_RxMode_Type) interface_types.RxMode {
	return interface_types.RxMode(m) // the numbers are the same as VPP's
}
