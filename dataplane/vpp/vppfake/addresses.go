package vppfake

import (
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/fib_types"
	interfaces_api "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
)

// ipPort is the state of an interface in one family.
type ipPort struct {
	table    *fib
	addrs    []netip.Prefix       // with host bits, in the order they were added
	prefixes map[netip.Prefix]int // connected prefixes whose routes are in the table, with the number of their addresses
	toggled  bool                 // set by sw_interface_ip4_enable_disable, whose effect walks do not model
}

// ip6Link is the IPv6 link of an interface. It exists while it has at least one user.
type ip6Link struct {
	locks int
	local netip.Addr
}

func registerAddresses(t *table) {
	on(t, writes, addDelAddress)
	dump(t, dumpAddresses)
	on(t, writes, setUnnumbered)
	dump(t, func(c *call, q *ip.IPUnnumberedDump, send func(*ip.IPUnnumberedDetails)) {
		for _, i := range c.live() {
			if i.unnumbered != none && (uint32(q.SwIfIndex) == none || uint32(q.SwIfIndex) == i.index) {
				send(&ip.IPUnnumberedDetails{SwIfIndex: interface_types.InterfaceIndex(i.index), IPSwIfIndex: interface_types.InterfaceIndex(i.unnumbered)})
			}
		}
	})
	on(t, writes, ip6EnableDisable)
	on(t, writes, ip4EnableDisable)
	on(t, reads, getLinkLocal)
	on(t, writes, setLinkLocal)
}

func addDelAddress(c *call, q *interfaces_api.SwInterfaceAddDelAddress) *interfaces_api.SwInterfaceAddDelAddressReply {
	i := c.iface(q.SwIfIndex)
	if i == nil {
		return &interfaces_api.SwInterfaceAddDelAddressReply{Retval: rvInvalidSwIfIndex}
	}
	if q.DelAll {
		c.dropAddresses(i)
		return &interfaces_api.SwInterfaceAddDelAddressReply{}
	}
	addr := netAddr(q.Prefix.Address)
	var rv int32
	switch {
	case i.hw.devType == "local":
		rv = rvUnsupported
	case addr.Is6() && addr.IsLinkLocalUnicast():
		rv = c.linkLocalAddress(i, addr, int(q.Prefix.Len), q.IsAdd)
	case q.IsAdd:
		rv = c.addAddress(i, addr, int(q.Prefix.Len))
	default:
		rv = c.delAddress(i, addr, int(q.Prefix.Len))
	}
	return &interfaces_api.SwInterfaceAddDelAddressReply{Retval: rv}
}

// linkLocalAddress handles an interface address in fe80::/10 as VPP does: it becomes the link's own address.
func (st *state) linkLocalAddress(i *iface, addr netip.Addr, bits int, add bool) int32 {
	switch {
	case bits != 128:
		return rvAddressLength
	case add:
		return st.setLocal(i, addr)
	case i.link6.locks > 0 && i.link6.local == addr:
		return rvAddressUndeletable
	}
	return rvAddressNotFound
}

func (st *state) addAddress(i *iface, addr netip.Addr, bits int) int32 {
	fam := family(addr)
	port := &i.ip[fam]
	conflict := rvAddressInUse
	if fam == ip6 {
		conflict = rvDuplicateAddress
	}
	mine, err := addr.Prefix(bits)
	if err != nil {
		mine = netip.PrefixFrom(addr, addr.BitLen())
	}
	for _, o := range st.live() {
		if o.ip[fam].table != port.table {
			continue
		}
		for _, p := range o.ip[fam].addrs {
			sameSubnet := o == i && p.Bits() == bits && p.Addr() != addr
			if p.Overlaps(mine) && !sameSubnet {
				return conflict
			}
		}
	}
	if bits == 0 || bits > addr.BitLen() {
		return rvAddressLength
	}
	p := netip.PrefixFrom(addr, bits)
	port.addrs = append(port.addrs, p)
	st.natAddressChanged(i, p, true)
	if fam == ip6 {
		st.enable6(i)
	}
	if i.up {
		st.addConnected(i, p)
	}
	return 0
}

// delAddress deletes by address: VPP does not compare the length. With a wrong length the connected prefix is left behind.
func (st *state) delAddress(i *iface, addr netip.Addr, bits int) int32 {
	port := &i.ip[family(addr)]
	n := slices.IndexFunc(port.addrs, func(p netip.Prefix) bool { return p.Addr() == addr })
	if n < 0 {
		return rvAddressNotFound
	}
	gone := port.addrs[n]
	port.addrs = slices.Delete(port.addrs, n, n+1)
	st.natAddressChanged(i, gone, false)
	if i.up && bits <= addr.BitLen() {
		st.delConnected(i, netip.PrefixFrom(addr, bits))
	}
	st.flushCovered(i, netip.PrefixFrom(addr, min(bits, addr.BitLen())))
	if addr.Is6() {
		st.disable6(i)
	}
	return 0
}

func (st *state) dropAddresses(i *iface) {
	for fam := range i.ip {
		for _, p := range slices.Clone(i.ip[fam].addrs) {
			st.delAddress(i, p.Addr(), p.Bits())
		}
	}
}

// addresses returns the addresses of an interface: its own or, if it is unnumbered, its lender's.
func (st *state) addresses(i *iface, fam int) []netip.Prefix {
	if i.unnumbered == none {
		return i.ip[fam].addrs
	}
	if lender := st.iface(interface_types.InterfaceIndex(i.unnumbered)); lender != nil {
		return lender.ip[fam].addrs
	}
	return nil
}

// adminRoutes adds or removes the routes of an interface's addresses when the interface is set up or down.
func (st *state) adminRoutes(i *iface) {
	for fam := range i.ip {
		for _, p := range i.ip[fam].addrs {
			if i.up {
				st.addConnected(i, p)
			} else {
				st.delConnected(i, p)
			}
		}
	}
}

func viaInterface(i *iface, fam int, nh netip.Addr) path {
	return path{proto: fib_types.FibPathNhProto(fam), nh: nh, ifc: i, ifx: i.index, weight: 1}
}

// addConnected adds the routes of one address: the address itself, its prefix, and for IPv4 the first and last address of the prefix.
func (st *state) addConnected(i *iface, p netip.Prefix) {
	fam := family(p.Addr())
	port := &i.ip[fam]
	self := viaInterface(i, fam, p.Addr())
	self.kind = fib_types.FIB_API_PATH_TYPE_LOCAL
	port.table.set(hostPrefix(p.Addr()), srcInterface, connected|local, []path{self})
	if p.IsSingleIP() {
		return
	}
	key := p.Masked()
	if port.prefixes == nil {
		port.prefixes = map[netip.Prefix]int{}
	}
	if port.prefixes[key]++; port.prefixes[key] > 1 {
		return
	}
	shown := p
	if fam == ip6 {
		shown = key
	}
	port.table.set(shown, srcInterface, connected|attached, []path{viaInterface(i, fam, unspecified(fam))})
	if fam == ip6 {
		return
	}
	if p.Bits() == 31 {
		other := otherEnd(p)
		port.table.set(hostPrefix(other), srcInterface, attached, []path{viaInterface(i, fam, other)})
		return
	}
	for _, end := range []netip.Addr{key.Addr(), lastAddr(key)} {
		if end != p.Addr() {
			port.table.set(hostPrefix(end), srcInterface, 0, []path{dropPath(fam)})
		}
	}
}

// delConnected removes the routes of one address.
func (st *state) delConnected(i *iface, p netip.Prefix) {
	port := &i.ip[family(p.Addr())]
	port.table.unset(hostPrefix(p.Addr()), srcInterface)
	key := p.Masked()
	if p.IsSingleIP() || port.prefixes[key] == 0 {
		return
	}
	if port.prefixes[key]--; port.prefixes[key] > 0 {
		return
	}
	delete(port.prefixes, key)
	port.table.unset(key, srcInterface)
	if p.Addr().Is6() {
		return
	}
	if p.Bits() == 31 {
		port.table.unset(hostPrefix(otherEnd(p)), srcInterface)
		return
	}
	port.table.unset(hostPrefix(key.Addr()), srcInterface)
	port.table.unset(hostPrefix(lastAddr(key)), srcInterface)
}

func hostPrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// otherEnd returns the other address of a /31.
func otherEnd(p netip.Prefix) netip.Addr {
	b := p.Addr().As4()
	b[3] ^= 1
	return netip.AddrFrom4(b)
}

// lastAddr returns the broadcast address of an IPv4 prefix.
func lastAddr(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().As4()
	for n := p.Bits(); n < 32; n++ {
		b[n/8] |= 0x80 >> (n % 8)
	}
	return netip.AddrFrom4(b)
}

func dumpAddresses(c *call, q *ip.IPAddressDump, send func(*ip.IPAddressDetails)) {
	i := c.iface(q.SwIfIndex)
	if i == nil || i.unnumbered != none {
		return
	}
	for _, p := range i.ip[familyOf(q.IsIPv6)].addrs {
		d := &ip.IPAddressDetails{SwIfIndex: q.SwIfIndex}
		d.Prefix.Address, d.Prefix.Len = apiAddress(p.Addr()), uint8(p.Bits())
		send(d)
	}
}

// setUnnumbered makes one interface borrow the addresses of another. The message's field names are exchanged: UnnumberedSwIfIndex borrows the
// addresses of SwIfIndex.
func setUnnumbered(c *call, q *interfaces_api.SwInterfaceSetUnnumbered) *interfaces_api.SwInterfaceSetUnnumberedReply {
	borrower, lender := c.iface(q.UnnumberedSwIfIndex), c.iface(q.SwIfIndex)
	var rv int32
	switch {
	case borrower == nil:
		rv = rvInvalidSwIfIndex
	case !q.IsAdd:
		borrower.unnumbered = none
	case lender == nil:
		rv = rvInvalidSwIfIndex2
	case borrower.ip[ip4].table != lender.ip[ip4].table || borrower.ip[ip6].table != lender.ip[ip6].table:
		rv = rvUnexpectedState
	default:
		borrower.unnumbered = lender.index
	}
	return &interfaces_api.SwInterfaceSetUnnumberedReply{Retval: rv}
}

func ip6EnableDisable(c *call, q *ip.SwInterfaceIP6EnableDisable) *ip.SwInterfaceIP6EnableDisableReply {
	i := c.iface(q.SwIfIndex)
	var rv int32
	switch {
	case i == nil:
		rv = rvInvalidSwIfIndex
	case !q.Enable:
		rv = c.disable6(i)
	default:
		rv = c.enable6(i)
	}
	return &ip.SwInterfaceIP6EnableDisableReply{Retval: rv}
}

func ip4EnableDisable(c *call, q *ip.SwInterfaceIP4EnableDisable) *ip.SwInterfaceIP4EnableDisableReply {
	i := c.iface(q.SwIfIndex)
	if i == nil {
		return &ip.SwInterfaceIP4EnableDisableReply{Retval: rvInvalidSwIfIndex}
	}
	i.ip[ip4].toggled = true
	return &ip.SwInterfaceIP4EnableDisableReply{}
}

// enable6 adds a lock to the IPv6 link; the first lock creates the link.
func (st *state) enable6(i *iface) int32 {
	i.link6.locks++
	if i.link6.locks > 1 {
		return rvValueExists
	}
	if !i.link6.local.IsValid() {
		i.link6.local = linkLocalOf(i.hw.mac)
	}
	return 0
}

func (st *state) disable6(i *iface) int32 {
	if i.link6.locks == 0 {
		return rvIP6NotEnabled
	}
	if i.link6.locks--; i.link6.locks == 0 {
		i.link6.local = netip.Addr{}
	}
	return 0
}

func (st *state) setLocal(i *iface, addr netip.Addr) int32 {
	i.link6.local = addr
	if i.link6.locks == 0 {
		return st.enable6(i)
	}
	return 0
}

// linkLocalOf returns the EUI-64 address of a MAC.
func linkLocalOf(m mac) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]})
}

func getLinkLocal(c *call, q *ip.SwInterfaceIP6GetLinkLocalAddress) *ip.SwInterfaceIP6GetLinkLocalAddressReply {
	i := c.iface(q.SwIfIndex)
	switch {
	case i == nil:
		return &ip.SwInterfaceIP6GetLinkLocalAddressReply{Retval: rvInvalidSwIfIndex}
	case i.link6.locks == 0:
		return &ip.SwInterfaceIP6GetLinkLocalAddressReply{Retval: rvIP6NotEnabled}
	}
	return &ip.SwInterfaceIP6GetLinkLocalAddressReply{IP: i.link6.local.As16()}
}

func setLinkLocal(c *call, q *ip.SwInterfaceIP6SetLinkLocalAddress) *ip.SwInterfaceIP6SetLinkLocalAddressReply {
	i := c.iface(q.SwIfIndex)
	if i == nil {
		return &ip.SwInterfaceIP6SetLinkLocalAddressReply{Retval: rvInvalidSwIfIndex}
	}
	return &ip.SwInterfaceIP6SetLinkLocalAddressReply{Retval: c.setLocal(i, netip.AddrFrom16(q.IP))}
}
