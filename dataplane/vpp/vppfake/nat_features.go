package vppfake

import (
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
)

func natFeature(c *call, q *nat44_ed.Nat44InterfaceAddDelFeature) *nat44_ed.Nat44InterfaceAddDelFeatureReply {
	var rv int32
	inside := q.Flags&nat_types.NAT_IS_INSIDE != 0
	switch {
	case c.iface(q.SwIfIndex) == nil:
		rv = rvInvalidSwIfIndex
	case !c.nat.on:
		rv = rvUnsupported
	case q.IsAdd:
		rv = c.addNATPort(uint32(q.SwIfIndex), inside)
	default:
		rv = c.delNATPort(uint32(q.SwIfIndex), inside)
	}
	return &nat44_ed.Nat44InterfaceAddDelFeatureReply{Retval: rv}
}

func preFeature(inside bool) string {
	if inside {
		return featIn2out
	}
	return featOut2in
}

func (st *state) addNATPort(ifx uint32, inside bool) int32 {
	n := &st.nat
	if findPort(n.outputs, ifx) != nil {
		return rvValueExists
	}
	p := findPort(n.ports, ifx)
	switch {
	case p != nil && (inside && p.in || !inside && p.out):
		return 0
	case p != nil:
		st.feature(ifx, arcIn, preFeature(!inside), false)
		st.feature(ifx, arcIn, featClassify, true)
	default:
		st.feature(ifx, arcIn, preFeature(inside), true)
		p = &natPort{ifx: ifx}
		n.ports = append(n.ports, p)
	}
	st.reassemble(ifx, false, true)
	table := st.ifs.all[ifx].ip[ip4].table
	countFIB(&n.fibs, table, 1)
	if inside {
		p.in = true
		return 0
	}
	p.out = true
	countFIB(&n.outFibs, table, 1)
	st.natOutside(ifx, true)
	return 0
}

// natOutside adds the addresses of NAT to the table of an outside interface, so that VPP answers ARP for them, and binds the addresses of the
// pool to the interface that has them.
func (st *state) natOutside(ifx uint32, add bool) {
	n := &st.nat
	for k := range n.pool {
		st.natReg(n.pool[k].addr, ifx, add)
	}
	for m := range n.mappings.all() {
		st.natReg(m.ext, ifx, add)
	}
	if add {
		st.bindPool(ifx)
	}
}

// delNATPort removes a role from an interface. An interface with both roles keeps the other one. An interface with one role is removed whatever
// role the request names; if it names the other role, the feature of the former role stays enabled.
func (st *state) delNATPort(ifx uint32, inside bool) int32 {
	n := &st.nat
	p := findPort(n.ports, ifx)
	if p == nil {
		return rvNoSuchEntry
	}
	st.reassemble(ifx, false, false)
	if p.in && p.out {
		st.feature(ifx, arcIn, featClassify, false)
		st.feature(ifx, arcIn, preFeature(!inside), true)
		p.in, p.out = p.in && !inside, p.out && inside
	} else {
		st.feature(ifx, arcIn, preFeature(inside), false)
		n.ports = removePort(n.ports, p)
	}
	table := st.ifs.all[ifx].ip[ip4].table
	st.leaveFIB(table)
	if !inside {
		countFIB(&n.outFibs, table, -1)
		st.natOutside(ifx, false)
	}
	return 0
}

func removePort(list []*natPort, p *natPort) []*natPort {
	for k := range list {
		if list[k] == p {
			return append(list[:k:k], list[k+1:]...)
		}
	}
	return list
}

// countFIB changes the count of a table. A table whose count becomes zero is removed as from a VPP vector: the last element takes its place.
func countFIB(list *[]natFIB, table *fib, by int) (gone bool) {
	for k := range *list {
		f := &(*list)[k]
		if f.table != table {
			continue
		}
		if f.refs += by; f.refs > 0 {
			return false
		}
		last := len(*list) - 1
		(*list)[k] = (*list)[last]
		*list = (*list)[:last]
		return true
	}
	if by > 0 {
		*list = append(*list, natFIB{table, by})
	}
	return false
}

// leaveFIB removes one NAT interface from a table. When the last one is removed, the sessions of that table become void.
func (st *state) leaveFIB(table *fib) {
	if !countFIB(&st.nat.fibs, table, -1) {
		return
	}
	for s := range st.nat.sessions.all() {
		if s.in.table == table || s.out.table == table {
			s.expired = true
		}
	}
}

func natOutputFeature(c *call, q *nat44_ed.Nat44EdAddDelOutputInterface) *nat44_ed.Nat44EdAddDelOutputInterfaceReply {
	var rv int32
	ifx := uint32(q.SwIfIndex)
	switch {
	case c.iface(q.SwIfIndex) == nil:
		rv = rvInvalidSwIfIndex
	case !c.nat.on:
		rv = rvUnsupported
	case !q.IsAdd:
		rv = c.delNATOutput(ifx)
	case findPort(c.nat.ports, ifx) != nil || findPort(c.nat.outputs, ifx) != nil:
		rv = rvValueExists
	default:
		c.setNATOutput(ifx, true)
		c.nat.outputs = append(c.nat.outputs, &natPort{ifx: ifx, in: true, out: true})
		table := c.iface(q.SwIfIndex).ip[ip4].table
		countFIB(&c.nat.fibs, table, 1)
		countFIB(&c.nat.outFibs, table, 1)
		c.natOutside(ifx, true)
	}
	return &nat44_ed.Nat44EdAddDelOutputInterfaceReply{Retval: rv}
}

func (st *state) setNATOutput(ifx uint32, on bool) {
	st.reassemble(ifx, false, on)
	st.reassemble(ifx, true, on)
	st.feature(ifx, arcIn, featOut2in, on)
	st.feature(ifx, arcOut, featOutput, on)
}

func (st *state) delNATOutput(ifx uint32) int32 {
	p := findPort(st.nat.outputs, ifx)
	if p == nil {
		return rvNoSuchEntry
	}
	st.setNATOutput(ifx, false)
	st.nat.outputs = removePort(st.nat.outputs, p)
	table := st.ifs.all[ifx].ip[ip4].table
	st.leaveFIB(table)
	countFIB(&st.nat.outFibs, table, -1)
	st.natOutside(ifx, false)
	return 0
}

// removeNATInterface handles the deletion of an interface for NAT.
func (st *state) removeNATInterface(i *iface) {
	if p := findPort(st.nat.ports, i.index); p != nil {
		in, out := p.in, p.out
		if in {
			st.delNATPort(i.index, true)
		}
		if out {
			st.delNATPort(i.index, false)
		}
	}
	st.delNATOutput(i.index)
}

// rebindNAT updates NAT when an interface moves to another table.
func (st *state) rebindNAT(i *iface, from, to *fib) {
	n := &st.nat
	for _, list := range [][]*natPort{n.ports, n.outputs} {
		if p := findPort(list, i.index); n.on && p != nil && p.out && from != to && len(n.outFibs) > 0 {
			countFIB(&n.outFibs, from, -1)
			countFIB(&n.outFibs, to, 1)
		}
	}
}
