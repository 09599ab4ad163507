package vppfake

import (
	"net/netip"

	"go.fd.io/govpp/binapi/l2"
)

// registerARPTermination registers the table of addresses for which a bridge domain answers ARP and ND itself.
func registerARPTermination(t *table) {
	on(t, writes, setBridgeARP)
	dump(t, dumpBridgeARP)
}

func setBridgeARP(c *call, q *l2.BdIPMacAddDel) *l2.BdIPMacAddDelReply {
	b := c.l2.bds[q.Entry.BdID]
	ip := netAddr(q.Entry.IP)
	var rv int32
	switch {
	case q.Entry.BdID == 0:
		rv = rvBDNotModifiable
	case b == nil:
		rv = rvNoSuchEntry
	case q.IsAdd:
		if b.arp == nil {
			b.arp = map[netip.Addr]mac{}
		}
		b.arp[ip] = q.Entry.Mac
	default:
		if m, ok := b.arp[ip]; !ok || m != q.Entry.Mac {
			rv = rvUnspecified
			break
		}
		delete(b.arp, ip)
	}
	return &l2.BdIPMacAddDelReply{Retval: rv}
}

func dumpBridgeARP(c *call, q *l2.BdIPMacDump, send func(*l2.BdIPMacDetails)) {
	for _, id := range sortedKeys(c.l2.bds) {
		if q.BdID != none && q.BdID != id {
			continue
		}
		for ip, m := range c.l2.bds[id].arp {
			send(&l2.BdIPMacDetails{Entry: l2.BdIPMac{BdID: id, IP: apiAddress(ip), Mac: m}})
		}
	}
}

// terminates reports whether the bridge domain answers this packet itself, which walks do not model.
func (b *bridge) terminates(p Packet) bool {
	if !b.has(featArpTerm) || p.ARP == nil || p.ARP.Reply {
		return false
	}
	_, ok := b.arp[p.ARP.TargetIP]
	return ok
}
