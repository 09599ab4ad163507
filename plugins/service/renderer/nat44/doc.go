// Package nat44 renders services for VPP's NAT44 (endpoint-dependent), IPv4.
//
//	client ──> interface with NAT ── DNat44 of the service: address and port ──> backend's address, in the backend's table
//	answer <── session                                                       <──
//
// One DNat44 per service, labelled namespace/name, has a mapping for each of its addresses and ports; the dataplane works out what of a
// mapping changes. What is the node's: NAT itself, the interfaces, the pools, the identities (node.go). Every interface behind which a
// client or a backend may be translates both ways ("in and out"): pods, the way to other nodes, the host. The uplink is one of them, or,
// with natExternalTraffic and an overlay, translates what leaves by it to the node's address (output feature); without an overlay a pipe
// before the uplink does (NATNode.Exit). Then the node's own address, and those of load balancers, are identities: what has been translated
// at the way in must not be translated once more.
//
// The client's address is replaced (twice-NAT) where the answer would not come back through this VPP: for traffic from outside that may go
// to backends on other nodes (externalTrafficPolicy Cluster), for backends in the host's own stack or beyond the uplink (Way.Abroad), and
// when a backend reaches itself (self-twice-NAT).
//
// With externalTrafficPolicy Local all clients get local backends, those in the cluster, too: NAT44 does not tell clients from each other.
//
// What nothing serves is rejected by a route: the networks of cluster IPs end in VPP, and so do external addresses.
//
// Who may use an address, and what is dropped instead of rejected, is in an ACL (package gate), and a mapping that not everybody may use is
// not made before that is in place (Guard).
//
// What NAT44 cannot do, and what becomes of it:
//   - SCTP: no mapping; rejected like an unused port.
//   - endpoints of a node port or an external address that change while VPP has workers: a connection of that moment may fail.
//   - more than 255 backends: each node uses 255 of them, not all nodes the same.
//
// The agent makes the renderer with New, registers it with the service plugin (RegisterRenderer), and informs ipnet that VPP serves
// services (Deps.ServesServices): cmd/contiv-agent/vpp.go. IPv6 is not served; users are informed of each service that has addresses of it
// (ipv6.go). docs/adr/0009 says why things are as they are.
package nat44
