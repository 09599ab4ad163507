// Package hostports makes the host's own stack hand what it gets for node ports at its own addresses to VPP, which serves them at all
// addresses that packets reach VPP with. The host's addresses are not among those, since such packets end in the host:
//
//	client ──> host's address:node port ── nft: DNAT to VPP's end of the link, masquerade ──> vpp1 ──> VPP ──> backend
//
// With externalTrafficPolicy Local a client for which the host forwards keeps its address, if VPP answers by the host.
//
// What the host forwards to VPP, under its own address, must not look like the host itself, from which network policy never separates its
// pods:
//
//	client ──> host port ── nft or iptables: DNAT to the pod, source → an address that is not the node's ── vpp1 ──> VPP ──> pod
//
// A host without nft has no hook behind the rules of other programs. There iptables marks the host's own packets instead, by an address that nothing
// else has:
//
//	the host's own process ── iptables: source → Forwarded.self ── vpp1 ──> VPP ──> pod
//
// Both are values of the scheduler: NodePorts, rendered by plugins/service/renderer/hostend, and Forwarded, by plugins/ipnet. Each is one
// small nftables table, or two chains of iptables, replaced as a whole and atomically; open connections do not notice. The agent's dataplane on Linux
// (dataplane/linux) does not need it.
//
// Agents before November 2026 had more tables, a rule and a routing table; Leftovers removes them.
package hostports
