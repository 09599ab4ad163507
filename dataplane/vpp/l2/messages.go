package l2

import (
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/l2"
)

// Messages returns all requests that the descriptors of this package send.
func Messages() []api.Message {
	return []api.Message{
		&l2.BdIPMacAddDel{}, &l2.BdIPMacDump{}, &l2.BridgeDomainAddDelV2{}, &l2.BridgeDomainDump{}, &l2.BridgeDomainSetMacAge{},
		&l2.BridgeFlags{}, &l2.L2FibTableDump{}, &l2.L2XconnectDump{}, &l2.L2fibAddDel{}, &l2.SwInterfaceSetL2Bridge{},
		&l2.SwInterfaceSetL2Xconnect{},
	}
}
