package l3

import (
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/arp"
	"go.fd.io/govpp/binapi/fib"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_neighbor"
)

// Messages returns all requests that the descriptors of this package send.
func Messages() []api.Message {
	return []api.Message{
		&arp.ProxyArpAddDel{}, &arp.ProxyArpDump{}, &arp.ProxyArpIntfcDump{}, &arp.ProxyArpIntfcEnableDisable{},
		&fib.FibSourceDump{}, &ip.IPRouteV2Dump{}, &ip.IPRouteAddDelV2{}, &ip.IPTableAddDelV2{}, &ip.IPTableDump{}, &ip.SetIPFlowHashV3{},
		&ip_neighbor.IPNeighborAddDel{}, &ip_neighbor.IPNeighborConfig{}, &ip_neighbor.IPNeighborConfigGet{},
		&ip_neighbor.IPNeighborDump{},
	}
}
