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

// HNSNetworkKey is the key of a network.
func HNSNetworkKey(name string) string { return clean(HNSNetworkPrefix + name) }

// HNSEndpointKey is the key of an endpoint.
func HNSEndpointKey(name string) string { return clean(HNSEndpointPrefix + name) }

// HNSHostRouteKey is the key of a route of the node. The destination is reduced to its network; one that cannot be parsed is kept as it is.
func HNSHostRouteKey(destination string) string {
	var buf keyBuf
	return cleanBytes(appendNetwork(append(buf[:0], HNSHostRoutePrefix...), destination))
}

// windowsModels are the messages of HNS.
func windowsModels() []model {
	return []model{
		named(HNSNetworkPrefix, func(m *windows_hns.Network) string { return HNSNetworkKey(m.GetName()) }),
		named(HNSEndpointPrefix, func(m *windows_hns.Endpoint) string { return HNSEndpointKey(m.GetName()) }),
		named(HNSHostRoutePrefix, func(m *windows_hns.HostRoute) string { return HNSHostRouteKey(m.GetDestination()) }),
	}
}
