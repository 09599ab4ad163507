// Package hostports makes the host's own stack hand what it gets for node ports at its own addresses to VPP, which serves node
// ports at all addresses that packets reach it with. The host's addresses are not among those: such packets end in the host.
//
//	client ──> host's address:node port ── nft: DNAT to VPP's end of the link, masquerade ──> vpp1 ──> VPP ──> backend
//
// It is one small nftables table, replaced as a whole and atomically; connections that are open do not notice. The agent's
// dataplane on Linux (dataplane/linux) does not need it.
package hostports
