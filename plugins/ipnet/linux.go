package ipnet

import (
	"contiv.dev/vswitch/dataplane/nb"
	linux_interfaces "contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/internal/ipaddr"
	"contiv.dev/vswitch/plugins/podmanager"
)

// Without VPP the host's own stack routes. A veth pair connects a pod. The driver (dataplane/linux) programs the pod's route, its
// neighbour, the check of its source address and its policy; it receives the pod as a workload endpoint:
//
//	  pod                    host
//	+--------+    veth     +------------------------------------------+
//	| eth0   |-------------| cali…      /32 per pod       contiv-vxlan |--- other nodes
//	| /32    |             | lo: pod gateway .1                 NIC    |
//	+--------+             +------------------------------------------+
const (
	// WorkloadIfPrefix is the prefix of the names of the host's ends of pod links. The driver drops traffic from and to an interface with
	// such a name if the interface does not belong to an endpoint.
	WorkloadIfPrefix = "cali"
	orchestrator     = "contiv"
)

var _ wiring = linuxWiring{}

// names implements wiring.
func (linuxWiring) names(_ *settings, p *podLink) podIfNames {
	n := podNames(p.attachment.ID, false)
	n.vpp, n.hostDev = "", WorkloadIfPrefix+n.hostDev[len(n.hostDev)-11:]
	return n
}

// hostIf implements wiring: pods are connected to the host's stack itself.
func (linuxWiring) hostIf(*settings) string { return "" }

// node implements wiring.
func (linuxWiring) node(s *settings) ([]value, error) {
	var v values
	s.podGatewayOnLo(&v)
	for _, cidr := range s.cluster.Pods {
		v.put(&proto.IPAMPoolUpdate{Id: cidr.String(), Pool: &proto.IPAMPool{Cidr: cidr.String(), Masquerade: s.nat}})
	}
	v.put(s.transport.Node(&s.local)...)
	// The driver writes nothing before it has received all values: InSync comes last (see dataplane/feed).
	v.put(&proto.InSync{})
	return v.list, v.err
}

// podGatewayOnLo gives the pods' gateway address to the host. The host answers pings to this address. It is also the source address of the
// host's own traffic to pods, on this node and on others, so that the answers are routed back through the pod network.
func (s *settings) podGatewayOnLo(v *values) {
	lo := &linux_interfaces.Interface{
		Name: podGwLoopName, Type: linux_interfaces.Interface_LOOPBACK, HostIfName: "lo", Enabled: true,
	}
	for _, p := range s.podSubnets {
		lo.IpAddresses = append(lo.IpAddresses, ipaddr.HostPrefix(p.Gateway).String())
	}
	v.put(lo)
}

// pod implements wiring.
func (linuxWiring) pod(s *settings, v *values, p *podLink) {
	s.podLoopback(v, p)
	defer s.podNamespace(v, p)
	v.put(&linux_interfaces.Interface{
		Name: p.names.linux, Type: linux_interfaces.Interface_VETH, Namespace: p.namespace(),
		HostIfName: p.attachment.ID.IfName, Enabled: true, IpAddresses: p.podAddresses(),
		PhysAddress: p.mac.String(), Mtu: p.mtu, Link: plainVethTo(p.names.linuxPeer),
	}, &linux_interfaces.Interface{
		Name: p.names.linuxPeer, Type: linux_interfaces.Interface_VETH, HostIfName: p.names.hostDev, Enabled: true, Mtu: p.mtu,
		PhysAddress: p.peerMAC.String(), Link: plainVethTo(p.names.linux),
	}, endpointOf(p))
}

// plainVethTo returns the link of a veth end whose both ends are used by Linux.
func plainVethTo(peer string) *linux_interfaces.Interface_Veth {
	return &linux_interfaces.Interface_Veth{Veth: &linux_interfaces.VethLink{PeerIfName: peer}}
}

// endpointOf returns an attachment as the driver's endpoint. The policy of the endpoint is a value of the policy plugin, and the endpoint
// waits for it.
func endpointOf(p *podLink) *proto.WorkloadEndpointUpdate {
	ep := &proto.WorkloadEndpoint{
		State: "active", Name: p.names.hostDev, Mac: p.mac.String(),
	}
	for _, addr := range p.addrs {
		if addr.Is4() {
			ep.Ipv4Nets = append(ep.Ipv4Nets, ipaddr.HostPrefix(addr).String())
		} else {
			ep.Ipv6Nets = append(ep.Ipv6Nets, ipaddr.HostPrefix(addr).String())
		}
	}
	return &proto.WorkloadEndpointUpdate{Id: EndpointID(p.attachment), Endpoint: ep}
}

// EndpointID returns the ID of an attachment for the driver.
func EndpointID(a *podmanager.Attachment) *proto.WorkloadEndpointID {
	return &proto.WorkloadEndpointID{
		OrchestratorId: orchestrator, WorkloadId: a.Pod.Namespace + "/" + a.Pod.Name, EndpointId: podIfSuffix(a.ID),
	}
}

// EndpointLinkKey returns the key of the northbound value that brings up the link of an endpoint's pod: the endpoint's status cannot be up
// before. podNames maps in the opposite direction.
func EndpointLinkKey(id *proto.WorkloadEndpointID) string {
	return nb.LinuxInterfaceStateKey("veth1-"+id.GetEndpointId(), true)
}
