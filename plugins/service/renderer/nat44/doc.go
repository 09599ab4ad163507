// Package nat44 renders services for VPP's NAT44 (endpoint-dependent), IPv4.
//
//	client ──> interface with NAT ── DNat44 of the service: address and port ──> backend's address, in the backend's table
//	answer <── session                                                       <──
//
// One DNat44 per service, labelled namespace/name, has a mapping for each of its addresses and ports; the dataplane works out what of a
// mapping changes. Values of the node: NAT itself, the interfaces, the pools, the identity mappings (node.go). Each interface that leads to
// clients or backends translates both ways ("in and out"): pods, the way to other nodes, the host. The uplink is one of them, or,
// with natExternalTraffic and an overlay, translates what leaves by it to the node's address (output feature); without an overlay a pipe
// before the uplink does (servicenode.NAT.Exit). Then the node's own address, and those of load balancers, are identity mappings: what has been
// translated on the way in must not be translated again.
//
// The client's address is replaced (twice-NAT) where the answer would not come back through this VPP: for traffic from outside that may go
// to backends on other nodes (externalTrafficPolicy Cluster), for backends in the host's own stack or beyond the uplink (NextHop.Masquerade), and
// when a backend reaches itself (self-twice-NAT).
//
// With externalTrafficPolicy Local all clients get local backends, those in the cluster, too: NAT44 does not distinguish clients.
//
// What nothing serves is rejected by a route: the networks of cluster IPs end in VPP, and so do external addresses.
//
// An ACL (package sourceranges) holds which clients may use an address, and what is dropped instead of rejected. A mapping that only some
// clients may use is not made before the ACL is in place (Guard).
//
// What NAT44 does not support, and the result:
//   - SCTP: no mapping; rejected like an unused port.
//   - endpoints of a node port or an external address that change while VPP has workers: a connection of that moment may fail.
//   - more than 255 backends: each node uses 255 of them, not all nodes the same.
//
// The agent makes the renderer with New, registers it with the service plugin (RegisterRenderer), and informs ipnet that VPP serves
// services (Deps.ServesServices): cmd/contiv-agent/vpp.go. IPv6 is not served; users are informed of each service that has addresses of it
// (ipv6.go). docs/adr/0009 has the reasons for this design.
package nat44
