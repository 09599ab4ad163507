package ipnet

import (
	"fmt"
	"slices"

	"contiv.dev/vswitch/dataplane/nb"
	windows_hns "contiv.dev/vswitch/dataplane/nb/windows/hns"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/internal/ipaddr"
	"contiv.dev/vswitch/plugins/ipnet/transport/vxlan"
)

// On Windows the Host Network Service connects pods (dataplane/windows/wiring). A pod is an endpoint of the node's network, in the
// namespace that the runtime has created. The driver (dataplane/windows) applies the pod's policy, as on Linux:
//
//	  pod                    virtual switch
//	+-----------+         +--------------------------------------------+
//	| namespace |---------| endpoint: policy, NAT    NIC, or its VXLAN |--- other nodes
//	+-----------+         | node: pod gateway .1     (VNI >= 4096)     |
//	                      +--------------------------------------------+
const (
	// HNSNetwork is the name of the node's network.
	HNSNetwork   = "contiv"
	hnsPodPrefix = "contiv-pod-"
)

var _ wiring = windowsWiring{}

// names implements wiring.
func (windowsWiring) names(_ *settings, p *podLink) podIfNames {
	return podIfNames{linuxPeer: hnsPodPrefix + podIfSuffix(p.attachment.ID)}
}

// hostIf implements wiring: pods are connected to the host's virtual switch.
func (windowsWiring) hostIf(*settings) string { return "" }

// node implements wiring.
func (windowsWiring) node(s *settings) ([]value, error) {
	if len(s.nodeIPs) == 0 {
		return nil, fmt.Errorf("the node has no adapter with a default route, on which HNS could make the pods' network")
	}
	n := &windows_hns.Network{Name: HNSNetwork, Adapter: s.uplink().Name}
	if s.overlay {
		n.Type, n.Vni, n.RouterMac = windows_hns.Network_OVERLAY, s.local.VNI, vxlan.MAC(s.nodeID).String()
		n.ProviderAddress = s.nodeIPs[0].Addr().String()
	}
	for _, p := range s.podSubnets {
		n.Subnets = append(n.Subnets, &windows_hns.Subnet{
			Prefix: p.Subnet.String(), Gateway: p.Gateway.String(), Reserved: p.NATLoopback.String(),
		})
	}
	var v values
	v.put(n)
	for _, cidr := range s.cluster.Pods {
		v.put(&proto.IPAMPoolUpdate{Id: cidr.String(), Pool: &proto.IPAMPool{Cidr: cidr.String(), Masquerade: s.nat}})
	}
	v.put(s.transport.Node(&s.local)...)
	// The driver writes nothing before it has received all values: InSync comes last (see dataplane/feed).
	v.put(&proto.InSync{})
	return v.list, v.err
}

// pod implements wiring.
func (windowsWiring) pod(s *settings, v *values, p *podLink) {
	dns := p.attachment.DNS
	e := &windows_hns.Endpoint{
		Name: p.names.linuxPeer, Network: HNSNetwork, Namespace: p.attachment.Netns, Mac: p.mac.String(),
		DnsServers: dns.Nameservers, DnsDomain: dns.Domain, DnsSearch: dns.Search,
	}
	for _, addr := range p.addrs {
		e.Addresses = append(e.Addresses, addr.String())
		if gw := s.podGateway(addr); gw.IsValid() {
			e.Gateways = append(e.Gateways, gw.String())
		}
	}
	through := s.cluster.Services
	if s.overlay {
		e.ProviderAddress = s.nodeIPs[0].Addr().String()
	} else {
		for _, ip := range s.nodeIPs {
			through = append(slices.Clip(through), ipaddr.HostPrefix(ip.Addr()))
		}
	}
	e.ThroughSwitch = prefixStrings(through)
	if s.nat {
		inside := slices.Concat(s.cluster.Pods, s.cluster.Services)
		for _, ip := range s.nodeIPs {
			inside = append(inside, ip.Masked())
		}
		e.NoNat = prefixStrings(inside)
	}
	v.put(e, endpointOf(p))
}

// HNSEndpointKey returns the key of the northbound value that connects an endpoint's pod on Windows: the endpoint's status cannot be up
// before.
func HNSEndpointKey(id *proto.WorkloadEndpointID) string {
	return nb.HNSEndpointKey(hnsPodPrefix + id.GetEndpointId())
}
