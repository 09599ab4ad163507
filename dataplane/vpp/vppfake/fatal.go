package vppfake

import (
	"net/netip"

	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/sr"
)

// registerFatal registers requests on which VPP 25.10 aborts. The fake rejects all other uses of these requests, so there are no policies that
// the other sr_policy messages could find.
func registerFatal(t *table) {
	on(t, writes, func(c *call, q *sr.SrPolicyAdd) *sr.SrPolicyAddReply {
		return &sr.SrPolicyAddReply{Retval: c.addPolicy(q, q.BsidAddr, q.FibTable, q.Sids.NumSids)}
	})
	on(t, writes, func(c *call, q *sr.SrPolicyAddV2) *sr.SrPolicyAddV2Reply {
		return &sr.SrPolicyAddV2Reply{Retval: c.addPolicy(q, q.BsidAddr, q.FibTable, q.Sids.NumSids)}
	})
	on(t, writes, func(*call, *sr.SrPolicyMod) *sr.SrPolicyModReply { return &sr.SrPolicyModReply{Retval: rvUnspecified} })
	on(t, writes, func(*call, *sr.SrPolicyModV2) *sr.SrPolicyModV2Reply {
		return &sr.SrPolicyModV2Reply{Retval: rvUnspecified}
	})
	on(t, writes, func(*call, *sr.SrPolicyDel) *sr.SrPolicyDelReply { return &sr.SrPolicyDelReply{Retval: rvUnspecified} })
}

// addPolicy checks the table before it crashes because of the empty list.
func (c *call) addPolicy(q message, bsid ip_types.IP6Address, table uint32, sids uint8) int32 {
	if table == none {
		table = 0
	}
	t := c.ip.tables[ip6][table]
	if t == nil {
		return rvSyscall3
	}
	if t.entries[netip.PrefixFrom(netip.AddrFrom16(bsid), 128)] != nil {
		return rvSyscall2
	}
	if sids == 0 { // in insertion mode VPP reads beyond the empty list and may live
		c.die(q.GetMessageName() + " without SIDs")
		return 0
	}
	c.refuse(q, "no segment routing in the fake")
	return rvUnimplemented
}
