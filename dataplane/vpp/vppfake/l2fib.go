package vppfake

import (
	"slices"
	"strings"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
)

func l2fibAddDel(c *call, q *l2.L2fibAddDel) *l2.L2fibAddDelReply {
	b := c.l2.bds[q.BdID]
	if b == nil {
		return &l2.L2fibAddDelReply{Retval: rvNoSuchEntry}
	}
	key := macKey{b.index, q.Mac}
	if !q.IsAdd {
		e, ok := c.l2.fib[key]
		if !ok || q.SwIfIndex != 0 && e.ifx != uint32(q.SwIfIndex) { // 0: any interface
			return &l2.L2fibAddDelReply{Retval: rvNoSuchEntry}
		}
		delete(c.l2.fib, key)
		return &l2.L2fibAddDelReply{}
	}
	if q.FilterMac {
		c.l2.fib[key] = macEntry{ifx: none, static: true, filter: true}
		return &l2.L2fibAddDelReply{}
	}
	if i := c.iface(q.SwIfIndex); i == nil || i.l2.bd == nil {
		return &l2.L2fibAddDelReply{Retval: rvInvalidSwIfIndex}
	}
	c.l2.fib[key] = macEntry{ifx: uint32(q.SwIfIndex), static: q.StaticMac, bvi: q.BviMac}
	return &l2.L2fibAddDelReply{}
}

func l2fibDump(c *call, q *l2.L2FibTableDump, send func(*l2.L2FibTableDetails)) {
	for _, id := range sortedKeys(c.l2.bds) {
		b := c.l2.bds[id]
		if q.BdID != none && q.BdID != id {
			continue
		}
		for _, key := range b.macs(&c.l2) {
			e := c.l2.fib[key]
			send(&l2.L2FibTableDetails{BdID: id, Mac: key.mac, SwIfIndex: interface_types.InterfaceIndex(e.ifx),
				StaticMac: e.static, FilterMac: e.filter, BviMac: e.bvi})
		}
	}
}

// macs returns the rows of the MAC table that belong to the domain.
func (b *bridge) macs(s *l2State) []macKey {
	var out []macKey
	for key := range s.fib {
		if key.bd == b.index {
			out = append(out, key)
		}
	}
	slices.SortFunc(out, func(x, y macKey) int { return strings.Compare(x.mac.String(), y.mac.String()) })
	return out
}

func l2fibFlushBD(c *call, q *l2.L2fibFlushBd) *l2.L2fibFlushBdReply {
	b := c.l2.bds[q.BdID]
	if b == nil {
		return &l2.L2fibFlushBdReply{Retval: rvNoSuchEntry}
	}
	for _, key := range b.macs(&c.l2) {
		if !c.l2.fib[key].static {
			delete(c.l2.fib, key)
		}
	}
	return &l2.L2fibFlushBdReply{}
}

func registerXconnect(t *table) {
	on(t, writes, setXconnect)
	dump(t, func(c *call, _ *l2.L2XconnectDump, send func(*l2.L2XconnectDetails)) {
		for _, i := range c.live() {
			if i.l2.xconn {
				send(&l2.L2XconnectDetails{RxSwIfIndex: indexOf(i), TxSwIfIndex: interface_types.InterfaceIndex(i.l2.peer)})
			}
		}
	})
}

func setXconnect(c *call, q *l2.SwInterfaceSetL2Xconnect) *l2.SwInterfaceSetL2XconnectReply {
	i, peer := c.iface(q.RxSwIfIndex), c.iface(q.TxSwIfIndex)
	if i == nil || q.Enable && peer == nil {
		return &l2.SwInterfaceSetL2XconnectReply{Retval: rvInvalidSwIfIndex}
	}
	if !q.Enable {
		c.backToL3(i)
		return &l2.SwInterfaceSetL2XconnectReply{}
	}
	c.leaveL2(i)
	i.l2 = l2Port{xconn: true, peer: peer.index}
	return &l2.SwInterfaceSetL2XconnectReply{}
}
