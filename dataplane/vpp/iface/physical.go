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

// physicalType returns the type of an interface that VPP creates itself, from its start-up configuration: a NIC. It has
// VPP's name. It is not made but marked, and when it is no longer ours, its previous state is restored.
func physicalType() *ifType {
	return &ifType{create: adoptPhysical, remove: releasePhysical}
}

func adoptPhysical(k *Descriptors, v *vpp_interfaces.Interface, done func(made, error)) {
	var found *interfaces.SwInterfaceDetails
	req := &interfaces.SwInterfaceDump{
		SwIfIndex: interface_types.InterfaceIndex(kit.None), NameFilterValid: true, NameFilter: v.Name,
	}
	conn.Dump(k.Lane, req, func(d *interfaces.SwInterfaceDetails) {
		if d.InterfaceName == v.Name && d.SwIfIndex != 0 { // the filter also matches parts of names
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

// foreignTag returns the tag unless it is ours.
func foreignTag(tag string) string {
	if _, ours := kit.NameOfTag(tag); ours {
		return ""
	}
	return tag
}

// releasePhysical undoes the configuration. The scheduler does not remove the items of a deleted interface one by one,
// since VPP deletes them with the interface; a NIC, however, remains.
func releasePhysical(k *Descriptors, e *ifEntry, v *vpp_interfaces.Interface, done func(error)) {
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
