package iface

import (
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/af_packet"
	"go.fd.io/govpp/binapi/dhcp"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/memif"
	"go.fd.io/govpp/binapi/pipe"
	"go.fd.io/govpp/binapi/tapv2"
	"go.fd.io/govpp/binapi/vxlan"
)

// Messages returns all requests that the descriptors of this package send.
func Messages() []api.Message {
	return []api.Message{
		&af_packet.AfPacketCreateV3{}, &af_packet.AfPacketDelete{}, &af_packet.AfPacketDump{}, &dhcp.DHCPClientConfig{},
		&dhcp.DHCPClientDump{}, &dhcp.DHCPComplEvent{}, &interfaces.CreateLoopbackInstance{}, &interfaces.DeleteLoopback{},
		&interfaces.CreateVlanSubif{}, &interfaces.DeleteSubif{}, &interfaces.HwInterfaceSetMtu{}, &interfaces.SwInterfaceSetMtu{},
		&interfaces.SwInterfaceAddDelAddress{}, &interfaces.SwInterfaceDump{}, &interfaces.SwInterfaceGetTable{},
		&interfaces.SwInterfaceRxPlacementDump{}, &interfaces.SwInterfaceSetFlags{}, &interfaces.SwInterfaceSetMacAddress{},
		&interfaces.SwInterfaceSetRxMode{}, &interfaces.SwInterfaceSetRxPlacement{}, &interfaces.SwInterfaceSetTable{},
		&interfaces.SwInterfaceSetUnnumbered{}, &interfaces.SwInterfaceTagAddDel{}, &interfaces.WantInterfaceEvents{},
		&ip.IPAddressDump{}, &ip.IPUnnumberedDump{}, &l2.L2InterfaceVlanTagRewrite{}, &memif.MemifCreateV2{}, &memif.MemifDelete{},
		&memif.MemifDump{}, &memif.MemifSocketFilenameAddDelV2{}, &memif.MemifSocketFilenameDump{}, &pipe.PipeCreate{},
		&pipe.PipeDelete{}, &pipe.PipeDump{}, &tapv2.SwInterfaceTapV2Dump{}, &tapv2.TapCreateV3{}, &tapv2.TapDeleteV2{},
		&vxlan.VxlanAddDelTunnelV3{}, &vxlan.VxlanTunnelV2Dump{},
	}
}
