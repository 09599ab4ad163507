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
// It is one small nftables table per family, replaced as a whole and atomically; connections that are open do not notice. The
// agent's dataplane on Linux (dataplane/linux) does not need it.
package hostports
