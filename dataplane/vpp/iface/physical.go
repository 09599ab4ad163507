package iface

import (
	"fmt"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// physicalType is an interface that VPP has by itself, from its start-up configuration: a NIC. It goes by VPP's name. It is
// not made but marked, and when it is not ours any more, it is given back as it was.
func physicalType() *ifType {
	return &ifType{create: adoptPhysical, remove: releasePhysical}
}

func adoptPhysical(k *Kinds, v *vpp_interfaces.Interface, done func(made, error)) {
	var found *interfaces.SwInterfaceDetails
	req := &interfaces.SwInterfaceDump{
		SwIfIndex: interface_types.InterfaceIndex(kit.None), NameFilterValid: true, NameFilter: v.Name,
	}
	conn.Dump(k.Lane, req, func(d *interfaces.SwInterfaceDetails) {
		if d.InterfaceName == v.Name && d.SwIfIndex != 0 { // the filter finds parts of names, too
			found = d
		}
	}, func(err error) {
		switch {
		case err != nil:
			done(made{}, err)
		case found == nil:
			done(made{}, &absentError{fmt.Errorf("VPP has no interface of that name: check its start-up configuration")})
		default:
			done(made{index: uint32(found.SwIfIndex), restore: &nicState{
				mac: found.L2Address, mtu: found.Mtu[0], tag: foreignTag(found.Tag),
				up: found.Flags&interface_types.IF_STATUS_API_FLAG_ADMIN_UP != 0,
			}}, nil)
		}
	})
}

// foreignTag is a tag unless it is ours.
func foreignTag(tag string) string {
	if _, ours := kit.NameOfTag(tag); ours {
		return ""
	}
	return tag
}

// releasePhysical undoes what was configured. The items of an interface are not removed one by one when it goes, since VPP
// forgets those of an interface that it deletes; this one stays.
func releasePhysical(k *Kinds, e *ifEntry, v *vpp_interfaces.Interface, done func(error)) {
	index := interface_types.InterfaceIndex(e.Index)
	reqs := []api.Message{
		&interfaces.SwInterfaceSetUnnumbered{SwIfIndex: 0, UnnumberedSwIfIndex: index},
		&interfaces.SwInterfaceAddDelAddress{SwIfIndex: index, DelAll: true},
		&interfaces.SwInterfaceSetTable{SwIfIndex: index},
		&interfaces.SwInterfaceSetTable{SwIfIndex: index, IsIPv6: true},
	}
	state := nicState{}
	if e.restore != nil {
		state = *e.restore
		if v.Mtu != 0 {
			reqs = append(reqs, mtuRequest(e.Index, state.mtu))
		}
		if v.PhysAddress != "" {
			reqs = append(reqs, &interfaces.SwInterfaceSetMacAddress{SwIfIndex: index, MacAddress: state.mac})
		}
		if state.up {
			reqs = append(reqs, flagsRequest(e.Index, true))
		}
	}
	reqs = append(reqs, tagRequest(e.Index, state.tag))
	end := kit.Join(len(reqs), done)
	for _, req := range reqs {
		k.Lane.Request(req, func(_ api.Message, err error) { end(err) })
	}
}
