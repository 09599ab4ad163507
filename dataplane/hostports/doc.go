// Package hostports makes the host's network stack forward traffic for node ports at the host's own addresses to VPP. VPP serves node ports at
// all addresses of packets that reach it. Packets to the host's addresses do not reach VPP, since they end in the host:
//
//	client ──> host's address:node port ── nft: DNAT to VPP's end of the link, masquerade ──> vpp1 ──> VPP ──> backend
//
// With externalTrafficPolicy Local the source address of a client for which the host forwards is kept, if VPP's replies go through the host.
//
// Packets that the host forwards to VPP under its own address must not look like packets of the host itself, since network policy never blocks
// traffic between the host and its pods:
//
//	client ──> host port ── nft or iptables: DNAT to the pod, source → an address that is not the node's ── vpp1 ──> VPP ──> pod
//
// A host without nft has no hook after the rules of other programs. There iptables marks the host's own packets instead, by an address that is
// used for nothing else:
//
//	the host's own process ── iptables: source → Forwarded.self ── vpp1 ──> VPP ──> pod
//
// The two redirections above are values of the scheduler: plugins/service/renderer/hostnat renders NodePorts, and plugins/ipnet renders
// Forwarded. Each value is one small nftables table, or two iptables chains, and is replaced atomically; open connections are not affected.
// Nodes without VPP (dataplane/linux) do not use this package.
//
// Agents before November 2026 had more tables, a rule and a routing table; Leftovers removes them.
package hostports
