package vpp

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
)

// The items of an interface. All but the link go with the interface when VPP deletes it.
type (
	// ifTable: the interface is in a table other than 0, for one address family.
	ifTable struct {
		If  string
		VRF uint32
		V6  bool
	}
	// ifAddress is one address. VPP lets no interface with addresses change its table, so the table is part of it.
	ifAddress struct {
		If     string
		Prefix netip.Prefix
		VRF    uint32
	}
	// ifHasIP stands for the addresses together. An unnumbered interface holds on to the first address that the lender had
	// when they were tied, so it has to be tied again when that list changes.
	ifHasIP struct {
		If        string
		Addresses string // all, sorted
	}
	ifUnnumbered struct {
		If, From string
		VRF      uint32
	}
	// ifUp waits for what decides where the interface's packets go.
	ifUp struct {
		If         string
		VRF        uint32
		V4, V6     bool // it has addresses of the family
		Unnumbered bool
		Parent     string // of a sub-interface; VPP does not bring it up before
		After      string // keys of what else has to be there before, one a line
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
// families: VPP ties an unnumbered interface only to one that is in the same tables in both.
func (k *kinds) deriveInterface(v *vpp_interfaces.Interface, put func(kind, key string, item any)) {
	vrf := v.Vrf
	if v.Type == vpp_interfaces.Interface_VXLAN_TUNNEL {
		vrf = 0 // it is the table of the outer packets
	}
	if vrf != 0 {
		put(kindIfTable, nb.InterfaceVrfKey(v.Name, vrf, nb.IPv4), ifTable{If: v.Name, VRF: vrf})
		put(kindIfTable, nb.InterfaceVrfKey(v.Name, vrf, nb.IPv6), ifTable{If: v.Name, VRF: vrf, V6: true})
	}
	put(kindIfPlace, placeKey(v.Name), ifPlace{If: v.Name, VRF: vrf})
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

// item fills in what the kinds of items have in common.
func item[V comparable](name string, rank int) scheduler.Kind[V] {
	return scheduler.Kind[V]{
		Name: name, Rank: rank,
		Equal:           func(_ string, desired, applied V) bool { return desired == applied },
		ImpliedByParent: true,
	}
}

// dumpItems emits, for each interface of ours, what each finds.
func dumpItems[V any](k *kinds, each func(s *ifState, emit func(string, V))) func(*scheduler.DumpOp, func(string, V)) {
	return func(op *scheduler.DumpOp, emit func(string, V)) {
		k.snapshot(op, func(s *ifSnapshot, err error) {
			if err == nil {
				for _, st := range s.ours {
					each(st, emit)
				}
			}
			op.Done(err)
		})
	}
}

func (k *kinds) ifTableKind() scheduler.Kind[ifTable] {
	kind := item[ifTable](kindIfTable, scheduler.RankIfVRF)
	kind.Parent = func(_ string, v ifTable) string { return nb.VppInterfaceKey(v.If) }
	kind.Deps = func(_ string, v ifTable, add func(string)) {
		if v.V6 {
			add(nb.VrfTableKey(v.VRF, vpp_l3.VrfTable_IPV6))
		} else {
			add(nb.VrfTableKey(v.VRF, vpp_l3.VrfTable_IPV4))
		}
	}
	set := func(op *scheduler.Op, what string, v ifTable, vrf uint32) {
		index, ok := k.idx.IfIndex(v.If)
		if !ok {
			k.missing(op, ifObject(what, v.If), v.If)
			return
		}
		k.do(op, ifObject(what, v.If), &interfaces.SwInterfaceSetTable{
			SwIfIndex: interface_types.InterfaceIndex(index), IsIPv6: v.V6, VrfID: vrf,
		})
	}
	kind.Create = func(op *scheduler.Op, _ string, v ifTable) { set(op, "set the table of", v, v.VRF) }
	kind.Delete = func(op *scheduler.Op, _ string, v ifTable) {
		if k.idx.entry(v.If) == nil {
			gone(op)
			return
		}
		set(op, "take out of its table", v, 0)
	}
	kind.Dump = dumpItems(k, func(s *ifState, emit func(string, ifTable)) {
		if s.vrf4 != 0 {
			emit(nb.InterfaceVrfKey(s.name, s.vrf4, nb.IPv4), ifTable{If: s.name, VRF: s.vrf4})
		}
		if s.vrf6 != 0 {
			emit(nb.InterfaceVrfKey(s.name, s.vrf6, nb.IPv6), ifTable{If: s.name, VRF: s.vrf6, V6: true})
		}
	})
	return kind
}

func (k *kinds) ifAddressKind() scheduler.Kind[ifAddress] {
	kind := item[ifAddress](kindIfAddress, scheduler.RankIfAddr)
	kind.Parent = func(_ string, v ifAddress) string { return nb.VppInterfaceKey(v.If) }
	kind.Deps = func(_ string, v ifAddress, add func(string)) {
		if v.VRF != 0 {
			add(nb.InterfaceVrfKey(v.If, v.VRF, ipVersion(v.Prefix.Addr())))
		}
	}
	kind.Create = func(op *scheduler.Op, _ string, v ifAddress) { k.addAddress(op, v) }
	kind.Delete = func(op *scheduler.Op, _ string, v ifAddress) {
		index, ok := k.idx.IfIndex(v.If)
		if !ok {
			gone(op)
			return
		}
		k.do(op, addressObject("remove", v), addressRequest(index, v.Prefix, false),
			api.ADDRESS_NOT_FOUND_FOR_INTERFACE, api.INVALID_SW_IF_INDEX)
	}
	kind.Dump = dumpItems(k, func(s *ifState, emit func(string, ifAddress)) {
		for _, p := range s.addresses {
			emit(addressKey(s.name, p), ifAddress{If: s.name, Prefix: p, VRF: s.vrfOf(p.Addr())})
		}
	})
	return kind
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

func addressObject(what string, v ifAddress) object {
	return object{what + " address " + v.Prefix.String() + " of", "interface " + v.If}
}

func addressRequest(index uint32, p netip.Prefix, add bool) *interfaces.SwInterfaceAddDelAddress {
	return &interfaces.SwInterfaceAddDelAddress{
		SwIfIndex: interface_types.InterfaceIndex(index), IsAdd: add, Prefix: ip_types.AddressWithPrefix(toPrefix(p)),
	}
}

// addAddress: VPP answers ADDRESS_IN_USE both when the address is there and when it overlaps with another; only the first
// is fine.
func (k *kinds) addAddress(op *scheduler.Op, v ifAddress) {
	o := addressObject("add", v)
	index, ok := k.idx.IfIndex(v.If)
	if !ok {
		k.missing(op, o, v.If)
		return
	}
	k.snap.forget()
	k.lane.Request(addressRequest(index, v.Prefix, true), func(_ api.Message, err error) {
		if !conn.IsRetval(err, api.ADDRESS_IN_USE, api.DUPLICATE_IF_ADDRESS) {
			op.Done(o.wrap(err))
			return
		}
		here := false
		dump := &ip.IPAddressDump{SwIfIndex: interface_types.InterfaceIndex(index), IsIPv6: v.Prefix.Addr().Is6()}
		conn.Dump(k.lane, dump, func(d *ip.IPAddressDetails) {
			here = here || fromPrefix(ip_types.Prefix(d.Prefix)) == v.Prefix
		}, func(dumpErr error) {
			if here && dumpErr == nil {
				err = nil
			}
			op.Done(o.wrap(err))
		})
	})
}

// ifHasIPKind has no request of its own: it ties unnumbered interfaces to the addresses of the lender.
func (k *kinds) ifHasIPKind() scheduler.Kind[ifHasIP] {
	kind := item[ifHasIP](kindIfHasIP, scheduler.RankIfAddr)
	kind.Parent = func(_ string, v ifHasIP) string { return nb.VppInterfaceKey(v.If) }
	kind.Deps = func(_ string, v ifHasIP, add func(string)) {
		for a := range strings.SplitSeq(v.Addresses, " ") {
			add(nb.InterfaceAddressKey(v.If, nb.AddressStatic, a))
		}
	}
	kind.Create = func(op *scheduler.Op, _ string, _ ifHasIP) { op.Done(nil) }
	kind.Delete = kind.Create
	kind.Dump = dumpItems(k, func(s *ifState, emit func(string, ifHasIP)) {
		if len(s.addresses) > 0 {
			emit(nb.HasIPAddressKey(s.name), ifHasIP{If: s.name, Addresses: addressList(s.addresses)})
		}
	})
	return kind
}

func (k *kinds) ifUnnumberedKind() scheduler.Kind[ifUnnumbered] {
	kind := item[ifUnnumbered](kindIfUnnumbered, scheduler.RankIfAddr)
	kind.Parent = func(_ string, v ifUnnumbered) string { return nb.VppInterfaceKey(v.If) }
	kind.Deps = func(_ string, v ifUnnumbered, add func(string)) {
		add(nb.VppInterfaceKey(v.From))
		add(nb.HasIPAddressKey(v.From))
		if v.VRF != 0 {
			add(nb.InterfaceVrfKey(v.If, v.VRF, nb.IPv4))
			add(nb.InterfaceVrfKey(v.If, v.VRF, nb.IPv6))
			add(nb.InterfaceVrfKey(v.From, v.VRF, nb.IPv4))
			add(nb.InterfaceVrfKey(v.From, v.VRF, nb.IPv6))
		}
	}
	kind.Create = func(op *scheduler.Op, _ string, v ifUnnumbered) {
		o := object{"lend addresses of " + v.From + " to", "interface " + v.If}
		index, ok := k.idx.IfIndex(v.If)
		if !ok {
			k.missing(op, o, v.If)
			return
		}
		from, ok := k.idx.IfIndex(v.From)
		if !ok {
			k.missing(op, o, v.From)
			return
		}
		k.do(op, o, unnumberedRequest(index, from, true))
	}
	kind.Delete = func(op *scheduler.Op, _ string, v ifUnnumbered) {
		index, ok := k.idx.IfIndex(v.If)
		if !ok {
			gone(op)
			return
		}
		k.do(op, object{"take back addresses of " + v.From + " from", "interface " + v.If},
			unnumberedRequest(index, none, false), ifGone...)
	}
	kind.Dump = dumpItems(k, func(s *ifState, emit func(string, ifUnnumbered)) {
		if s.unnumbered != "" {
			emit(nb.UnnumberedKey(s.name), ifUnnumbered{If: s.name, From: s.unnumbered, VRF: s.vrf4})
		}
	})
	return kind
}

// unnumberedRequest: in this message sw_if_index is the lender.
func unnumberedRequest(index, from uint32, add bool) *interfaces.SwInterfaceSetUnnumbered {
	return &interfaces.SwInterfaceSetUnnumbered{
		SwIfIndex: interface_types.InterfaceIndex(from), UnnumberedSwIfIndex: interface_types.InterfaceIndex(index), IsAdd: add,
	}
}

// ifUpKind brings the link up, last of all, and takes it down first of all.
func (k *kinds) ifUpKind() scheduler.Kind[ifUp] {
	kind := item[ifUp](kindIfUp, scheduler.RankLinkUp)
	kind.ImpliedByParent = false
	kind.Equal = func(_ string, desired, applied ifUp) bool { return desired.If == applied.If }
	kind.Deps = func(_ string, v ifUp, add func(string)) {
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
	kind.Parent = func(_ string, v ifUp) string { return nb.VppInterfaceKey(v.If) }
	kind.Create = func(op *scheduler.Op, _ string, v ifUp) {
		index, ok := k.idx.IfIndex(v.If)
		if !ok {
			k.missing(op, ifObject("bring up", v.If), v.If)
			return
		}
		k.do(op, ifObject("bring up", v.If), flagsRequest(index, true))
	}
	kind.Delete = func(op *scheduler.Op, _ string, v ifUp) {
		index, ok := k.idx.IfIndex(v.If)
		if !ok {
			gone(op)
			return
		}
		k.do(op, ifObject("take down", v.If), flagsRequest(index, false), ifGone...)
	}
	kind.Dump = dumpItems(k, func(s *ifState, emit func(string, ifUp)) {
		if s.up() {
			emit(nb.LinkStateKey(s.name, true), ifUp{If: s.name})
		}
	})
	return kind
}

func flagsRequest(index uint32, up bool) *interfaces.SwInterfaceSetFlags {
	req := &interfaces.SwInterfaceSetFlags{SwIfIndex: interface_types.InterfaceIndex(index)}
	if up {
		req.Flags = interface_types.IF_STATUS_API_FLAG_ADMIN_UP
	}
	return req
}
