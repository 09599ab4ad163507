package vppfake

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
)

// aclState is the state of the plugin acl: the lists of rules, and the lists of each interface.
type aclState struct {
	lists  map[uint32]*aclList
	free   []uint32 // indices; the one freed last is used first
	in     map[uint32][]uint32
	out    map[uint32][]uint32
	listed uint32
}

type aclList struct {
	tag   string
	rules []acl_types.ACLRule
}

func (a *aclState) start() {
	a.lists, a.in, a.out = map[uint32]*aclList{}, map[uint32][]uint32{}, map[uint32][]uint32{}
}

func registerACL(t *table) {
	on(t, writes, aclAddReplace).counted(68, 48)
	on(t, writes, aclDelete)
	on(t, writes, aclSetList)
	on(t, reads, func(c *call, _ *acl.ACLPluginGetConnTableMaxEntries) *acl.ACLPluginGetConnTableMaxEntriesReply {
		return &acl.ACLPluginGetConnTableMaxEntriesReply{ConnTableMaxEntries: c.cfg.aclSessions()}
	})
	dump(t, func(c *call, q *acl.ACLDump, send func(*acl.ACLDetails)) {
		for _, id := range slices.Sorted(maps.Keys(c.acl.lists)) {
			if q.ACLIndex == none || q.ACLIndex == id {
				l := c.acl.lists[id]
				send(&acl.ACLDetails{ACLIndex: id, Tag: l.tag, R: l.rules})
			}
		}
	})
	dump(t, func(c *call, q *acl.ACLInterfaceListDump, send func(*acl.ACLInterfaceListDetails)) {
		for n, i := range c.ifs.all {
			if id := uint32(n); i != nil && (uint32(q.SwIfIndex) == none || uint32(q.SwIfIndex) == id) {
				send(&acl.ACLInterfaceListDetails{SwIfIndex: interface_types.InterfaceIndex(id), NInput: uint8(len(c.acl.in[id])),
					Acls: slices.Concat(c.acl.in[id], c.acl.out[id])})
			}
		}
	})
}

// aclSessions returns the number of sessions that startup.conf allows.
func (c Config) aclSessions() uint64 {
	if c.ACLSessions == 0 {
		return 1024
	}
	return c.ACLSessions
}

func aclAddReplace(c *call, q *acl.ACLAddReplace) *acl.ACLAddReplaceReply {
	id := q.ACLIndex
	if rv := aclCheck(q); rv != 0 {
		return &acl.ACLAddReplaceReply{ACLIndex: id, Retval: rv}
	}
	if id != none && c.acl.lists[id] == nil {
		return &acl.ACLAddReplaceReply{ACLIndex: id, Retval: rvNoSuchEntry}
	}
	if id == none {
		if n := len(c.acl.free); n > 0 {
			id, c.acl.free = c.acl.free[n-1], c.acl.free[:n-1]
		} else {
			id = c.acl.listed
			c.acl.listed++
		}
	}
	rules := make([]acl_types.ACLRule, len(q.R))
	for i, r := range q.R {
		r.SrcPrefix, r.DstPrefix = aclPrefix(r.SrcPrefix), aclPrefix(r.DstPrefix)
		rules[i] = r
	}
	c.acl.lists[id] = &aclList{tag: strings.TrimRight(q.Tag, "\x00"), rules: rules}
	return &acl.ACLAddReplaceReply{ACLIndex: id}
}

// aclPrefix returns a prefix as VPP returns it: only the bytes of its family are kept.
func aclPrefix(p ip_types.Prefix) ip_types.Prefix {
	return ip_types.Prefix{Address: apiAddress(netAddr(p.Address)), Len: p.Len}
}

func aclCheck(q *acl.ACLAddReplace) int32 {
	if len(strings.TrimRight(q.Tag, "\x00")) >= 64 {
		return rvInvalidValue
	}
	bad := func(p ip_types.Prefix) bool {
		switch p.Address.Af {
		case ip_types.ADDRESS_IP4:
			return p.Len > 32
		case ip_types.ADDRESS_IP6:
			return p.Len > 128
		}
		return true
	}
	for _, r := range q.R {
		switch {
		case bad(r.SrcPrefix):
			return int32(api.INVALID_SRC_ADDRESS)
		case bad(r.DstPrefix):
			return int32(api.INVALID_DST_ADDRESS)
		case r.SrcPrefix.Address.Af != r.DstPrefix.Address.Af:
			return int32(api.INVALID_SRC_ADDRESS)
		case r.SrcportOrIcmptypeFirst > r.SrcportOrIcmptypeLast, r.DstportOrIcmpcodeFirst > r.DstportOrIcmpcodeLast:
			return int32(api.INVALID_VALUE_2)
		}
	}
	return 0
}

func aclDelete(c *call, q *acl.ACLDel) *acl.ACLDelReply {
	if c.acl.lists[q.ACLIndex] == nil {
		return &acl.ACLDelReply{Retval: rvNoSuchEntry}
	}
	used := func(by map[uint32][]uint32) bool {
		for _, ids := range by {
			if slices.Contains(ids, q.ACLIndex) {
				return true
			}
		}
		return false
	}
	switch {
	case used(c.acl.in):
		return &acl.ACLDelReply{Retval: int32(api.ACL_IN_USE_INBOUND)}
	case used(c.acl.out):
		return &acl.ACLDelReply{Retval: int32(api.ACL_IN_USE_OUTBOUND)}
	}
	delete(c.acl.lists, q.ACLIndex)
	c.acl.free = append(c.acl.free, q.ACLIndex)
	return &acl.ACLDelReply{}
}

// aclSetList sets the ACLs of an interface. For an ACL that is listed twice VPP returns 1 or an error, depending on the direction, and applies
// the other direction.
func aclSetList(c *call, q *acl.ACLInterfaceSetACLList) *acl.ACLInterfaceSetACLListReply {
	if c.iface(q.SwIfIndex) == nil {
		return &acl.ACLInterfaceSetACLListReply{Retval: rvInvalidSwIfIndex}
	}
	for _, id := range q.Acls {
		if c.acl.lists[id] == nil {
			return &acl.ACLInterfaceSetACLListReply{Retval: rvNoSuchEntry}
		}
	}
	twice := func(ids []uint32) bool {
		sorted := slices.Sorted(slices.Values(ids))
		return len(slices.Compact(sorted)) < len(ids)
	}
	n := min(int(q.NInput), len(q.Acls))
	if twice(q.Acls[n:]) {
		return &acl.ACLInterfaceSetACLListReply{Retval: 1}
	}
	c.acl.out[uint32(q.SwIfIndex)] = slices.Clone(q.Acls[n:])
	if twice(q.Acls[:n]) {
		return &acl.ACLInterfaceSetACLListReply{Retval: 1}
	}
	c.acl.in[uint32(q.SwIfIndex)] = slices.Clone(q.Acls[:n])
	return &acl.ACLInterfaceSetACLListReply{}
}

func (st *state) dropACLs(i *iface) {
	delete(st.acl.in, i.index)
	delete(st.acl.out, i.index)
}

// aclLets reports whether the ACLs of an interface for one direction allow a packet. Without ACLs every packet is allowed; a packet that
// matches no rule is dropped.
func (w *walk) aclLets(ids []uint32, i *iface, p *Packet) bool {
	if len(ids) == 0 {
		return true
	}
	for _, id := range ids {
		for n, r := range w.acl.lists[id].rules {
			if !aclMatches(r, p) {
				continue
			}
			if r.IsPermit == acl_types.ACL_ACTION_API_PERMIT_REFLECT {
				w.unknown("reflecting rule %d of ACL %d on %s", n, id, i.label())
				return false
			}
			if r.IsPermit == acl_types.ACL_ACTION_API_DENY {
				w.drop("denied by rule %d of ACL %q on %s", n, w.acl.lists[id].tag, i.label())
				return false
			}
			return true
		}
	}
	w.drop("no ACL on %s lets it through", i.label())
	return false
}

func aclMatches(r acl_types.ACLRule, p *Packet) bool {
	in := func(prefix ip_types.Prefix, a netip.Addr) bool {
		return netip.PrefixFrom(netAddr(prefix.Address), int(prefix.Len)).Contains(a)
	}
	if !in(r.SrcPrefix, p.Src) || !in(r.DstPrefix, p.Dst) {
		return false
	}
	if r.Proto == 0 {
		return true
	}
	if uint8(r.Proto) != p.Proto {
		return false
	}
	from, to := p.SrcPort, p.DstPort
	if p.Proto == ProtoICMP || p.Proto == ProtoICMPv6 {
		from, to = p.icmpType(), 0
		if p.Error != nil {
			to = uint16(p.Error.Code)
		}
	}
	if from < r.SrcportOrIcmptypeFirst || from > r.SrcportOrIcmptypeLast || to < r.DstportOrIcmpcodeFirst ||
		to > r.DstportOrIcmpcodeLast {
		return false
	}
	return p.Proto != ProtoTCP || p.tcpFlags()&r.TCPFlagsMask == r.TCPFlagsValue
}

// icmpType returns the type of an ICMP error, an echo request, or an echo reply.
func (p *Packet) icmpType() uint16 {
	switch {
	case p.Error != nil:
		return uint16(p.Error.Type)
	case p.Proto == ProtoICMP && p.EchoReply:
		return 0
	case p.Proto == ProtoICMP:
		return 8
	case p.EchoReply:
		return 129
	}
	return 128
}

func dumpACL(st *state, d *dumper) {
	for _, l := range st.acl.lists {
		d.add("acl %q %v", l.tag, l.rules)
	}
	tags := func(ids []uint32) (out []string) {
		for _, id := range ids {
			out = append(out, st.acl.lists[id].tag)
		}
		return out
	}
	for what, by := range map[string]map[uint32][]uint32{"in": st.acl.in, "out": st.acl.out} {
		for ifx, ids := range by {
			if i := st.ifs.all[ifx]; i != nil && len(ids) > 0 {
				d.add("acls %s of %s %q", what, i.label(), tags(ids))
			}
		}
	}
}
