// Package nat44 renders services for VPP's NAT44 (endpoint-dependent), IPv4.
//
//	client ──> interface with NAT ── DNat44 of the service: address and port ──> backend's address, in the backend's table
//	answer <── session                                                       <──
//
// One DNat44 per service, labelled namespace/name, has a mapping for each of its addresses and ports; the descriptor (dataplane/vpp/nat44)
// computes which backends of a mapping change. Values of the node: NAT itself, the interfaces, the pools, the identity mappings (node.go). Each
// interface that leads to clients or backends translates in both directions ("in and out"): the interfaces to pods, to other nodes and to the
// host. The uplink is such an interface, too, except with natExternalTraffic and an overlay: then it has the output feature instead, which
// replaces the source of packets that leave by the node's address. With natExternalTraffic and no overlay, a pipe before the uplink has the
// output feature (nodeinfo.NAT.Exit). With the output feature, the node's own address and the addresses of load balancers are identity
// mappings, so packets that were translated on ingress are not translated again.
//
// The client's address is replaced (twice-NAT) if the reply would not come back through this VPP: for traffic from outside that may go
// to backends on other nodes (externalTrafficPolicy Cluster), for backends in the host's own stack or beyond the uplink (NextHop.Masquerade), and
// if a backend connects to itself (self-twice-NAT).
//
// With externalTrafficPolicy Local all clients get local backends, also clients in the cluster: NAT44 does not distinguish clients.
//
// Routes reject packets that no mapping matches: VPP has reject routes for the networks of cluster IPs and for external addresses.
//
// An ACL (package sourceranges) lists the clients that may use an address, and the packets that are dropped instead of rejected. A mapping
// that only some clients may use is not created before the ACL is in place (Guard).
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
