package renderer

import (
	"fmt"
	"strings"
)

// ResyncEventData holds the entire state of K8s services as provided by the processor.
type ResyncEventData struct {
	// NodeIPs is a list of IP addresses of all nodes in the cluster.
	NodeIPs *IPAddresses

	// Services is a list of all currently deployed services.
	Services []*ContivService

	// FrontendIfs is the set of all interfaces that connect clients with VPP (VPP specific).
	FrontendIfs Interfaces

	// BackendIfs is the set of all interfaces that connect service backends with VPP (VPP specific).
	BackendIfs Interfaces

	// LocalNodeIPs are those of NodeIPs that belong to this node and accept traffic for node ports. It is not part of the documented API.
	LocalNodeIPs *IPAddresses
}

// NewResyncEventData returns ResyncEventData with empty sets.
func NewResyncEventData() *ResyncEventData {
	return &ResyncEventData{
		NodeIPs:      NewIPAddresses(),
		FrontendIfs:  NewInterfaces(),
		BackendIfs:   NewInterfaces(),
		LocalNodeIPs: NewIPAddresses(),
	}
}

// String converts ResyncEventData into a human-readable string.
func (red ResyncEventData) String() string {
	services := make([]string, len(red.Services))
	for i, s := range red.Services {
		services[i] = s.String()
	}
	return fmt.Sprintf("ResyncEventData <NodeIPs:%s LocalNodeIPs:%s FrontendIfs:%s BackendIfs:%s Services:[%s]>",
		orEmpty(red.NodeIPs), orEmpty(red.LocalNodeIPs), red.FrontendIfs, red.BackendIfs, strings.Join(services, ", "))
}

func orEmpty(addrs *IPAddresses) *IPAddresses {
	if addrs == nil {
		return NewIPAddresses()
	}
	return addrs
}
