package vpp

import (
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/vpp/conn"
)

const loopbackDevice = "Loopback"

func loopbackType() *ifType {
	return &ifType{
		// A bridge domain keeps the address that its BVI had when it became a member, so a change makes a new one.
		fixedMAC: true,
		mtu:      9000,
		create:   createLoopback,
		remove: func(k *kinds, e *ifEntry, _ *vpp_interfaces.Interface, done func(error)) {
			conn.Call(k.lane, &interfaces.DeleteLoopback{SwIfIndex: interface_types.InterfaceIndex(e.index)},
				func(_ *interfaces.DeleteLoopbackReply, err error) { done(err) })
		},
	}
}

func createLoopback(k *kinds, v *vpp_interfaces.Interface, done func(made, error)) {
	req := &interfaces.CreateLoopbackInstance{}
	if v.PhysAddress != "" {
		req.MacAddress = mac(v.PhysAddress)
	}
	conn.Call(k.lane, req, func(r *interfaces.CreateLoopbackInstanceReply, err error) {
		if err != nil {
			done(made{}, err)
			return
		}
		done(made{index: uint32(r.SwIfIndex), hasMAC: true}, nil)
	})
}
