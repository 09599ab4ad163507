// Package hostports makes the host's own stack do its part for services that VPP serves.
//
// Node ports: VPP serves them at all addresses that packets reach it with. The host's addresses are not among those, since such
// packets end in the host:
//
//	client ──> host's address:node port ── nft: DNAT to VPP's end of the link, masquerade ──> vpp1 ──> VPP ──> backend
//
// Backends in the host's own stack, for clients there, where VPP's cnat serves (NAT44 translates the client's address itself):
// VPP hands such packets back with the host's own address, and the host would answer itself, past VPP. So the address of the
// client becomes one that is nobody's on the way in, and itself again on the way out:
//
//	client ──> service ── vpp1 ──> VPP ──> vpp1 ── nft: own address → alias ──> backend ──> alias → own ── vpp1 ──> VPP ──> client
//
// Places: addresses and ports that only some clients may use, where VPP's cnat serves, which cannot look who sends. VPP leads
// them to the host (plugins/service/renderer/cnat):
//
//	client ──> place ── VPP ──> vpp1 ── nft: drop others; DNAT to another place, masquerade ── vpp1 ──> VPP ──> backend
//
// Aliases: addresses and ports that the host's own processes reach by another address, where VPP's NAT44 serves them otherwise than
// clients outside (plugins/service/renderer/nat44/alias.go):
//
//	process ──> place ── nft: DNAT to the alias ──> vpp1 ──> VPP ──> backend
//
// Those are small nftables tables per family, replaced as a whole and atomically; connections that are open do not notice.
// Answers of places have a rule and a routing table besides. What is not wanted is not there. The agent's dataplane on Linux
// (dataplane/linux) does not need any of it.
package hostports
