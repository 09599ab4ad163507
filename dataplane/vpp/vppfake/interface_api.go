package vppfake

import (
	"fmt"
	"strings"

	interfaces_api "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
)

func registerInterfaces(t *table) {
	dump(t, swInterfaceDump)
	on(t, writes, setFlags)
	on(t, writes, setTag)
	on(t, writes, setMTU)
	on(t, writes, setHwMTU)
	on(t, writes, setMAC)
	on(t, reads, getMAC)
	on(t, writes, setPromisc)
	on(t, reads, wantEvents)
	event[interfaces_api.SwInterfaceEvent](t)
}

func swInterfaceDump(c *call, q *interfaces_api.SwInterfaceDump, send func(*interfaces_api.SwInterfaceDetails)) {
	if !q.NameFilterValid && uint32(q.SwIfIndex) != none && q.SwIfIndex != 0 {
		if i := c.iface(q.SwIfIndex); i != nil {
			send(c.details(i))
		}
		return
	}
	filter := strings.ToLower(strings.TrimRight(q.NameFilter, "\x00"))
	for _, i := range c.live() {
		if q.NameFilterValid && !strings.Contains(strings.ToLower(i.name), filter) {
			continue
		}
		send(c.details(i))
	}
}

func (st *state) details(i *iface) *interfaces_api.SwInterfaceDetails {
	d := &interfaces_api.SwInterfaceDetails{
		SwIfIndex:        interface_types.InterfaceIndex(i.index),
		SupSwIfIndex:     i.hw.owner.index,
		Flags:            i.status(),
		LinkMtu:          i.hw.linkMTU,
		Mtu:              i.mtu[:],
		InterfaceName:    i.name,
		InterfaceDevType: i.hw.devType,
		Tag:              i.tag,
	}
	st.l2.rewrites[i.index].describe(d)
	if s := i.sub; s != nil {
		d.Type = interface_types.IF_API_TYPE_SUB
		if s.pipe {
			d.Type = interface_types.IF_API_TYPE_PIPE
		}
		d.SubID = s.id
		d.SubOuterVlanID, d.SubInnerVlanID = s.outer, s.inner
		d.SubIfFlags = s.flags & interface_types.SUB_IF_API_FLAG_MASK_VNET
		d.SubNumberOfTags = s.tags()
		return d
	}
	if i.hw.ethernet {
		d.L2Address = i.hw.mac
	}
	return d
}

func (s *subInterface) tags() uint8 {
	var n uint8
	if s.flags&interface_types.SUB_IF_API_FLAG_ONE_TAG != 0 {
		n++
	}
	if s.flags&interface_types.SUB_IF_API_FLAG_TWO_TAGS != 0 {
		n += 2
	}
	return n
}

func setFlags(c *call, q *interfaces_api.SwInterfaceSetFlags) *interfaces_api.SwInterfaceSetFlagsReply {
	i := c.iface(q.SwIfIndex)
	if i == nil {
		return &interfaces_api.SwInterfaceSetFlagsReply{Retval: rvInvalidSwIfIndex}
	}
	if !c.setAdmin(i, q.Flags&interface_types.IF_STATUS_API_FLAG_ADMIN_UP != 0) {
		return &interfaces_api.SwInterfaceSetFlagsReply{Retval: rvUnspecified}
	}
	return &interfaces_api.SwInterfaceSetFlagsReply{}
}

func setTag(c *call, q *interfaces_api.SwInterfaceTagAddDel) *interfaces_api.SwInterfaceTagAddDelReply {
	i := c.iface(q.SwIfIndex)
	switch {
	case i == nil:
		return &interfaces_api.SwInterfaceTagAddDelReply{Retval: rvInvalidSwIfIndex}
	case !q.IsAdd:
		i.tag = ""
	case q.Tag == "":
		return &interfaces_api.SwInterfaceTagAddDelReply{Retval: rvInvalidValue}
	default:
		i.tag = q.Tag[:min(len(q.Tag), 63)]
	}
	return &interfaces_api.SwInterfaceTagAddDelReply{}
}

func setMTU(c *call, q *interfaces_api.SwInterfaceSetMtu) *interfaces_api.SwInterfaceSetMtuReply {
	i := c.iface(q.SwIfIndex)
	if i == nil {
		return &interfaces_api.SwInterfaceSetMtuReply{Retval: rvInvalidSwIfIndex}
	}
	copy(i.mtu[:], q.Mtu)
	return &interfaces_api.SwInterfaceSetMtuReply{}
}

func setHwMTU(c *call, q *interfaces_api.HwInterfaceSetMtu) *interfaces_api.HwInterfaceSetMtuReply {
	i := c.iface(q.SwIfIndex)
	var rv int32
	switch {
	case i == nil:
		rv = rvInvalidSwIfIndex
	case i.sub != nil:
		rv = rvInvalidValue
	case !i.hw.ethernet:
		rv = rvFeatureDisabled
	case i.hw.linkMTU == q.Mtu:
	case !i.hw.driver.setMTU:
		rv = rvUnsupported
	default:
		i.hw.linkMTU = q.Mtu
		for _, s := range c.live() {
			if s.hw == i.hw {
				s.mtu[0] = uint32(q.Mtu)
			}
		}
	}
	return &interfaces_api.HwInterfaceSetMtuReply{Retval: rv}
}

func setMAC(c *call, q *interfaces_api.SwInterfaceSetMacAddress) *interfaces_api.SwInterfaceSetMacAddressReply {
	i := c.iface(q.SwIfIndex)
	switch {
	case i == nil:
		return &interfaces_api.SwInterfaceSetMacAddressReply{Retval: rvInvalidSwIfIndex}
	case !i.hw.ethernet || i.sub != nil:
		return &interfaces_api.SwInterfaceSetMacAddressReply{Retval: rvUnimplemented}
	}
	c.moveBVI(i, q.MacAddress)
	i.hw.mac, i.hw.macReported = q.MacAddress, true
	return &interfaces_api.SwInterfaceSetMacAddressReply{}
}

func getMAC(c *call, q *interfaces_api.SwInterfaceGetMacAddress) *interfaces_api.SwInterfaceGetMacAddressReply {
	i := c.iface(q.SwIfIndex)
	if i == nil {
		return &interfaces_api.SwInterfaceGetMacAddressReply{Retval: rvInvalidSwIfIndex}
	}
	return &interfaces_api.SwInterfaceGetMacAddressReply{MacAddress: i.hw.mac}
}

func setPromisc(c *call, q *interfaces_api.SwInterfaceSetPromisc) *interfaces_api.SwInterfaceSetPromiscReply {
	i := c.iface(q.SwIfIndex)
	var rv int32
	switch {
	case i == nil:
		rv = rvInvalidSwIfIndex
	case !i.hw.ethernet:
		rv = rvInvalidValue
	case !i.hw.driver.flags:
		rv = rvUnspecified // the ~0 of a driver without the callback; VPP returns it for af_packet and loopbacks
	}
	return &interfaces_api.SwInterfaceSetPromiscReply{Retval: rv}
}

func wantEvents(c *call, q *interfaces_api.WantInterfaceEvents) *interfaces_api.WantInterfaceEventsReply {
	_, wants := c.ifs.watchers[c.session]
	switch {
	case q.EnableDisable != 0 && wants || q.EnableDisable == 0 && !wants:
		return &interfaces_api.WantInterfaceEventsReply{Retval: rvRegistration}
	case q.EnableDisable != 0:
		c.ifs.watchers[c.session] = q.PID
	default:
		delete(c.ifs.watchers, c.session)
	}
	return &interfaces_api.WantInterfaceEventsReply{}
}

// describeConfig returns the configuration of an interface, for Fake.Dump.
func (i *iface) describeConfig() []string {
	var parts []string
	if i.hw.ethernet && i.sub == nil && (i.mtu != [4]uint32{9000} || i.hw.linkMTU != 9000) {
		parts = append(parts, fmt.Sprintf("mtu %v link-mtu %d", i.mtu, i.hw.linkMTU))
	}
	if i.sub != nil {
		parts = append(parts, fmt.Sprintf("of %s vlan %d.%d mtu %v", i.hw.owner.label(), i.sub.outer, i.sub.inner, i.mtu))
	}
	return parts
}
