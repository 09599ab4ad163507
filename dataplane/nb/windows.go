package nb

import (
	windows_hns "contiv.dev/vswitch/dataplane/nb/windows/hns"
)

// Keys of the objects of Windows' Host Network Service. The messages are ours, the grammar of the keys is vpp-agent's.
const (
	hnsPrefix          = "config/windows/hns/v1/"
	HNSNetworkPrefix   = hnsPrefix + "network/"
	HNSEndpointPrefix  = hnsPrefix + "endpoint/"
	HNSHostRoutePrefix = hnsPrefix + "host-route/"
)

// HNSNetworkKey returns the key of a network.
func HNSNetworkKey(name string) string { return clean(HNSNetworkPrefix + name) }

// HNSEndpointKey returns the key of an endpoint.
func HNSEndpointKey(name string) string { return clean(HNSEndpointPrefix + name) }

// HNSHostRouteKey returns the key of a route of the node. Host bits of the destination are cleared; a destination that cannot be parsed is
// used unchanged.
func HNSHostRouteKey(destination string) string {
	var buf keyBuf
	return cleanBytes(appendNetwork(append(buf[:0], HNSHostRoutePrefix...), destination))
}

// windowsModels returns the models of the HNS messages.
func windowsModels() []model {
	return []model{
		named(HNSNetworkPrefix, func(m *windows_hns.Network) string { return HNSNetworkKey(m.GetName()) }),
		named(HNSEndpointPrefix, func(m *windows_hns.Endpoint) string { return HNSEndpointKey(m.GetName()) }),
		named(HNSHostRoutePrefix, func(m *windows_hns.HostRoute) string { return HNSHostRouteKey(m.GetDestination()) }),
	}
}
