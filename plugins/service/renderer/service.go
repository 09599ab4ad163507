package renderer

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/kube/svcmodel"
)

// ContivService is a representation of a K8s Service without indirect references. It has:
//   - endpoints combined with services
//   - the full list of IP addresses on which the service should be exposed on this node
type ContivService struct {
	// ID uniquely identifies service across all namespaces.
	ID svcmodel.ID

	// TrafficPolicy determines whether traffic is routed cluster-wide or node-local only. For a service with its own InternalTrafficPolicy
	// it is the policy for traffic from outside the cluster.
	TrafficPolicy TrafficPolicyType

	// SessionAffinityTimeout is the maximum time of session affinity (in seconds) if affinity based on client IP is enabled, 0 if it is
	// disabled.
	SessionAffinityTimeout uint32

	// ClusterIPs is a set of all IP addresses on which the service should be exposed within the cluster (except for node IPs for NodePorts,
	// which are provided separately via the ServiceRendererAPI.UpdateNodePortServices() method).
	ClusterIPs *IPAddresses

	// ExternalIPs is a set of all IP addresses on which the service should be exposed outside the cluster (e.g. external load-balancer
	// IPs).
	ExternalIPs *IPAddresses

	// Ports is a map of all ports exposed for this service.
	Ports map[string]*ServicePort

	// Backends maps service ports to the corresponding backends (= endpoints).
	Backends map[string][]*ServiceBackend

	// The following fields are not part of the documented API.

	// InternalTrafficPolicy is the policy for traffic to ClusterIPs.
	InternalTrafficPolicy TrafficPolicyType

	// LoadBalancerIPs are those of ExternalIPs that belong to a load balancer; nil if there are none.
	LoadBalancerIPs *IPAddresses

	// LoadBalancerSourceRanges are the networks from which LoadBalancerIPs may be used if SourceRangesSet.
	LoadBalancerSourceRanges []netip.Prefix
	SourceRangesSet          bool

	// HealthCheckNodePort is the node's port at which load balancers check for local endpoints; 0: none. The service plugin itself serves
	// it.
	HealthCheckNodePort uint16

	OtherBackends

	// Reachable holds, for each port, the families that have a backend in the cluster, even if only on other nodes.
	Reachable map[string]Families

	// Lost are frontends that the service names but does not own, because another service owns them or no service may; sorted. Frontends
	// leaves them out. Addresses and node ports of which nothing is left are not in ExternalIPs, LoadBalancerIPs and Ports, so that a
	// renderer that uses only the documented API also serves them for one service only.
	Lost []Frontend
}

// OtherBackends are backends of ports that are not in ContivService.Backends. It is not part of the documented API.
type OtherBackends struct {
	// LocalPolicyBackends are backends on this node that serve only traffic that has to stay on the node: terminating ones, while other
	// traffic has better backends. They are not in Backends.
	LocalPolicyBackends map[string][]*ServiceBackend

	// KeptBackends are backends of UDP and SCTP ports that still serve but get no new connections: endpoints that terminate while others are
	// ready, and those that are left to other zones or nodes. Connections to them stay, as with kube-proxy. They are neither in Backends nor
	// in LocalPolicyBackends.
	KeptBackends map[string][]*ServiceBackend
}

// NewContivService returns an empty ContivService.
func NewContivService() *ContivService {
	return &ContivService{
		ClusterIPs:  NewIPAddresses(),
		ExternalIPs: NewIPAddresses(),
		Ports:       map[string]*ServicePort{},
		Backends:    map[string][]*ServiceBackend{},
	}
}

// HasNodePort reports whether the service is also exposed on the node IP.
func (cs ContivService) HasNodePort() bool {
	for _, port := range cs.Ports {
		if port.NodePort != 0 {
			return true
		}
	}
	return false
}

// String converts ContivService into a human-readable string.
func (cs ContivService) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ContivService %s <Traffic-Policy:%s InternalPolicy:%s Affinity-Timeout:%ds ClusterIPs:%s ExternalIPs:%s",
		cs.ID, cs.TrafficPolicy, cs.InternalTrafficPolicy, cs.SessionAffinityTimeout, cs.ClusterIPs, cs.ExternalIPs)
	if cs.LoadBalancerIPs != nil {
		fmt.Fprintf(&b, " LoadBalancerIPs:%s", cs.LoadBalancerIPs)
	}
	if cs.SourceRangesSet {
		fmt.Fprintf(&b, " SourceRanges:%s", cs.LoadBalancerSourceRanges)
	}
	if cs.HealthCheckNodePort != 0 {
		fmt.Fprintf(&b, " HealthCheckNodePort:%d", cs.HealthCheckNodePort)
	}
	if len(cs.Lost) > 0 {
		fmt.Fprintf(&b, " Lost:%s", cs.Lost)
	}
	b.WriteString(" Ports:{")
	for i, name := range slices.Sorted(maps.Keys(cs.Ports)) {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s=%s->%v", name, cs.Ports[name], cs.Backends[name])
		if local := cs.LocalPolicyBackends[name]; len(local) > 0 {
			fmt.Fprintf(&b, " local-policy-only:%v", local)
		}
		if kept := cs.KeptBackends[name]; len(kept) > 0 {
			fmt.Fprintf(&b, " kept:%v", kept)
		}
	}
	b.WriteString("}>")
	return b.String()
}

// ServicePort describes a port of a service.
type ServicePort struct {
	Protocol ProtocolType /* protocol type */
	Port     uint16       /* port that will be exposed by this service */
	NodePort uint16       /* port on which this service is exposed for Node IP (0 if none) */
}

// String converts ServicePort into a human-readable string.
func (sp ServicePort) String() string {
	if sp.NodePort == 0 {
		return fmt.Sprintf("%s:%d", sp.Protocol, sp.Port)
	}
	return fmt.Sprintf("%s:%d(node:%d)", sp.Protocol, sp.Port, sp.NodePort)
}

// ServiceBackend represents a single service backend (= endpoint).
type ServiceBackend struct {
	IP          net.IP /* internal IP address of the backend */
	Port        uint16 /* backend-local port on which the service listens */
	Local       bool   /* true if the backend is deployed on this node (can be leveraged for smart load-balancing) */
	HostNetwork bool   /* true if the backend uses host networking */
}

// String converts ServiceBackend into a human-readable string.
func (sb ServiceBackend) String() string {
	flags := ""
	if sb.Local {
		flags += " local"
	}
	if sb.HostNetwork {
		flags += " host-network"
	}
	return net.JoinHostPort(sb.IP.String(), fmt.Sprint(sb.Port)) + flags
}

// ProtocolType is either TCP or UDP (or SCTP, which is an addition).
type ProtocolType int

const (
	// TCP protocol.
	TCP ProtocolType = 6

	// UDP protocol.
	UDP ProtocolType = 17

	// SCTP protocol. It is not part of the documented API.
	SCTP ProtocolType = 132
)

// String converts ProtocolType into a human-readable string.
func (pt ProtocolType) String() string {
	switch pt {
	case TCP:
		return "TCP"
	case UDP:
		return "UDP"
	case SCTP:
		return "SCTP"
	}
	return "INVALID"
}

// TrafficPolicyType is either cluster-wide or node-local routing.
type TrafficPolicyType int

const (
	// ClusterWide distributes traffic across all backends.
	ClusterWide TrafficPolicyType = 0

	// NodeLocal distributes traffic across node-local backends only.
	NodeLocal TrafficPolicyType = 1
)

// String converts TrafficPolicyType into a human-readable string.
func (tpt TrafficPolicyType) String() string {
	switch tpt {
	case ClusterWide:
		return "Cluster-wide"
	case NodeLocal:
		return "Node-local"
	}
	return "INVALID"
}
