package vppfake

import (
	interfaces_api "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
)

// tagRewrite is the change of the VLAN tags of frames received on an interface; frames that leave get the reverse change. VPP keys it by index,
// until the interface is removed from layer 2: an interface that never was in layer 2 leaves it to the next interface with its index.
type tagRewrite struct {
	op         uint32
	dot1q      bool // of the first tag that is pushed
	tag1, tag2 uint16
}

// tagCounts returns how many tags an operation, given by its number, removes and adds.
func tagCounts(op uint32) (pop, push int, ok bool) {
	counts := [...][2]int{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {2, 0}, {1, 1}, {1, 2}, {2, 1}, {2, 2}}
	if uint64(op) >= uint64(len(counts)) {
		return 0, 0, false
	}
	return counts[op][0], counts[op][1], true
}

func registerTagRewrite(t *table) { on(t, writes, setTagRewrite) }

func setTagRewrite(c *call, q *l2.L2InterfaceVlanTagRewrite) *l2.L2InterfaceVlanTagRewriteReply {
	i := c.iface(q.SwIfIndex)
	pop, push, known := tagCounts(q.VtrOp)
	var rv int32
	switch {
	case i == nil:
		rv = rvInvalidSwIfIndex
	case !known:
		rv = rvInvalidValue
	case !i.hw.ethernet:
		rv = rvInvalidInterface
	case pop > i.fixedTags(): // the operation stays unchanged, its tags are lost
		rv = rvVlanTagCount
		if old, ok := c.l2.rewrites[i.index]; ok {
			c.l2.rewrites[i.index] = tagRewrite{op: old.op}
		}
	case pop+push == 0:
		delete(c.l2.rewrites, i.index)
	default:
		r := tagRewrite{op: q.VtrOp}
		if push > 0 {
			r.dot1q, r.tag1 = q.PushDot1q != 0, uint16(q.Tag1)
		}
		if push > 1 {
			r.tag2 = uint16(q.Tag2)
		}
		c.l2.rewrites[i.index] = r
	}
	return &l2.L2InterfaceVlanTagRewriteReply{Retval: rv}
}

// fixedTags returns the minimum number of tags of all frames of the interface.
func (i *iface) fixedTags() int {
	if i.sub == nil {
		return 0
	}
	has := func(flag interface_types.SubIfFlags) bool { return i.sub.flags&flag != 0 }
	switch {
	case has(interface_types.SUB_IF_API_FLAG_NO_TAGS), has(interface_types.SUB_IF_API_FLAG_OUTER_VLAN_ID_ANY):
		return 0
	case has(interface_types.SUB_IF_API_FLAG_ONE_TAG):
		return 1
	case !has(interface_types.SUB_IF_API_FLAG_TWO_TAGS):
		return 0
	case has(interface_types.SUB_IF_API_FLAG_INNER_VLAN_ID_ANY):
		return 1
	}
	return 2
}

// describe adds the rewriting to the details of an interface.
func (r tagRewrite) describe(d *interfaces_api.SwInterfaceDetails) {
	d.VtrOp, d.VtrTag1, d.VtrTag2 = r.op, uint32(r.tag1), uint32(r.tag2)
	if r.dot1q {
		d.VtrPushDot1q = 1
	}
}

// keepsTags reports whether the VLAN tags of an interface's frames stay unchanged. Walks do not model changes of tags.
func (w *walk) keepsTags(i *iface) bool {
	if r, ok := w.l2.rewrites[i.index]; ok {
		w.unknown("VLAN tag rewriting %d on %s", r.op, i.label())
		return false
	}
	return true
}
