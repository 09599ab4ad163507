package iface

import (
	"crypto/sha256"

	"go.fd.io/govpp/binapi/ethernet_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

const loopbackDevice = "Loopback"

func loopbackType() *ifType {
	return &ifType{
		// A bridge domain keeps the address that its BVI had when it became a member, so a change requires a new interface.
		fixedMAC: true,
		mtu:      9000,
		create:   createLoopback,
		remove: func(k *Descriptors, e *ifEntry, _ *vpp_interfaces.Interface, done func(error)) {
			conn.Call(k.Lane, &interfaces.DeleteLoopback{SwIfIndex: interface_types.InterfaceIndex(e.Index)},
				func(_ *interfaces.DeleteLoopbackReply, err error) { done(err) })
		},
	}
}

// createLoopback gives every loopback a unique hardware address. VPP gives the first loopback of every node the same
// address; and if the reply to the creation is lost before the loopback has its tag, the address is the only property by
// which the loopback can be found (leftovers.go).
func createLoopback(k *Descriptors, v *vpp_interfaces.Interface, done func(made, error)) {
	k.tryLoopback(loopbackMAC(v), 0, done)
}

func loopbackMAC(v *vpp_interfaces.Interface) ethernet_types.MacAddress {
	if v.PhysAddress != "" {
		return kit.MAC(v.PhysAddress)
	}
	sum := sha256.Sum256([]byte(v.Name))
	return ethernet_types.MacAddress{0x02, 0xfe, sum[0], sum[1], sum[2], sum[3]}
}
