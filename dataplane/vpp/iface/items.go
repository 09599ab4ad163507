package iface

import (
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// The items of an interface. VPP deletes all of them with the interface, except the link.
type (
	// ifTable: the interface is in a table other than 0, for one address family.
	ifTable struct {
		If  string
		VRF uint32
		V6  bool
	}
	// ifAddress is one address. VPP rejects a change of the table of an interface with addresses, so the table is part of
	// the item.
	ifAddress struct {
		If     string
		Prefix netip.Prefix
		VRF    uint32
	}
	// ifHasIP stands for all addresses together. An unnumbered interface keeps the first address that the lender had when
	// they were tied, so it has to be tied again when that list changes.
	ifHasIP struct {
		If        string
		Addresses string // all, sorted
	}
	ifUnnumbered struct {
		If, From string
		VRF      uint32
	}
	// ifUp waits for the items that determine where the interface's packets go.
	ifUp struct {
		If         string
		VRF        uint32
		V4, V6     bool // it has addresses of the family
		Unnumbered bool
		Parent     string // of a sub-interface; VPP does not bring the sub-interface up before its parent
		After      string // keys of other values that must exist before, one per line
	}
)

const (
	kindIfTable      = "vpp-interface-table"
	kindIfAddress    = "vpp-interface-address"
	kindIfHasIP      = "vpp-interface-has-address"
	kindIfUnnumbered = "vpp-interface-unnumbered"
	kindIfUp         = "vpp-interface-up"
)

// deriveInterface emits the items of an interface. In a table other than 0 an interface is always bound for both address
// families: VPP ties an unnumbered interface only to one that is in the same tables in both families.
func (k *Descriptors) deriveInterface(v *vpp_interfaces.Interface, put func(kind, key string, item any)) {
	vrf := v.Vrf
	if v.Type == vpp_interfaces.Interface_VXLAN_TUNNEL {
		vrf = 0 // the value's vrf is the table of the outer packets
	}
	if vrf != 0 {
		put(kindIfTable, nb.InterfaceVrfKey(v.Name, vrf, nb.IPv4), ifTable{If: v.Name, VRF: vrf})
		put(kindIfTable, nb.InterfaceVrfKey(v.Name, vrf, nb.IPv6), ifTable{If: v.Name, VRF: vrf, V6: true})
	}
	put(kindIfPlace, PlaceKey(v.Name), ifPlace{If: v.Name, VRF: vrf})
	prefixes := make([]netip.Prefix, 0, len(v.IpAddresses))
	for _, a := range v.IpAddresses {
		if p, err := netip.ParsePrefix(a); err == nil {
			prefixes = append(prefixes, p)
			put(kindIfAddress, addressKey(v.Name, p), ifAddress{If: v.Name, Prefix: p, VRF: vrf})
		}
	}
	if len(prefixes) > 0 {
		put(kindIfHasIP, nb.HasIPAddressKey(v.Name), ifHasIP{If: v.Name, Addresses: addressList(prefixes)})
	}
	if v.SetDhcpClient {
		put(kindIfDHCP, dhcpKey(v.Name), ifDHCP{If: v.Name, VRF: vrf})
	}
	if from := v.GetUnnumbered().GetInterfaceWithIp(); from != "" {
		put(kindIfUnnumbered, nb.UnnumberedKey(v.Name), ifUnnumbered{If: v.Name, From: from, VRF: vrf})
	}
	if v.Mtu != 0 {
		put(kindIfMTU, mtuKey(v.Name), ifMTU{If: v.Name, MTU: v.Mtu})
	} else if v.Type == vpp_interfaces.Interface_AF_PACKET {
		put(kindIfMTU, mtuKey(v.Name), ifMTU{If: v.Name, MTU: afPacketMTU})
	}
	k.deriveQueues(v, put)
	if v.Enabled {
		up := ifUp{If: v.Name, VRF: vrf, Unnumbered: v.Unnumbered != nil, Parent: v.GetSub().GetParentName(),
			After: strings.Join(v.UpAfter, "\n")}
		for _, p := range prefixes {
			up.V4, up.V6 = up.V4 || p.Addr().Is4(), up.V6 || !p.Addr().Is4()
		}
		put(kindIfUp, nb.LinkStateKey(v.Name, true), up)
	}
}

func addressKey(ifName string, p netip.Prefix) string {
	return nb.InterfaceAddressKey(ifName, nb.AddressStatic, p.String())
}

func addressList(prefixes []netip.Prefix) string {
	texts := make([]string, len(prefixes))
	for i, p := range prefixes {
		texts[i] = p.String()
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

// dumpItems calls each for every interface of ours; each emits the items that it finds.
func dumpItems[V any](k *Descriptors, each func(s *ifState, emit func(string, V))) func(*scheduler.DumpOp, func(string, V)) {
	return func(op *scheduler.DumpOp, emit func(string, V)) {
		k.Snapshot(op, func(s *Snapshot, err error) {
			if err == nil {
				for _, st := range s.Ours {
					each(st, emit)
				}
			}
			op.Done(err)
		})
	}
}

func (k *Descriptors) ifTableDescriptor() scheduler.Descriptor[ifTable] {
	desc := kit.Item[ifTable](kindIfTable, scheduler.RankIfVRF)
	desc.Parent = func(_ string, v ifTable) string { return nb.VppInterfaceKey(v.If) }
	desc.Deps = func(_ string, v ifTable, add func(string)) {
		if v.V6 {
			add(nb.VrfTableKey(v.VRF, vpp_l3.VrfTable_IPV6))
		} else {
			add(nb.VrfTableKey(v.VRF, vpp_l3.VrfTable_IPV4))
		}
	}
	set := func(op *scheduler.Op, what string, v ifTable, vrf uint32) {
		index, ok := k.idx.IfIndex(v.If)
		if !ok {
			k.Missing(op, Named(what, v.If), v.If)
			return
		}
		k.Do(op, Named(what, v.If), &interfaces.SwInterfaceSetTable{
			SwIfIndex: interface_types.InterfaceIndex(index), IsIPv6: v.V6, VrfID: vrf,
		})
	}
	desc.Create = func(op *scheduler.Op, _ string, v ifTable) { set(op, "set the table of", v, v.VRF) }
	desc.Delete = func(op *scheduler.Op, _ string, v ifTable) {
		if k.idx.Entry(v.If) == nil {
			kit.Gone(op)
			return
		}
		set(op, "take out of its table", v, 0)
	}
	desc.Dump = dumpItems(k, func(s *ifState, emit func(string, ifTable)) {
		if s.vrf4 != 0 {
			emit(nb.InterfaceVrfKey(s.Name, s.vrf4, nb.IPv4), ifTable{If: s.Name, VRF: s.vrf4})
		}
		if s.vrf6 != 0 {
			emit(nb.InterfaceVrfKey(s.Name, s.vrf6, nb.IPv6), ifTable{If: s.Name, VRF: s.vrf6, V6: true})
		}
	})
	return desc
}

func (k *Descriptors) ifAddressDescriptor() scheduler.Descriptor[ifAddress] {
	desc := kit.Item[ifAddress](kindIfAddress, scheduler.RankIfAddr)
	desc.Parent = func(_ string, v ifAddress) string { return nb.VppInterfaceKey(v.If) }
	desc.Deps = func(_ string, v ifAddress, add func(string)) {
		if v.VRF != 0 {
			add(nb.InterfaceVrfKey(v.If, v.VRF, ipVersion(v.Prefix.Addr())))
		}
	}
	desc.Create = func(op *scheduler.Op, _ string, v ifAddress) { k.addAddress(op, v) }
	desc.Delete = func(op *scheduler.Op, _ string, v ifAddress) {
		index, ok := k.idx.IfIndex(v.If)
		if !ok {
			kit.Gone(op)
			return
		}
		k.Do(op, addressObject("remove", v), addressRequest(index, v.Prefix, false),
			api.ADDRESS_NOT_FOUND_FOR_INTERFACE, api.INVALID_SW_IF_INDEX)
	}
	desc.Dump = dumpItems(k, func(s *ifState, emit func(string, ifAddress)) {
		for _, p := range s.Addresses {
			emit(addressKey(s.Name, p), ifAddress{If: s.Name, Prefix: p, VRF: s.vrfOf(p.Addr())})
		}
	})
	return desc
}

func (s *ifState) vrfOf(a netip.Addr) uint32 {
	if a.Is4() {
		return s.vrf4
	}
	return s.vrf6
}

func ipVersion(a netip.Addr) string {
	if a.Is4() {
		return nb.IPv4
	}
	return nb.IPv6
}

func addressObject(what string, v ifAddress) kit.Object {
	return kit.Named(what+" address "+v.Prefix.String()+" of", "interface "+v.If)
}

func addressRequest(index uint32, p netip.Prefix, add bool) *interfaces.SwInterfaceAddDelAddress {
	return &interfaces.SwInterfaceAddDelAddress{
		SwIfIndex: interface_types.InterfaceIndex(index), IsAdd: add, Prefix: ip_types.AddressWithPrefix(kit.ToPrefix(p)),
	}
}

// addAddress adds an address. VPP answers ADDRESS_IN_USE both if the interface has the address and if it overlaps with
// another one; only the first case is a success.
func (k *Descriptors) addAddress(op *scheduler.Op, v ifAddress) {
	o := addressObject("add", v)
	index, ok := k.idx.IfIndex(v.If)
	if !ok {
		k.Missing(op, o, v.If)
		return
	}
	k.Invalidate()
	k.Lane.Request(addressRequest(index, v.Prefix, true), func(_ api.Message, err error) {
		if !conn.IsRetval(err, api.ADDRESS_IN_USE, api.DUPLICATE_IF_ADDRESS) {
			op.Done(o.Wrap(err))
			return
		}
		here := false
		dump := &ip.IPAddressDump{SwIfIndex: interface_types.InterfaceIndex(index), IsIPv6: v.Prefix.Addr().Is6()}
		conn.Dump(k.Lane, dump, func(d *ip.IPAddressDetails) {
			here = here || kit.FromPrefix(ip_types.Prefix(d.Prefix)) == v.Prefix
		}, func(dumpErr error) {
			if here && dumpErr == nil {
				err = nil
			}
			op.Done(o.Wrap(err))
		})
	})
}

// ifHasIPDescriptor returns a descriptor without requests: it ties unnumbered interfaces to the addresses of the lender.
func (k *Descriptors) ifHasIPDescriptor() scheduler.Descriptor[ifHasIP] {
	desc := kit.Item[ifHasIP](kindIfHasIP, scheduler.RankIfAddr)
	desc.Parent = func(_ string, v ifHasIP) string { return nb.VppInterfaceKey(v.If) }
	desc.Deps = func(_ string, v ifHasIP, add func(string)) {
		for a := range strings.SplitSeq(v.Addresses, " ") {
			add(nb.InterfaceAddressKey(v.If, nb.AddressStatic, a))
		}
	}
	desc.Create = func(op *scheduler.Op, _ string, _ ifHasIP) { op.Done(nil) }
	desc.Delete = desc.Create
	desc.Dump = dumpItems(k, func(s *ifState, emit func(string, ifHasIP)) {
		if len(s.Addresses) > 0 {
			emit(nb.HasIPAddressKey(s.Name), ifHasIP{If: s.Name, Addresses: addressList(s.Addresses)})
		}
	})
	return desc
}

func (k *Descriptors) ifUnnumberedDescriptor() scheduler.Descriptor[ifUnnumbered] {
	desc := kit.Item[ifUnnumbered](kindIfUnnumbered, scheduler.RankIfAddr)
	desc.Parent = func(_ string, v ifUnnumbered) string { return nb.VppInterfaceKey(v.If) }
	desc.Deps = func(_ string, v ifUnnumbered, add func(string)) {
		add(nb.VppInterfaceKey(v.From))
		add(nb.HasIPAddressKey(v.From))
		if v.VRF != 0 {
			add(nb.InterfaceVrfKey(v.If, v.VRF, nb.IPv4))
			add(nb.InterfaceVrfKey(v.If, v.VRF, nb.IPv6))
			add(nb.InterfaceVrfKey(v.From, v.VRF, nb.IPv4))
			add(nb.InterfaceVrfKey(v.From, v.VRF, nb.IPv6))
		}
	}
	desc.Create = func(op *scheduler.Op, _ string, v ifUnnumbered) {
		o := kit.Named("lend addresses of "+v.From+" to", "interface "+v.If)
		index, ok := k.idx.IfIndex(v.If)
		if !ok {
			k.Missing(op, o, v.If)
			return
		}
		from, ok := k.idx.IfIndex(v.From)
		if !ok {
			k.Missing(op, o, v.From)
			return
		}
		k.Do(op, o, unnumberedRequest(index, from, true))
	}
	desc.Delete = func(op *scheduler.Op, _ string, v ifUnnumbered) {
		index, ok := k.idx.IfIndex(v.If)
		if !ok {
			kit.Gone(op)
			return
		}
		k.Do(op, kit.Named("take back addresses of "+v.From+" from", "interface "+v.If),
			unnumberedRequest(index, kit.None, false), kit.IfGone...)
	}
	desc.Dump = dumpItems(k, func(s *ifState, emit func(string, ifUnnumbered)) {
		if s.unnumbered != "" {
			emit(nb.UnnumberedKey(s.Name), ifUnnumbered{If: s.Name, From: s.unnumbered, VRF: s.vrf4})
		}
	})
	return desc
}

// unnumberedRequest returns the request to lend addresses: in this message sw_if_index is the lender.
func unnumberedRequest(index, from uint32, add bool) *interfaces.SwInterfaceSetUnnumbered {
	return &interfaces.SwInterfaceSetUnnumbered{
		SwIfIndex: interface_types.InterfaceIndex(from), UnnumberedSwIfIndex: interface_types.InterfaceIndex(index), IsAdd: add,
	}
}

// ifUpDescriptor brings the link up after all other items, and takes it down before all others.
func (k *Descriptors) ifUpDescriptor() scheduler.Descriptor[ifUp] {
	desc := kit.Item[ifUp](kindIfUp, scheduler.RankLinkUp)
	desc.ImpliedByParent = false
	desc.Equal = func(_ string, desired, applied ifUp) bool { return desired.If == applied.If }
	desc.Deps = func(_ string, v ifUp, add func(string)) {
		if v.V4 && v.VRF != 0 {
			add(nb.InterfaceVrfKey(v.If, v.VRF, nb.IPv4))
		}
		if v.V6 && v.VRF != 0 {
			add(nb.InterfaceVrfKey(v.If, v.VRF, nb.IPv6))
		}
		if v.Unnumbered {
			add(nb.UnnumberedKey(v.If))
		}
		if v.Parent != "" {
			add(nb.LinkStateKey(v.Parent, true))
		}
		for key := range strings.SplitSeq(v.After, "\n") {
			if key != "" {
				add(key)
			}
		}
	}
	desc.Parent = func(_ string, v ifUp) string { return nb.VppInterfaceKey(v.If) }
	desc.Create = func(op *scheduler.Op, _ string, v ifUp) {
		index, ok := k.idx.IfIndex(v.If)
		if !ok {
			k.Missing(op, Named("bring up", v.If), v.If)
			return
		}
		k.Do(op, Named("bring up", v.If), flagsRequest(index, true))
	}
	desc.Delete = func(op *scheduler.Op, _ string, v ifUp) {
		index, ok := k.idx.IfIndex(v.If)
		if !ok {
			kit.Gone(op)
			return
		}
		k.Do(op, Named("take down", v.If), flagsRequest(index, false), kit.IfGone...)
	}
	desc.Dump = dumpItems(k, func(s *ifState, emit func(string, ifUp)) {
		if s.Up() {
			emit(nb.LinkStateKey(s.Name, true), ifUp{If: s.Name})
		}
	})
	return desc
}

func flagsRequest(index uint32, up bool) *interfaces.SwInterfaceSetFlags {
	req := &interfaces.SwInterfaceSetFlags{SwIfIndex: interface_types.InterfaceIndex(index)}
	if up {
		req.Flags = interface_types.IF_STATUS_API_FLAG_ADMIN_UP
	}
	return req
}
