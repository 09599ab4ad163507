package vppfake

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
)

// natAddress is an address of a pool. An address of an outside interface is bound to that interface and its subnet.
type natAddress struct {
	addr  netip.Addr
	table *fib // nil: for all tables
	ifx   uint32
	net   netip.Prefix // invalid: not bound
}

func (a natAddress) String() string {
	if a.table == nil {
		return a.addr.String()
	}
	return fmt.Sprintf("%s vrf %d", a.addr, a.table.id)
}

// natReg is a NAT address in the table of an outside interface, with the number of its users.
type natReg struct {
	addr  netip.Addr
	ifx   uint32
	count int
}

func natAddressRange(c *call, q *nat44_ed.Nat44AddDelAddressRange) *nat44_ed.Nat44AddDelAddressRangeReply {
	first := binary.BigEndian.Uint32(q.FirstIPAddress[:])
	last := binary.BigEndian.Uint32(q.LastIPAddress[:])
	twice := q.Flags&nat_types.NAT_IS_TWICE_NAT != 0
	var rv int32
	for n := int64(0); n <= int64(last)-int64(first) && rv == 0; n++ {
		var raw [4]byte
		binary.BigEndian.PutUint32(raw[:], first+uint32(n))
		if q.IsAdd {
			rv = c.addNATAddress(netip.AddrFrom4(raw), q.VrfID, twice)
		} else {
			rv = c.delNATAddress(netip.AddrFrom4(raw), twice)
		}
	}
	return &nat44_ed.Nat44AddDelAddressRangeReply{Retval: rv}
}

func (n *nat) addresses(twice bool) *[]natAddress {
	if twice {
		return &n.twice
	}
	return &n.pool
}

func (st *state) addNATAddress(a netip.Addr, vrf uint32, twice bool) int32 {
	if !st.nat.on {
		return rvUnsupported
	}
	list := st.nat.addresses(twice)
	for _, have := range *list {
		if have.addr == a {
			return rvValueExists
		}
	}
	entry := natAddress{addr: a, ifx: none}
	if vrf != none {
		entry.table = st.lockTable(vrf)
	}
	*list = append(*list, entry)
	if !twice {
		st.natRegs(a, true)
		for _, ports := range [][]*natPort{st.nat.ports, st.nat.outputs} {
			for _, p := range ports {
				if p.out {
					st.bindAddress(&(*list)[len(*list)-1], p.ifx)
				}
			}
		}
	}
	return 0
}

// delNATAddress removes an address and its sessions, except those of static mappings.
func (st *state) delNATAddress(a netip.Addr, twice bool) int32 {
	list := st.nat.addresses(twice)
	for k, have := range *list {
		if have.addr != a {
			continue
		}
		st.dropSessions(func(s *natSession) bool { return !s.static && s.out.addr == a })
		if !twice {
			st.natRegs(a, false)
		}
		st.unlockTable(have.table)
		last := len(*list) - 1
		(*list)[k] = (*list)[last]
		*list = (*list)[:last]
		return 0
	}
	return rvNoSuchEntry
}

func natAddressDump(c *call, _ *nat44_ed.Nat44AddressDump, send func(*nat44_ed.Nat44AddressDetails)) {
	for _, twice := range []bool{false, true} {
		for _, a := range *c.nat.addresses(twice) {
			d := &nat44_ed.Nat44AddressDetails{IPAddress: toIP4(a.addr), VrfID: none}
			if a.table != nil {
				d.VrfID = a.table.id
			}
			if twice {
				d.Flags = nat_types.NAT_IS_TWICE_NAT
			}
			send(d)
		}
	}
}

// natRegs adds an address to, or removes it from, the tables of all outside interfaces.
func (st *state) natRegs(a netip.Addr, add bool) {
	for _, list := range [][]*natPort{st.nat.ports, st.nat.outputs} {
		for _, p := range list {
			if p.out {
				st.natReg(a, p.ifx, add)
			}
		}
	}
}

func (st *state) natReg(a netip.Addr, ifx uint32, add bool) {
	regs := &st.nat.regs
	i := st.ifs.all[ifx]
	for k := range *regs {
		r := &(*regs)[k]
		if r.addr != a || r.ifx != ifx {
			continue
		}
		if add {
			r.count++
			return
		}
		if r.count--; r.count == 0 {
			i.ip[ip4].table.unset(hostPrefix(a), st.ip.sourceCalled("nat-low"))
			last := len(*regs) - 1
			(*regs)[k] = (*regs)[last]
			*regs = (*regs)[:last]
		}
		return
	}
	if !add {
		return
	}
	*regs = append(*regs, natReg{a, ifx, 1})
	self := viaInterface(i, ip4, a)
	self.kind = fib_types.FIB_API_PATH_TYPE_LOCAL
	i.ip[ip4].table.set(hostPrefix(a), st.ip.sourceCalled("nat-low"), connected|local, []path{self})
}

func (s *ipState) sourceCalled(name string) source {
	for _, src := range s.sources {
		if src.Name == name {
			return source(src.ID)
		}
	}
	return srcSpecial
}

// bindPool binds the first pool address that the interface has to the interface.
func (st *state) bindPool(ifx uint32) {
	for k := range st.nat.pool {
		if st.bindAddress(&st.nat.pool[k], ifx) {
			return
		}
	}
}

func (st *state) bindAddress(a *natAddress, ifx uint32) bool {
	i := st.ifs.all[ifx]
	if a.table != i.ip[ip4].table {
		return false
	}
	for _, p := range st.addresses(i, ip4) {
		if p.Addr() == a.addr {
			a.ifx, a.net = ifx, p.Masked()
			return true
		}
	}
	return false
}
