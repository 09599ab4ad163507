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
		// A bridge domain keeps the address that its BVI had when it became a member, so a change makes a new one.
		fixedMAC: true,
		mtu:      9000,
		create:   createLoopback,
		remove: func(k *Kinds, e *ifEntry, _ *vpp_interfaces.Interface, done func(error)) {
			conn.Call(k.Lane, &interfaces.DeleteLoopback{SwIfIndex: interface_types.InterfaceIndex(e.Index)},
				func(_ *interfaces.DeleteLoopbackReply, err error) { done(err) })
		},
	}
}

// createLoopback gives every loopback a hardware address of its own. VPP gives all the first ones of all nodes the same; and
// a loopback has nothing else by which it can be found when the reply to its creation was lost, before it got its tag
// (leftovers.go).
func createLoopback(k *Kinds, v *vpp_interfaces.Interface, done func(made, error)) {
	k.tryLoopback(loopbackMAC(v), 0, done)
}

func loopbackMAC(v *vpp_interfaces.Interface) ethernet_types.MacAddress {
	if v.PhysAddress != "" {
		return kit.MAC(v.PhysAddress)
	}
	sum := sha256.Sum256([]byte(v.Name))
	return ethernet_types.MacAddress{0x02, 0xfe, sum[0], sum[1], sum[2], sum[3]}
}
