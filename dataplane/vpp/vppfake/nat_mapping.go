package vppfake

import (
	"fmt"
	"net/netip"
	"strings"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
)

// natMapping is a static, identity or load-balancing mapping.
type natMapping struct {
	ext       netip.Addr
	extPort   uint16
	proto     uint8
	local     netip.Addr
	localPort uint16
	table     *fib // of the local side; nil for load balancing and identities
	vrf       uint32
	pool      netip.Addr // address of the twice-NAT pool; invalid: any
	tag       string
	flags     nat_types.NatConfigFlags
	identity  bool
	lb        bool
	affinity  uint32
	clients   int // number of its client list
	locals    slots[natBackend]
}

// natBackend is a backend of a load-balancing mapping, or a table in which an identity applies.
type natBackend struct {
	addr   netip.Addr
	port   uint16
	weight uint8
	upTo   uint8 // sum of the weights up to this backend, in eight bits as in VPP
	vrf    uint32
	table  *fib
}

// natExt and natLocal are the keys of mappings.
type natExt struct {
	addr  netip.Addr
	port  uint16
	proto uint8
}

type natLocal struct {
	natExt
	table *fib
}

// natSpec is a requested mapping.
type natSpec struct {
	local     netip.Addr
	ext       netip.Addr
	localPort uint16
	extPort   uint16
	proto     uint8
	vrf       uint32
	pool      netip.Addr
	flags     nat_types.NatConfigFlags
	identity  bool
	tag       string
}

// natResolve is a mapping whose external address is that of an interface.
type natResolve struct {
	ifx      uint32
	spec     natSpec
	resolved bool
}

func (m *natMapping) has(f nat_types.NatConfigFlags) bool { return m.flags&f != 0 }

func (m *natMapping) String() string {
	var locals []string
	for l := range m.locals.all() {
		locals = append(locals, fmt.Sprintf("%s:%d weight %d vrf %d", l.addr, l.port, l.weight, l.vrf))
	}
	return fmt.Sprintf("%s:%d proto %d to %s:%d vrf %d flags %s affinity %d pool %s tag %q %s", m.ext, m.extPort, m.proto, m.local,
		m.localPort, m.vrf, m.flags, m.affinity, m.pool, m.tag, strings.Join(locals, ", "))
}

func registerNATMappings(t *table) {
	on(t, writes, func(c *call, q *nat44_ed.Nat44AddDelStaticMapping) *nat44_ed.Nat44AddDelStaticMappingReply {
		s := natSpec{local: fromIP4(q.LocalIPAddress), ext: fromIP4(q.ExternalIPAddress), localPort: q.LocalPort,
			extPort: q.ExternalPort, proto: q.Protocol, vrf: q.VrfID, flags: q.Flags, tag: q.Tag}
		return &nat44_ed.Nat44AddDelStaticMappingReply{Retval: c.natStatic(q.IsAdd, s, uint32(q.ExternalSwIfIndex))}
	})
	on(t, writes, func(c *call, q *nat44_ed.Nat44AddDelStaticMappingV2) *nat44_ed.Nat44AddDelStaticMappingV2Reply {
		s := natSpec{local: fromIP4(q.LocalIPAddress), ext: fromIP4(q.ExternalIPAddress), localPort: q.LocalPort,
			extPort: q.ExternalPort, proto: q.Protocol, vrf: q.VrfID, flags: q.Flags, tag: q.Tag}
		if pool := fromIP4(q.PoolIPAddress); !pool.IsUnspecified() {
			s.pool = pool
		}
		return &nat44_ed.Nat44AddDelStaticMappingV2Reply{Retval: c.natStatic(q.IsAdd, s, uint32(q.ExternalSwIfIndex))}
	})
	on(t, writes, func(c *call, q *nat44_ed.Nat44AddDelIdentityMapping) *nat44_ed.Nat44AddDelIdentityMappingReply {
		s := natSpec{local: fromIP4(q.IPAddress), ext: fromIP4(q.IPAddress), localPort: q.Port, extPort: q.Port,
			proto: q.Protocol, vrf: q.VrfID, flags: q.Flags & nat_types.NAT_IS_ADDR_ONLY, identity: true, tag: q.Tag}
		return &nat44_ed.Nat44AddDelIdentityMappingReply{Retval: c.natStatic(q.IsAdd, s, uint32(q.SwIfIndex))}
	})
	dump(t, natStaticDump)
	dump(t, natIdentityDump)
	on(t, writes, natLB).counted(77, 11)
	on(t, writes, natLBLocal)
	dump(t, natLBDump)
}

// natStatic implements nat44_ed_add_static_mapping and its opposite.
func (c *call) natStatic(add bool, s natSpec, ifx uint32) int32 {
	twice := nat_types.NAT_IS_TWICE_NAT | nat_types.NAT_IS_SELF_TWICE_NAT
	switch {
	case !c.nat.on:
		return rvUnsupported
	case s.identity && s.flags&nat_types.NAT_IS_OUT2IN_ONLY != 0,
		s.flags&twice != 0 && (s.identity || s.flags&nat_types.NAT_IS_ADDR_ONLY != 0):
		return rvUnsupported
	case ifx != none && add:
		return c.addResolve(s, ifx)
	case ifx != none:
		return c.delResolve(s, ifx)
	case add:
		return c.addStatic(s)
	}
	return c.delStatic(s)
}

// normal returns the mapping that VPP creates for the request.
func (s natSpec) normal() natSpec {
	if s.flags&nat_types.NAT_IS_ADDR_ONLY != 0 {
		s.localPort, s.extPort, s.proto = 0, 0, 0
	}
	if s.identity {
		s.local, s.localPort = s.ext, s.extPort
	}
	return s
}

func (st *state) addStatic(s natSpec) int32 {
	n := &st.nat
	s = s.normal()
	key := natExt{s.ext, s.extPort, s.proto}
	if m := n.byExt[key]; m != nil {
		if !m.identity {
			return rvValueExists
		}
		for l := range m.locals.all() {
			if l.vrf == s.vrf {
				return rvValueExists
			}
		}
		l := &natBackend{vrf: s.vrf, table: st.lockTable(s.vrf), addr: m.local}
		m.locals.add(l)
		n.byLocal[natLocal{natExt{m.local, m.localPort, m.proto}, l.table}] = m
		return 0
	}
	if s.vrf == none {
		s.vrf = n.vrfs[0]
	}
	table := st.lockTable(s.vrf)
	out2in := s.flags&nat_types.NAT_IS_OUT2IN_ONLY != 0
	local := natLocal{natExt{s.local, s.localPort, s.proto}, table}
	if !out2in && !s.identity && n.byLocal[local] != nil {
		return rvValueExists // VPP does not release the table
	}
	m := &natMapping{ext: s.ext, extPort: s.extPort, proto: s.proto, local: s.local, localPort: s.localPort, pool: s.pool,
		tag: s.tag, flags: s.flags, identity: s.identity}
	if s.identity {
		m.locals.add(&natBackend{vrf: s.vrf, table: table, addr: s.local})
	} else {
		m.vrf, m.table = s.vrf, table
	}
	if !out2in {
		n.byLocal[local] = m
	}
	n.byExt[key] = m
	n.mappings.add(m)
	st.natRegs(m.ext, true)
	return 0
}

// delStatic deletes a mapping without checking that it is of the kind that the request names, as in VPP: deleting an identity removes all
// backends of a load-balancing mapping that are in its table, and with the last backend the mapping. Their sessions stay.
func (st *state) delStatic(s natSpec) int32 {
	n := &st.nat
	s = s.normal()
	key := natExt{s.ext, s.extPort, s.proto}
	m := n.byExt[key]
	if m == nil {
		return rvNoSuchEntry
	}
	table := m.table
	if s.identity {
		if s.vrf == none {
			s.vrf = n.vrfs[0]
		}
		table = nil
		for l := range m.locals.all() {
			if l.vrf == s.vrf {
				table = l.table
				m.locals.remove(l)
			}
		}
		if table == nil {
			return rvNoSuchEntry
		}
	}
	if s.flags&nat_types.NAT_IS_OUT2IN_ONLY == 0 {
		delete(n.byLocal, natLocal{natExt{s.local, s.localPort, s.proto}, table})
	}
	st.dropStatic(m, table, s.flags&nat_types.NAT_IS_ADDR_ONLY != 0)
	st.unlockTable(table)
	if m.locals.len() == 0 {
		delete(n.byExt, key)
		n.mappings.remove(m)
		st.natRegs(m.ext, false)
	}
	return 0
}

// dropStatic deletes sessions of a static mapping: only the first one found, unless the mapping is for a whole address.
func (st *state) dropStatic(m *natMapping, table *fib, addrOnly bool) {
	found := false
	st.dropSessions(func(s *natSession) bool {
		if s.in.table != table || s.in.addr != m.local || s.lb || !s.static || found && !addrOnly {
			return false
		}
		if !addrOnly && (s.out.addr != m.ext || s.out.port != m.extPort || s.in.port != m.localPort || s.proto != m.proto) {
			return false
		}
		found = true
		return true
	})
}

func (c *call) findResolve(s natSpec, ifx uint32) int {
	for k, r := range c.nat.resolve {
		if r.ifx != ifx || r.spec.vrf != s.vrf {
			continue
		}
		bothAddr := r.spec.flags&s.flags&nat_types.NAT_IS_ADDR_ONLY != 0
		switch {
		case r.spec.identity && s.identity:
			if bothAddr || r.spec.extPort == s.extPort && r.spec.proto == s.proto {
				return k
			}
		case r.spec.local == s.local:
			if bothAddr || r.spec.localPort == s.localPort && r.spec.extPort == s.extPort && r.spec.proto == s.proto {
				return k
			}
		}
	}
	return -1
}

func (c *call) addResolve(s natSpec, ifx uint32) int32 {
	if c.findResolve(s, ifx) >= 0 {
		return rvValueExists
	}
	r := &natResolve{ifx: ifx, spec: s}
	c.nat.resolve = append(c.nat.resolve, r)
	a, ok := c.firstAddress(ifx)
	if !ok {
		return 0
	}
	r.resolved = true
	s.ext = a
	rv := c.addStatic(s)
	if rv != 0 {
		c.nat.resolve = c.nat.resolve[:len(c.nat.resolve)-1]
	}
	return rv
}

func (c *call) delResolve(s natSpec, ifx uint32) int32 {
	k := c.findResolve(s, ifx)
	if k < 0 {
		return rvNoSuchEntry
	}
	last := len(c.nat.resolve) - 1
	c.nat.resolve[k] = c.nat.resolve[last]
	c.nat.resolve = c.nat.resolve[:last]
	a, ok := c.firstAddress(ifx)
	if !ok {
		return 0
	}
	s.ext = a
	return c.delStatic(s)
}

func (st *state) firstAddress(ifx uint32) (netip.Addr, bool) {
	i := st.iface(interface_types.InterfaceIndex(ifx))
	if i == nil || len(i.ip[ip4].addrs) == 0 {
		return netip.Addr{}, false
	}
	return i.ip[ip4].addrs[0].Addr(), true
}

// natAddressChanged handles a change of interface addresses: for pool addresses bound to an interface, and for mappings of interfaces.
func (st *state) natAddressChanged(i *iface, p netip.Prefix, add bool) {
	n := &st.nat
	if !n.on || !p.Addr().Is4() {
		return
	}
	for k := range n.pool {
		if a := &n.pool[k]; a.addr == p.Addr() && a.table == i.ip[ip4].table {
			a.ifx, a.net = i.index, p.Masked()
			if !add {
				a.net = netip.Prefix{}
			}
			break
		}
	}
	for _, r := range n.resolve {
		s := r.spec
		s.ext = p.Addr()
		switch {
		case r.ifx != i.index || add == r.resolved:
		case add:
			r.resolved = st.addStatic(s) == 0
		default:
			r.resolved = st.delStatic(s) != 0
		}
	}
}

func natStaticDump(c *call, _ *nat44_ed.Nat44StaticMappingDump, send func(*nat44_ed.Nat44StaticMappingDetails)) {
	for m := range c.nat.mappings.all() {
		if m.identity || m.lb {
			continue
		}
		send(&nat44_ed.Nat44StaticMappingDetails{Flags: m.flags, LocalIPAddress: toIP4(m.local), ExternalIPAddress: toIP4(m.ext),
			Protocol: m.proto, LocalPort: m.localPort, ExternalPort: m.extPort, ExternalSwIfIndex: interface_types.InterfaceIndex(none),
			VrfID: m.vrf, Tag: m.tag})
	}
	for _, r := range c.nat.resolve {
		if r.spec.identity {
			continue
		}
		d := &nat44_ed.Nat44StaticMappingDetails{LocalIPAddress: toIP4(r.spec.local), VrfID: r.spec.vrf, Tag: r.spec.tag,
			ExternalSwIfIndex: interface_types.InterfaceIndex(r.ifx),
			Flags:             r.spec.flags & (nat_types.NAT_IS_TWICE_NAT | nat_types.NAT_IS_ADDR_ONLY)}
		if r.spec.flags&nat_types.NAT_IS_ADDR_ONLY == 0 {
			d.Protocol, d.LocalPort, d.ExternalPort = r.spec.proto, r.spec.localPort, r.spec.extPort
		}
		send(d)
	}
}

func natIdentityDump(c *call, _ *nat44_ed.Nat44IdentityMappingDump, send func(*nat44_ed.Nat44IdentityMappingDetails)) {
	for m := range c.nat.mappings.all() {
		if !m.identity || m.lb {
			continue
		}
		for l := range m.locals.all() {
			send(&nat44_ed.Nat44IdentityMappingDetails{Flags: m.flags, IPAddress: toIP4(m.local), Protocol: m.proto, Port: m.localPort,
				SwIfIndex: interface_types.InterfaceIndex(none), VrfID: l.vrf, Tag: m.tag})
		}
	}
	for _, r := range c.nat.resolve {
		if r.spec.identity {
			send(&nat44_ed.Nat44IdentityMappingDetails{Flags: r.spec.flags, Protocol: r.spec.proto, Port: r.spec.localPort,
				SwIfIndex: interface_types.InterfaceIndex(r.ifx), VrfID: r.spec.vrf, Tag: r.spec.tag})
		}
	}
}
