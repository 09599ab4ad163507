package iface

import (
	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

const vlanMax = 4094

func subIfType() *ifType {
	return &ifType{
		noMAC:    true,
		validate: validateSubIf,
		deps: func(v *vpp_interfaces.Interface, add func(string)) {
			add(nb.VppInterfaceKey(v.GetSub().GetParentName()))
		},
		create: createSubIf,
		equal:  equalSubIf,
		read:   readSubIf,
		remove: func(k *Descriptors, e *ifEntry, _ *vpp_interfaces.Interface, done func(error)) {
			conn.Call(k.Lane, &interfaces.DeleteSubif{SwIfIndex: interface_types.InterfaceIndex(e.Index)},
				func(_ *interfaces.DeleteSubifReply, err error) { done(err) })
		},
	}
}

func validateSubIf(v *vpp_interfaces.Interface, f *kit.Faults) {
	s := v.GetSub()
	f.Name("sub.parent_name", s.GetParentName())
	if s.GetParentName() == v.Name && v.Name != "" {
		f.Add("sub.parent_name", "is the interface itself")
	}
	if s.GetSubId() == 0 || s.GetSubId() > vlanMax {
		f.Add("sub.sub_id", "%d is not a VLAN between 1 and %d", s.GetSubId(), vlanMax)
	}
	if v.PhysAddress != "" {
		f.Add("phys_address", "a sub-interface has that of its parent")
	}
	if s.GetTag1() > vlanMax {
		f.Add("sub.tag1", "%d is more than %d", s.GetTag1(), vlanMax)
	}
	if s.GetTag2() > vlanMax {
		f.Add("sub.tag2", "%d is more than %d", s.GetTag2(), vlanMax)
	}
	switch op := s.GetTagRwOption(); op {
	case vpp_interfaces.SubInterface_POP2, vpp_interfaces.SubInterface_TRANSLATE21, vpp_interfaces.SubInterface_TRANSLATE22:
		f.Add("sub.tag_rw_option", "%s needs two tags, a sub-interface has one", op)
	default:
		if op < vpp_interfaces.SubInterface_DISABLED || op > vpp_interfaces.SubInterface_TRANSLATE22 {
			f.Add("sub.tag_rw_option", "%d is not known", op)
		}
	}
}

func createSubIf(k *Descriptors, v *vpp_interfaces.Interface, done func(made, error)) {
	s := v.GetSub()
	parent, ok := k.idx.IfIndex(s.GetParentName())
	if !ok {
		done(made{}, kit.MissingInterface(s.GetParentName()))
		return
	}
	finish := func(index uint32, err error) {
		rewrite := tagRewrite(index, s)
		if err != nil || rewrite == nil {
			done(made{index: index}, err)
			return
		}
		conn.Call(k.Lane, rewrite, func(_ *l2.L2InterfaceVlanTagRewriteReply, err error) {
			done(made{index: index, broken: err}, nil)
		})
	}
	req := &interfaces.CreateVlanSubif{SwIfIndex: interface_types.InterfaceIndex(parent), VlanID: s.GetSubId()}
	conn.Call(k.Lane, req, func(r *interfaces.CreateVlanSubifReply, err error) {
		switch {
		case conn.IsRetval(err, api.VLAN_ALREADY_EXISTS):
			k.adoptSubIf(parent, s.GetSubId(), err, finish)
		case err != nil:
			finish(kit.None, err)
		default:
			finish(uint32(r.SwIfIndex), nil)
		}
	})
}

func (k *Descriptors) adoptSubIf(parent, sub uint32, cause error, done func(uint32, error)) {
	found := kit.None
	all := &interfaces.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(kit.None)}
	conn.Dump(k.Lane, all, func(d *interfaces.SwInterfaceDetails) {
		if d.Type == interface_types.IF_API_TYPE_SUB && d.SupSwIfIndex == parent && d.SubID == sub {
			found = uint32(d.SwIfIndex)
		}
	}, func(err error) {
		if err == nil {
			err = k.adoptable(found, cause)
		}
		done(found, err)
	})
}

// tagRewrite returns the request that sets the VLAN tag rewriting of a sub-interface; nil if there is none.
func tagRewrite(index uint32, s *vpp_interfaces.SubInterface) *l2.L2InterfaceVlanTagRewrite {
	if s.GetTagRwOption() == vpp_interfaces.SubInterface_DISABLED {
		return nil
	}
	return &l2.L2InterfaceVlanTagRewrite{
		SwIfIndex: interface_types.InterfaceIndex(index), VtrOp: uint32(s.GetTagRwOption()),
		PushDot1q: boolTo32(s.GetPushDot1Q()), Tag1: s.GetTag1(), Tag2: s.GetTag2(),
	}
}

func boolTo32(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func equalSubIf(_ *Descriptors, desired, applied *vpp_interfaces.Interface) bool {
	d, a := desired.GetSub(), applied.GetSub()
	if d == a {
		return true
	}
	if d.GetParentName() != a.GetParentName() || d.GetSubId() != a.GetSubId() || d.GetTagRwOption() != a.GetTagRwOption() {
		return false
	}
	switch d.GetTagRwOption() {
	case vpp_interfaces.SubInterface_DISABLED, vpp_interfaces.SubInterface_POP1:
		return true // no tag is pushed
	case vpp_interfaces.SubInterface_PUSH1, vpp_interfaces.SubInterface_TRANSLATE11:
		return d.GetPushDot1Q() == a.GetPushDot1Q() && d.GetTag1() == a.GetTag1()
	}
	return d.GetPushDot1Q() == a.GetPushDot1Q() && d.GetTag1() == a.GetTag1() && d.GetTag2() == a.GetTag2()
}

func readSubIf(k *Descriptors, s *ifState, v *vpp_interfaces.Interface) bool {
	parent, ok := k.idx.NameByIndex(s.Details.SupSwIfIndex)
	if !ok {
		return false
	}
	v.Link = &vpp_interfaces.Interface_Sub{Sub: &vpp_interfaces.SubInterface{
		ParentName: parent, SubId: s.Details.SubID,
		TagRwOption: vpp_interfaces.SubInterface_TagRewriteOptions(s.Details.VtrOp),
		PushDot1Q:   s.Details.VtrPushDot1q != 0, Tag1: s.Details.VtrTag1, Tag2: s.Details.VtrTag2,
	}}
	return true
}
