package vppfake

import (
	"maps"
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/pnat"
)

// pnatState is the plugin pnat: addresses and ports that are replaced where a packet comes in or leaves, one packet at a time.
type pnatState struct {
	bindings map[uint32]*pnatBinding
	free     []uint32 // numbers; the one freed last is used first
	flows    map[pnatKey]uint32
	ifs      map[uint32]*pnatIface
}

type pnatBinding struct {
	match   pnat.PnatMatchTuple
	rewrite pnat.PnatRewriteTuple
}

// pnatKey is what a binding is found by: the fields that its mask has.
type pnatKey struct {
	ifx   uint32
	hook  pnat.PnatAttachmentPoint
	match pnat.PnatMatchTuple
}

// pnatIface is an interface with bindings.
type pnatIface struct {
	refs    int
	enabled [2]bool
	mask    [2]pnat.PnatMask
}

func (p *pnatState) start() {
	p.bindings, p.flows, p.ifs = map[uint32]*pnatBinding{}, map[pnatKey]uint32{}, map[uint32]*pnatIface{}
}

const (
	featPnatIn  = "pnat-input"
	featPnatOut = "pnat-output"
)

func isPnatFeature(k featureKey) bool {
	return k.arc == arcIn && k.feature == featPnatIn || k.arc == arcOut && k.feature == featPnatOut
}

func registerPnat(t *table) {
	on(t, writes, pnatAdd)
	on(t, writes, func(c *call, q *pnat.PnatBindingDel) *pnat.PnatBindingDelReply {
		if c.pnats.bindings[q.BindingIndex] == nil {
			return &pnat.PnatBindingDelReply{Retval: -1}
		}
		delete(c.pnats.bindings, q.BindingIndex)
		c.pnats.free = append(c.pnats.free, q.BindingIndex)
		return &pnat.PnatBindingDelReply{}
	})
	on(t, writes, func(c *call, q *pnat.PnatBindingAttach) *pnat.PnatBindingAttachReply {
		return &pnat.PnatBindingAttachReply{Retval: c.pnatAttach(uint32(q.SwIfIndex), q.Attachment, q.BindingIndex)}
	})
	on(t, writes, func(c *call, q *pnat.PnatBindingDetach) *pnat.PnatBindingDetachReply {
		return &pnat.PnatBindingDetachReply{Retval: c.pnatDetach(uint32(q.SwIfIndex), q.Attachment, q.BindingIndex)}
	})
	on(t, reads, func(c *call, q *pnat.PnatFlowLookup) *pnat.PnatFlowLookupReply {
		if id, ok := c.pnats.flows[pnatKeyOf(uint32(q.SwIfIndex), q.Attachment, q.Match)]; ok {
			return &pnat.PnatFlowLookupReply{BindingIndex: id}
		}
		return &pnat.PnatFlowLookupReply{Retval: -1, BindingIndex: none}
	})
	registerPnatGets(t)
}

func registerPnatGets(t *table) {
	binding, iface := t.add(new(pnat.PnatBindingsDetails)), t.add(new(pnat.PnatInterfacesDetails))
	on(t, reads, func(c *call, q *pnat.PnatBindingsGet) *pnat.PnatBindingsGetReply {
		rv, n := rvInvalidValue, len(c.pnats.bindings)
		for _, id := range slices.Sorted(maps.Keys(c.pnats.bindings)) { // all at once: the fake never pauses
			if id >= q.Cursor {
				rv = 0
				b := c.pnats.bindings[id]
				c.send(binding, &pnat.PnatBindingsDetails{Match: b.match, Rewrite: b.rewrite})
			}
		}
		if n == 0 {
			rv = 0
		}
		return &pnat.PnatBindingsGetReply{Retval: rv, Cursor: pnatCursor(n)}
	})
	on(t, reads, func(c *call, _ *pnat.PnatInterfacesGet) *pnat.PnatInterfacesGetReply {
		for _, ifx := range slices.Sorted(maps.Keys(c.pnats.ifs)) {
			i := c.pnats.ifs[ifx]
			c.send(iface, &pnat.PnatInterfacesDetails{
				SwIfIndex: interface_types.InterfaceIndex(ifx), Enabled: i.enabled[:], LookupMask: i.mask,
			})
		}
		return &pnat.PnatInterfacesGetReply{Cursor: pnatCursor(len(c.pnats.ifs))}
	})
}

// pnatCursor: where there is nothing VPP does not think of the cursor.
func pnatCursor(n int) uint32 {
	if n == 0 {
		return 0
	}
	return none
}

func pnatAdd(c *call, q *pnat.PnatBindingAddV2) *pnat.PnatBindingAddV2Reply {
	refused := func(rv int32) *pnat.PnatBindingAddV2Reply {
		return &pnat.PnatBindingAddV2Reply{Retval: rv, BindingIndex: none}
	}
	switch {
	case q.Match.Mask == 0 || q.Rewrite.Mask == 0:
		return refused(-1)
	case (q.Match.Sport != 0 || q.Match.Dport != 0) && q.Match.Proto != ProtoTCP && q.Match.Proto != ProtoUDP:
		return refused(-2)
	}
	id := uint32(len(c.pnats.bindings))
	if n := len(c.pnats.free); n > 0 {
		id, c.pnats.free = c.pnats.free[n-1], c.pnats.free[:n-1]
	}
	c.pnats.bindings[id] = &pnatBinding{q.Match, q.Rewrite}
	return &pnat.PnatBindingAddV2Reply{BindingIndex: id}
}

func pnatKeyOf(ifx uint32, hook pnat.PnatAttachmentPoint, m pnat.PnatMatchTuple) pnatKey {
	k := pnatKey{ifx: ifx, hook: hook}
	if m.Mask&pnat.PNAT_SA != 0 {
		k.match.Src = m.Src
	}
	if m.Mask&pnat.PNAT_DA != 0 {
		k.match.Dst = m.Dst
	}
	if m.Mask&pnat.PNAT_PROTO != 0 {
		k.match.Proto = m.Proto
	}
	if m.Mask&pnat.PNAT_SPORT != 0 {
		k.match.Sport = m.Sport
	}
	if m.Mask&pnat.PNAT_DPORT != 0 {
		k.match.Dport = m.Dport
	}
	return k
}

func (c *call) pnatAttach(ifx uint32, hook pnat.PnatAttachmentPoint, id uint32) int32 {
	p := &c.pnats
	b := p.bindings[id]
	switch {
	case c.iface(interface_types.InterfaceIndex(ifx)) == nil:
		return rvInvalidSwIfIndex
	case b == nil:
		return -1
	case hook > pnat.PNAT_IP4_OUTPUT:
		c.die("pnat_binding_attach at a place that there is not")
		return 0
	}
	i := p.ifs[ifx]
	if i != nil && i.enabled[hook] && i.mask[hook] != b.match.Mask {
		return -2
	}
	key := pnatKeyOf(ifx, hook, b.match)
	if _, there := p.flows[key]; there {
		return -3
	}
	p.flows[key] = id
	if i == nil {
		i = &pnatIface{}
		p.ifs[ifx] = i
	}
	if !i.enabled[hook] {
		c.pnatFeature(ifx, hook, true)
		i.enabled[hook], i.mask[hook] = true, b.match.Mask
	}
	i.refs++
	return 0
}

// pnatDetach switches the feature off with any binding, whatever others there are.
func (c *call) pnatDetach(ifx uint32, hook pnat.PnatAttachmentPoint, id uint32) int32 {
	p := &c.pnats
	b := p.bindings[id]
	switch {
	case c.iface(interface_types.InterfaceIndex(ifx)) == nil:
		return rvInvalidSwIfIndex
	case b == nil:
		return -1
	}
	key := pnatKeyOf(ifx, hook, b.match)
	if _, there := p.flows[key]; !there {
		return -2
	}
	delete(p.flows, key)
	i := p.ifs[ifx]
	if i == nil {
		return 0
	}
	if i.enabled[hook] {
		c.pnatFeature(ifx, hook, false)
	}
	i.enabled[hook], i.mask[hook] = false, 0
	if i.refs--; i.refs == 0 {
		delete(p.ifs, ifx)
	}
	return 0
}

func (c *call) pnatFeature(ifx uint32, hook pnat.PnatAttachmentPoint, on bool) {
	output := hook == pnat.PNAT_IP4_OUTPUT
	c.reassemble(ifx, output, on)
	if output {
		c.feature(ifx, arcOut, featPnatOut, on)
	} else {
		c.feature(ifx, arcIn, featPnatIn, on)
	}
}

func dumpPnat(st *state, d *dumper) {
	for _, b := range st.pnats.bindings {
		d.add("pnat binding %+v %+v", b.match, b.rewrite)
	}
	for key := range st.pnats.flows {
		label := "one that is gone"
		if i := st.ifs.all[key.ifx]; i != nil {
			label = i.label()
		}
		d.add("pnat %d on %s: %+v", key.hook, label, key.match)
	}
}

// pnat replaces what a binding of the interface says. What an ICMP error is about stays as it is.
func (w *walk) pnat(i *iface, hook pnat.PnatAttachmentPoint, p *Packet) {
	on := w.pnats.ifs[i.index]
	if on == nil || !on.enabled[hook] || family(p.Dst) != ip4 || p.Error != nil {
		return
	}
	m := pnat.PnatMatchTuple{
		Src: toIP4(p.Src), Dst: toIP4(p.Dst), Proto: ip_types.IPProto(p.Proto), Sport: p.SrcPort, Dport: p.DstPort,
		Mask: on.mask[hook],
	}
	id, ok := w.pnats.flows[pnatKeyOf(i.index, hook, m)]
	if !ok {
		return
	}
	b := w.pnats.bindings[id]
	if b == nil {
		w.drop("pnat: the binding is gone")
		return
	}
	r := &b.rewrite
	if r.Mask&pnat.PNAT_SA != 0 {
		p.Src = netip.AddrFrom4(r.Src)
	}
	if r.Mask&pnat.PNAT_DA != 0 {
		p.Dst = netip.AddrFrom4(r.Dst)
	}
	if r.Mask&pnat.PNAT_SPORT != 0 {
		p.SrcPort = r.Sport
	}
	if r.Mask&pnat.PNAT_DPORT != 0 {
		p.DstPort = r.Dport
	}
	w.step("pnat: %s", *p)
}
