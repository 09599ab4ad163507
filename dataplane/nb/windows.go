package nb

import (
	"google.golang.org/protobuf/proto"

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

// windowsKey gives the key of a message of HNS and the prefix it must have.
func windowsKey(m proto.Message) (key, prefix string) {
	switch m := m.(type) {
	case *windows_hns.Network:
		return HNSNetworkKey(m.GetName()), HNSNetworkPrefix
	case *windows_hns.Endpoint:
		return HNSEndpointKey(m.GetName()), HNSEndpointPrefix
	case *windows_hns.HostRoute:
		return HNSHostRouteKey(m.GetDestination()), HNSHostRoutePrefix
	}
	return "", ""
}

// newWindows is an empty message of the kind that a key of HNS belongs to, nil for other keys.
func newWindows(key string) proto.Message {
	switch {
	case isUnder(key, HNSNetworkPrefix):
		return new(windows_hns.Network)
	case isUnder(key, HNSEndpointPrefix):
		return new(windows_hns.Endpoint)
	case isUnder(key, HNSHostRoutePrefix):
		return new(windows_hns.HostRoute)
	}
	return nil
}
