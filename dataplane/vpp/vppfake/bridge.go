package vppfake

import (
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
)

// l2State is the layer 2 state of VPP.
type l2State struct {
	bds     map[uint32]*bridge // by id
	indices pool               // VPP keys the MAC table by the domain's index, which the next domain reuses
	fib     map[macKey]macEntry
	bvis    pool
	// rewrites holds the VLAN tag rewriting by the index of the interface.
	rewrites map[uint32]tagRewrite
	seed     uint32 // of the ids that VPP generates
}

// bridge is one bridge domain.
type bridge struct {
	id, index uint32
	features  uint32
	macAge    uint8
	tag       string
	bvi, fwd  *iface
	arp       map[netip.Addr]mac // for ARP termination
	members   []*iface
}

// Bits of a bridge domain's feature bitmap.
const (
	featFlood   = 1 << 2
	featArpUfwd = 1 << 3
	featArpTerm = 1 << 4
	featUuFlood = 1 << 5
	featUuFwd   = 1 << 6
	featForward = 1 << 7
	featLearn   = 1 << 9
)

// macKey and macEntry form a row of the MAC table. The row stays when the port, the interface or the domain is deleted.
type macKey struct {
	bd  uint32 // index
	mac mac
}

type macEntry struct {
	ifx                 uint32
	static, filter, bvi bool
	learned             bool // by a packet walk, not reported by the API
}

// l2Port is the layer 2 side of an interface; the zero value means layer 3.
type l2Port struct {
	bd    *bridge
	shg   uint8
	xconn bool
	peer  uint32 // index of the other half of the cross-connect
}

const maxBridgeID = 1<<24 - 1

func (s *l2State) start() {
	s.bds = map[uint32]*bridge{}
	s.fib = map[macKey]macEntry{}
	s.rewrites = map[uint32]tagRewrite{}
	s.newBridge(0, 0)
}

func (s *l2State) newBridge(id, features uint32) *bridge {
	b := &bridge{id: id, index: s.indices.lowest(), features: ^uint32(featUuFwd|featFlags) | features}
	s.bds[id] = b
	return b
}

// featFlags holds the features that bridge_domain_add_del can switch.
const featFlags = featFlood | featUuFlood | featForward | featLearn | featArpTerm | featArpUfwd

func registerBridges(t *table) {
	on(t, writes, func(c *call, q *l2.BridgeDomainAddDelV2) *l2.BridgeDomainAddDelV2Reply {
		id := q.BdID
		if id == none && q.IsAdd {
			id = c.l2.unusedID()
		}
		return &l2.BridgeDomainAddDelV2Reply{Retval: c.bridgeAddDel(id, q), BdID: id}
	})
	on(t, writes, func(c *call, q *l2.BridgeDomainAddDel) *l2.BridgeDomainAddDelReply {
		v2 := l2.BridgeDomainAddDelV2(*q)
		return &l2.BridgeDomainAddDelReply{Retval: c.bridgeAddDel(q.BdID, &v2)}
	})
	dump(t, bridgeDump)
	on(t, writes, bridgeFlags)
	on(t, writes, setMacAge)
	on(t, writes, setL2Bridge)
	on(t, writes, l2fibAddDel)
	dump(t, l2fibDump)
	on(t, writes, l2fibFlushBD)
}

func (s *l2State) unusedID() uint32 {
	for {
		s.seed = lcg(s.seed) & maxBridgeID
		if s.seed != 0 && s.bds[s.seed] == nil {
			return s.seed
		}
	}
}

func (st *state) bridgeAddDel(id uint32, q *l2.BridgeDomainAddDelV2) int32 {
	b := st.l2.bds[id]
	switch {
	case q.IsAdd && b != nil:
		return rvBDExists
	case q.IsAdd && id > maxBridgeID:
		return rvBDTooBig
	case q.IsAdd:
		b = st.l2.newBridge(id, features(q))
		b.macAge, b.tag = q.MacAge, q.BdTag
	case b == nil:
		return rvNoSuchEntry
	case b.index == 0:
		return rvBDNotModifiable
	case len(b.members) > 0:
		return rvBDInUse
	default:
		delete(st.l2.bds, id)
		st.l2.indices.free(b.index)
	}
	return 0
}

func features(q *l2.BridgeDomainAddDelV2) uint32 {
	var f uint32
	for bit, on := range map[uint32]bool{featFlood: q.Flood, featUuFlood: q.UuFlood, featForward: q.Forward, featLearn: q.Learn,
		featArpTerm: q.ArpTerm, featArpUfwd: q.ArpUfwd} {
		if on {
			f |= bit
		}
	}
	return f
}

func bridgeFlags(c *call, q *l2.BridgeFlags) *l2.BridgeFlagsReply {
	b := c.l2.bds[q.BdID]
	switch {
	case q.BdID == 0:
		return &l2.BridgeFlagsReply{Retval: rvBDNotModifiable}
	case b == nil:
		return &l2.BridgeFlagsReply{Retval: rvNoSuchEntry}
	}
	bits := features(&l2.BridgeDomainAddDelV2{
		Learn: q.Flags&l2.BRIDGE_API_FLAG_LEARN != 0, Forward: q.Flags&l2.BRIDGE_API_FLAG_FWD != 0,
		Flood: q.Flags&l2.BRIDGE_API_FLAG_FLOOD != 0, UuFlood: q.Flags&l2.BRIDGE_API_FLAG_UU_FLOOD != 0,
		ArpTerm: q.Flags&l2.BRIDGE_API_FLAG_ARP_TERM != 0, ArpUfwd: q.Flags&l2.BRIDGE_API_FLAG_ARP_UFWD != 0})
	if q.IsSet {
		b.features |= bits
	} else {
		b.features &^= bits
	}
	return &l2.BridgeFlagsReply{ResultingFeatureBitmap: b.features}
}

func setMacAge(c *call, q *l2.BridgeDomainSetMacAge) *l2.BridgeDomainSetMacAgeReply {
	b := c.l2.bds[q.BdID]
	switch {
	case q.BdID == 0:
		return &l2.BridgeDomainSetMacAgeReply{Retval: rvBDNotModifiable}
	case b == nil:
		return &l2.BridgeDomainSetMacAgeReply{Retval: rvNoSuchEntry}
	}
	b.macAge = q.MacAge
	return &l2.BridgeDomainSetMacAgeReply{}
}

func bridgeDump(c *call, q *l2.BridgeDomainDump, send func(*l2.BridgeDomainDetails)) {
	if uint32(q.SwIfIndex) != none {
		return // VPP: not implemented
	}
	for _, id := range sortedKeys(c.l2.bds) {
		if id == 0 || q.BdID != none && q.BdID != id {
			continue
		}
		b := c.l2.bds[id]
		d := &l2.BridgeDomainDetails{BdID: id, Flood: b.has(featFlood), UuFlood: b.has(featUuFlood), Forward: b.has(featForward),
			Learn: b.has(featLearn), ArpTerm: b.has(featArpTerm), ArpUfwd: b.has(featArpUfwd), MacAge: b.macAge, BdTag: b.tag,
			BviSwIfIndex: indexOf(b.bvi), UuFwdSwIfIndex: indexOf(b.fwd), NSwIfs: uint32(len(b.members))}
		for _, m := range b.members {
			d.SwIfDetails = append(d.SwIfDetails, l2.BridgeDomainSwIf{SwIfIndex: indexOf(m), Shg: m.l2.shg})
		}
		send(d)
	}
}

func (b *bridge) has(feature uint32) bool { return b.features&feature != 0 }

func indexOf(i *iface) interface_types.InterfaceIndex {
	if i == nil {
		return interface_types.InterfaceIndex(none)
	}
	return interface_types.InterfaceIndex(i.index)
}

func setL2Bridge(c *call, q *l2.SwInterfaceSetL2Bridge) *l2.SwInterfaceSetL2BridgeReply {
	i := c.iface(q.RxSwIfIndex)
	if i == nil {
		return &l2.SwInterfaceSetL2BridgeReply{Retval: rvInvalidSwIfIndex}
	}
	if !q.Enable {
		c.backToL3(i)
		return &l2.SwInterfaceSetL2BridgeReply{}
	}
	b := c.l2.bds[q.BdID]
	switch {
	case q.BdID > maxBridgeID:
		return &l2.SwInterfaceSetL2BridgeReply{Retval: rvBDTooBig}
	case b == nil: // VPP creates the domain, with all features except ARP termination
		b = c.l2.newBridge(q.BdID, featFlood|featUuFlood|featForward|featLearn)
	}
	return &l2.SwInterfaceSetL2BridgeReply{Retval: c.join(i, b, q.PortType, q.Shg)}
}

func (st *state) join(i *iface, b *bridge, port l2.L2PortType, shg uint8) int32 {
	st.leaveL2(i)
	i.l2 = l2Port{bd: b}
	switch {
	case port == l2.L2_API_PORT_TYPE_BVI && b.bvi != nil:
		return rvHasBVI // the interface is removed from layer 3 nevertheless
	case port == l2.L2_API_PORT_TYPE_BVI:
		b.bvi = i
		b.insert(i)
		st.l2.fib[macKey{b.index, i.hw.mac}] = macEntry{ifx: i.index, static: true, bvi: true}
	case port == l2.L2_API_PORT_TYPE_UU_FWD:
		b.fwd = i
		b.features |= featUuFwd
	default:
		b.insert(i)
	}
	i.l2.shg = shg
	return 0
}

// floodRank orders the members of a domain as VPP does: the BVI, ports, tunnels, and last the loopbacks, which do not receive flooded frames.
func (b *bridge) floodRank(i *iface) int {
	switch {
	case b.bvi == i:
		return 0
	case i.hw.devType == "Loopback" || i.hw.devType == "BVI":
		return noFlood
	case i.hw.devType == "VXLAN":
		return 2
	}
	return 1
}

const noFlood = 3

func (b *bridge) insert(i *iface) {
	rank := b.floodRank(i)
	n := 0
	for n < len(b.members) && rank > 0 && b.floodRank(b.members[n]) <= rank {
		n++
	}
	b.members = slices.Insert(b.members, n, i)
}

// dropL2 removes a deleted interface from layer 2. If it is one half of a cross-connect, the other half is removed, too.
func (st *state) dropL2(i *iface) {
	if i.l2.xconn {
		if peer := st.iface(interface_types.InterfaceIndex(i.l2.peer)); peer != nil {
			st.backToL3(peer)
		}
	}
	if i.inL2() {
		st.backToL3(i)
	}
}

// backToL3 returns an interface to layer 3.
func (st *state) backToL3(i *iface) {
	st.leaveL2(i)
	delete(st.l2.rewrites, i.index)
}

// leaveL2 removes an interface from its bridge domain or cross-connect.
func (st *state) leaveL2(i *iface) {
	b := i.l2.bd
	i.l2 = l2Port{}
	if b == nil {
		return
	}
	b.members = slices.DeleteFunc(b.members, func(m *iface) bool { return m == i })
	if b.bvi == i {
		b.bvi = nil
		delete(st.l2.fib, macKey{b.index, i.hw.mac})
	}
	if b.fwd == i {
		b.fwd = nil
		b.features &^= featUuFwd
	}
}

// moveBVI updates the MAC table when a BVI gets another MAC.
func (st *state) moveBVI(i *iface, m mac) {
	if b := i.l2.bd; b != nil && b.bvi == i {
		delete(st.l2.fib, macKey{b.index, i.hw.mac})
		st.l2.fib[macKey{b.index, m}] = macEntry{ifx: i.index, static: true, bvi: true}
	}
}

func dumpBridges(st *state, d *dumper) {
	for id, b := range st.l2.bds {
		if id == 0 {
			continue
		}
		d.add("bridge %d %q features %#x age %d", id, b.tag, b.features&(featFlags|featUuFwd), b.macAge)
		for ip, m := range b.arp {
			d.add("bridge %d arp %s is at %s", id, ip, m)
		}
		for _, key := range b.macs(&st.l2) {
			e := st.l2.fib[key]
			if e.learned {
				continue
			}
			port := st.iface(interface_types.InterfaceIndex(e.ifx))
			shown := key.mac.String()
			if e.bvi && port != nil && port.hw.mac == key.mac && !port.hw.macReported {
				shown = "of"
			}
			d.add("bridge %d mac %s %s static %v filter %v bvi %v", id, shown, port.label(), e.static, e.filter, e.bvi)
		}
	}
}

// dumpPort adds the layer 2 and 3 state of an interface to Fake.Dump.
func (st *state) dumpPort(i *iface, d *dumper) {
	switch b := i.l2.bd; {
	case b != nil:
		d.add("bridge %d port %s shg %d bvi %v", b.id, i.label(), i.l2.shg, b.bvi == i)
	case i.l2.xconn:
		d.add("xconnect %s -> %s", i.label(), st.iface(interface_types.InterfaceIndex(i.l2.peer)).label())
	}
	if r, ok := st.l2.rewrites[i.index]; ok {
		d.add("interface %s: vlan tag rewrite %d dot1q %v tags %d %d", i.label(), r.op, r.dot1q, r.tag1, r.tag2)
	}
	for fam := range i.ip {
		if t := i.ip[fam].table; t.id != 0 {
			d.add("interface %s: ip%d table %d", i.label(), []int{4, 6}[fam], t.id)
		}
		for _, p := range i.ip[fam].addrs {
			d.add("interface %s: address %s", i.label(), p)
		}
	}
	if i.unnumbered != none {
		d.add("interface %s: unnumbered to %s", i.label(), st.iface(interface_types.InterfaceIndex(i.unnumbered)).label())
	}
	if i.link6.locks > 0 {
		local := i.link6.local.String()
		if i.link6.local == linkLocalOf(i.hw.mac) && !i.hw.macReported {
			local = "of its MAC"
		}
		d.add("interface %s: ip6 %s", i.label(), local)
	}
}
