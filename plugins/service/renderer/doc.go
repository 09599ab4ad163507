// Package renderer is the interface between the services of Kubernetes and their implementation in a dataplane.
//
// The processor (plugins/service/processor) turns Service and EndpointSlice objects into ContivService values, each of which is complete:
// addresses, ports, and for each port the backends that were chosen. A renderer (ServiceRendererAPI) turns these into the configuration of
// one dataplane. Every active renderer gets the same data.
//
// # What is documented and what was added
//
// ServiceRendererAPI, ContivService, ServiceBackend and the other types have a published API, which is kept unchanged; a renderer or a test
// that uses nothing else works. Today's Service API needs more than that. It is in additional fields, whose zero values have the meaning of
// the documented API:
//
//   - ContivService.InternalTrafficPolicy, LoadBalancerIPs, LoadBalancerSourceRanges, SourceRangesSet, HealthCheckNodePort,
//     Reachable, Lost, LocalPolicyBackends, KeptBackends
//   - ResyncEventData.LocalNodeIPs, and the optional interface LocalNodeIPsRenderer
//   - the protocol SCTP
//
// # How a renderer reads a service
//
// Traffic to an address of a service is subject to one of two policies. For traffic to ClusterIPs it is InternalTrafficPolicy. For traffic
// to ExternalIPs (which include LoadBalancerIPs) and to NodePorts it is TrafficPolicy if the client is outside the cluster; pods and the
// node itself are served cluster-wide, independent of TrafficPolicy (KEP-2086 and kube-proxy call this the short circuit). Select(port,
// policy, ipv6) returns the backends for a policy, and the verdict for traffic if there are none: it is rejected if no endpoint in the
// cluster serves the port, and dropped if only this node has no backend.
//
// Families do not mix: IPv4 addresses are served by IPv4 backends, IPv6 addresses by IPv6 ones.
//
// # Conflicts
//
// Two services may name one frontend (address, port and protocol): the processor decides which service owns it (docs/adr/0016), and no
// frontend is in Frontends of two services. A renderer serves exactly the frontends in Frontends, and needs no table of owners. When a
// frontend moves from one service to another, the service that loses it is updated or deleted before the other one is instructed to serve
// it, in the same transaction.
//
// # Duties
//
// Services, backends and sets are immutable once they are passed; both sides may keep and share them. The slice otherExistingServices,
// however, is only valid during the call. A call that returns an error counts as completed: the processor continues, the event is reported
// as failed, and a resync follows.
//
// Example: examples/services, which is a separate module, is a renderer.
package renderer
