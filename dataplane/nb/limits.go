package nb

// MaxVethMTU is the largest MTU of an af_packet interface to a pod. VPP 25.10 must receive each frame in one buffer of 2048 bytes:
// it writes the VLAN tag of a longer frame four bytes beyond the end of the first buffer, and a pod may send any frame. The other
// 128 bytes are for what the kernel puts before a packet, and for the Ethernet header with two tags.
const MaxVethMTU = 2048 - 128

// Limits of our VPP plugin.
const (
	ContivPolicyRules = 16384 // per policy, both directions together
	ContivPolicyItems = 8192  // policies and ends of tiers of one side of an endpoint
)
