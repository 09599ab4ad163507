package nat44

import (
	"errors"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/plugins/service/renderer"
)

// errNoIPv6 is what users are informed of a service with addresses of IPv6.
var errNoIPv6 = errors.New("its IPv6 addresses are not served, since VPP has no contiv plugin; install contiv_plugin.so with VPP's plugins")

// closeIPv6 ends the networks of IPv6's cluster IPs here, so that clients are rejected and nothing leaves by the uplink.
func (r *Renderer) closeIPv6() {
	node, ok := r.Network.ServiceNode(true)
	if r.hasIPv6 = ok; !ok {
		return
	}
	for _, p := range node.Services {
		r.put(reject(node.MainVRF, p))
	}
}

// refuseIPv6 refuses services that have addresses of IPv6; those of IPv4 are served all the same.
func (r *Renderer) refuseIPv6(services []*renderer.ContivService) {
	if !r.hasIPv6 {
		return
	}
	for _, s := range services {
		if len(s.Ports) > 0 && (slices.ContainsFunc(s.ClusterIPs.Addrs(), netip.Addr.Is6) || slices.ContainsFunc(s.ExternalIPs.Addrs(), netip.Addr.Is6)) {
			r.fail(renderer.Refuse(s.ID, errNoIPv6))
		}
	}
}
