package nat44

import (
	"errors"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/plugins/service/renderer"
)

// errNoIPv6 is reported for a service with IPv6 addresses.
var errNoIPv6 = errors.New("its IPv6 addresses are not served, since VPP has no contiv plugin; install contiv_plugin.so with VPP's plugins")

// closeIPv6 puts routes that reject the networks of IPv6 cluster IPs: clients get an error, and nothing leaves by the uplink.
func (r *Renderer) closeIPv6() {
	node, ok := r.Network.ServiceNode(true)
	if r.hasIPv6 = ok; !ok {
		return
	}
	for _, p := range node.Services {
		r.out.Put(node.Reject(p))
	}
}

// refuseIPv6 returns a refusal for each service with IPv6 addresses, joined. Their IPv4 addresses are served.
func (r *Renderer) refuseIPv6(services []*renderer.ContivService) error {
	if !r.hasIPv6 {
		return nil
	}
	var errs []error
	for _, s := range services {
		if len(s.Ports) > 0 && (slices.ContainsFunc(s.ClusterIPs.Addrs(), netip.Addr.Is6) || slices.ContainsFunc(s.ExternalIPs.Addrs(), netip.Addr.Is6)) {
			errs = append(errs, renderer.Refuse(s.ID, errNoIPv6))
		}
	}
	return errors.Join(errs...)
}
