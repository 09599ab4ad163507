package vppfake

import (
	"fmt"
	"maps"
	"net/netip"

	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
)

// maxLocals is the maximum number of backends in a request: VPP counts them in eight bits, so that more of them make it loop until its memory
// is full.
const maxLocals = 255

func natLB(c *call, q *nat44_ed.Nat44AddDelLbStaticMapping) *nat44_ed.Nat44AddDelLbStaticMappingReply {
	if len(q.Locals) > maxLocals {
		c.die(fmt.Sprintf("nat44_add_del_lb_static_mapping with %d locals", len(q.Locals)))
		return nil
	}
	n := &c.nat
	key := natExt{fromIP4(q.ExternalAddr), q.ExternalPort, q.Protocol}
	m := n.byExt[key]
	var rv int32
	switch {
	case !n.on:
		rv = rvUnsupported
	case q.IsAdd && m != nil:
		rv = rvValueExists
	case q.IsAdd && len(q.Locals) < 2:
		rv = rvInvalidValue
	case q.IsAdd:
		rv = c.addLB(key, q)
	case m == nil:
		rv = rvNoSuchEntry
	case !m.lb:
		rv = rvInvalidValue
	default:
		c.delLB(key, m, q.Flags)
	}
	return &nat44_ed.Nat44AddDelLbStaticMappingReply{Retval: rv}
}

func (c *call) addLB(key natExt, q *nat44_ed.Nat44AddDelLbStaticMapping) int32 {
	n := &c.nat
	out2in := q.Flags&nat_types.NAT_IS_OUT2IN_ONLY != 0
	known := false
	for _, a := range n.pool {
		known = known || a.addr == key.addr
	}
	if !out2in && !known {
		return rvNoSuchEntry
	}
	flags := q.Flags & (nat_types.NAT_IS_TWICE_NAT | nat_types.NAT_IS_SELF_TWICE_NAT | nat_types.NAT_IS_OUT2IN_ONLY)
	if flags&nat_types.NAT_IS_TWICE_NAT != 0 {
		flags &^= nat_types.NAT_IS_SELF_TWICE_NAT
	}
	m := &natMapping{ext: key.addr, extPort: key.port, proto: key.proto, local: netip.IPv4Unspecified(), tag: q.Tag, flags: flags,
		lb: true, affinity: q.Affinity}
	for _, l := range q.Locals {
		b := &natBackend{addr: fromIP4(l.Addr), port: l.Port, weight: l.Probability, vrf: l.VrfID, table: c.lockTable(l.VrfID)}
		m.locals.add(b)
		if !out2in {
			n.byLocal[natLocal{natExt{b.addr, b.port, key.proto}, c.ip.tables[ip4][0]}] = m
		}
	}
	n.lists++
	m.clients = n.lists
	m.sum()
	n.byExt[key] = m
	n.mappings.add(m)
	return 0
}

func (c *call) delLB(key natExt, m *natMapping, flags nat_types.NatConfigFlags) {
	n := &c.nat
	for l := range m.locals.all() {
		if flags&nat_types.NAT_IS_OUT2IN_ONLY == 0 {
			delete(n.byLocal, natLocal{natExt{l.addr, l.port, m.proto}, l.table})
		}
		c.dropBackend(l)
		c.unlockTable(l.table)
	}
	if m.affinity != 0 {
		maps.DeleteFunc(n.affinity, func(_ natClient, s natSticky) bool { return s.list == m.clients })
	}
	delete(n.byExt, key)
	n.mappings.remove(m)
}

// dropBackend deletes the load-balanced sessions of a backend, of all mappings and protocols.
func (st *state) dropBackend(l *natBackend) {
	st.dropSessions(func(s *natSession) bool { return s.lb && s.in.addr == l.addr && s.in.port == l.port })
}

// sum adds up the weights, in eight bits.
func (m *natMapping) sum() {
	var upTo uint8
	for l := range m.locals.all() {
		upTo += l.weight
		l.upTo = upTo
	}
}

func natLBLocal(c *call, q *nat44_ed.Nat44LbStaticMappingAddDelLocal) *nat44_ed.Nat44LbStaticMappingAddDelLocalReply {
	n := &c.nat
	m := n.byExt[natExt{fromIP4(q.ExternalAddr), q.ExternalPort, q.Protocol}]
	var rv int32
	switch {
	case !n.on:
		rv = rvUnsupported
	case m == nil:
		rv = rvNoSuchEntry
	case !m.lb:
		rv = rvInvalidValue
	default:
		rv = c.changeLocal(m, q)
	}
	return &nat44_ed.Nat44LbStaticMappingAddDelLocalReply{Retval: rv}
}

func (c *call) changeLocal(m *natMapping, q *nat44_ed.Nat44LbStaticMappingAddDelLocal) int32 {
	b := &natBackend{addr: fromIP4(q.Local.Addr), port: q.Local.Port, weight: q.Local.Probability, vrf: q.Local.VrfID}
	var have *natBackend
	for l := range m.locals.all() {
		if l.addr == b.addr && l.port == b.port && l.vrf == b.vrf {
			have = l
			break
		}
	}
	switch {
	case q.IsAdd && have != nil:
		return rvValueExists
	case q.IsAdd:
		b.table = c.lockTable(b.vrf)
		m.locals.add(b)
		if !m.has(nat_types.NAT_IS_OUT2IN_ONLY) {
			c.nat.byLocal[natLocal{natExt{b.addr, b.port, m.proto}, b.table}] = m
		}
	case have == nil:
		return rvNoSuchEntry
	case m.locals.len() < 3:
		return rvUnspecified
	default:
		if !m.has(nat_types.NAT_IS_OUT2IN_ONLY) {
			delete(c.nat.byLocal, natLocal{natExt{b.addr, b.port, m.proto}, have.table})
		}
		c.dropBackend(have)
		m.locals.remove(have)
		c.unlockTable(have.table)
	}
	m.sum()
	return 0
}

func natLBDump(c *call, _ *nat44_ed.Nat44LbStaticMappingDump, send func(*nat44_ed.Nat44LbStaticMappingDetails)) {
	for m := range c.nat.mappings.all() {
		if !m.lb {
			continue
		}
		d := &nat44_ed.Nat44LbStaticMappingDetails{ExternalAddr: toIP4(m.ext), ExternalPort: m.extPort, Protocol: m.proto,
			Flags: m.flags, Tag: m.tag, LocalNum: uint32(m.locals.len())} // VPP does not return the affinity
		for l := range m.locals.all() {
			d.Locals = append(d.Locals, nat44_ed.Nat44LbAddrPort{Addr: toIP4(l.addr), Port: l.port, Probability: l.weight, VrfID: l.vrf})
		}
		send(d)
	}
}

func (st *state) unlockMapping(m *natMapping) {
	st.unlockTable(m.table)
	for l := range m.locals.all() {
		st.unlockTable(l.table)
	}
}
