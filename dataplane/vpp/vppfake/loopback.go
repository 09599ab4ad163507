package vppfake

import (
	"fmt"
	"slices"

	interfaces_api "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
)

// maxLoopback is LOOPBACK_MAX_INSTANCE.
const maxLoopback = 16 * 1024

func registerLoopbacks(t *table) {
	on(t, writes, func(c *call, q *interfaces_api.CreateLoopback) *interfaces_api.CreateLoopbackReply {
		rv, index := c.createLoopback(q.MacAddress, false, 0)
		return &interfaces_api.CreateLoopbackReply{Retval: rv, SwIfIndex: index}
	})
	on(t, writes, func(c *call, q *interfaces_api.CreateLoopbackInstance) *interfaces_api.CreateLoopbackInstanceReply {
		rv, index := c.createLoopback(q.MacAddress, q.IsSpecified, q.UserInstance)
		return &interfaces_api.CreateLoopbackInstanceReply{Retval: rv, SwIfIndex: index}
	})
	on(t, writes, deleteLoopback)
	on(t, writes, createBVI)
	on(t, writes, deleteBVI)
}

func (st *state) createLoopback(m mac, specified bool, instance uint32) (rv int32, index interface_types.InterfaceIndex) {
	switch {
	case !specified:
		instance = st.loops.lowest()
	case instance >= maxLoopback || !st.loops.take(instance):
		return rvRegistration, interface_types.InterfaceIndex(none)
	}
	reported := m != (mac{})
	if !reported {
		m = mac{0xde, 0xad, 0, 0, 0, byte(instance)}
	}
	i := st.create(&iface{name: fmt.Sprintf("loop%d", instance), hw: &hardware{
		devType: "Loopback", mac: m, macReported: reported, ethernet: true,
		driver: driver{linkFollowsAdmin: true, remove: func(st *state, _ *iface) { st.loops.free(instance) }},
	}})
	return 0, interface_types.InterfaceIndex(i.index)
}

// deleteLoopback deletes the loopback to which the index belongs: given a sub-interface, VPP deletes the parent.
func deleteLoopback(c *call, q *interfaces_api.DeleteLoopback) *interfaces_api.DeleteLoopbackReply {
	i := c.iface(q.SwIfIndex)
	if i == nil || i.hw.devType != "Loopback" {
		return &interfaces_api.DeleteLoopbackReply{Retval: rvInvalidSwIfIndex}
	}
	c.delete(i.hw.owner)
	return &interfaces_api.DeleteLoopbackReply{}
}

func createBVI(c *call, q *l2.BviCreate) *l2.BviCreateReply {
	instance := q.UserInstance
	switch {
	case instance == none:
		instance = c.l2.bvis.lowest()
	case !c.l2.bvis.take(instance):
		return &l2.BviCreateReply{Retval: rvRegistration, SwIfIndex: interface_types.InterfaceIndex(none)}
	}
	m, reported := q.Mac, q.Mac != (mac{})
	if !reported {
		m = mac{0xb0, 0xb0, 0, 0, 0, byte(instance)}
	}
	i := c.create(&iface{name: fmt.Sprintf("bvi%d", instance), hw: &hardware{
		devType: "BVI", mac: m, macReported: reported, ethernet: true,
		driver: driver{linkFollowsAdmin: true, remove: func(st *state, _ *iface) { st.l2.bvis.free(instance) }},
	}})
	return &l2.BviCreateReply{SwIfIndex: interface_types.InterfaceIndex(i.index)}
}

func deleteBVI(c *call, q *l2.BviDelete) *l2.BviDeleteReply {
	i := c.iface(q.SwIfIndex)
	if i == nil || i.hw.devType != "BVI" {
		return &l2.BviDeleteReply{Retval: rvInvalidSwIfIndex}
	}
	c.delete(i.hw.owner)
	return &l2.BviDeleteReply{}
}

func registerSubInterfaces(t *table) {
	on(t, writes, createVlanSubif)
	on(t, writes, createSubif)
	on(t, writes, deleteSubif)
}

func createVlanSubif(c *call, q *interfaces_api.CreateVlanSubif) *interfaces_api.CreateVlanSubifReply {
	i := c.iface(q.SwIfIndex)
	rv, index := rvInvalidSwIfIndex, none
	switch {
	case i == nil:
	case q.VlanID == 0 || q.VlanID > 4095:
		rv = rvInvalidVlan
	default:
		rv, index = c.createSub(i.hw.owner, subInterface{id: q.VlanID, outer: uint16(q.VlanID),
			flags: interface_types.SUB_IF_API_FLAG_ONE_TAG | interface_types.SUB_IF_API_FLAG_EXACT_MATCH})
	}
	return &interfaces_api.CreateVlanSubifReply{Retval: rv, SwIfIndex: interface_types.InterfaceIndex(index)}
}

func createSubif(c *call, q *interfaces_api.CreateSubif) *interfaces_api.CreateSubifReply {
	i := c.iface(q.SwIfIndex)
	rv, index := rvInvalidSwIfIndex, none
	if i != nil {
		rv, index = c.createSub(i.hw.owner, subInterface{id: q.SubID, outer: q.OuterVlanID, inner: q.InnerVlanID, flags: q.SubIfFlags})
	}
	return &interfaces_api.CreateSubifReply{Retval: rv, SwIfIndex: interface_types.InterfaceIndex(index)}
}

func (st *state) createSub(owner *iface, sub subInterface) (rv int32, index uint32) {
	if slices.ContainsFunc(st.live(), func(i *iface) bool { return i.hw == owner.hw && i.sub != nil && i.sub.id == sub.id }) {
		return rvVlanExists, none
	}
	i := st.create(&iface{name: fmt.Sprintf("%s.%d", owner.name, sub.id), hw: owner.hw, sub: &sub})
	return 0, i.index
}

func deleteSubif(c *call, q *interfaces_api.DeleteSubif) *interfaces_api.DeleteSubifReply {
	i := c.iface(q.SwIfIndex)
	switch {
	case i == nil:
		return &interfaces_api.DeleteSubifReply{Retval: rvInvalidSwIfIndex}
	case i.sub == nil:
		return &interfaces_api.DeleteSubifReply{Retval: rvInvalidSubif}
	}
	c.delete(i)
	return &interfaces_api.DeleteSubifReply{}
}
