package nb

// MaxVethMTU is the largest MTU of an af_packet interface that a pod is behind. A frame that VPP 25.10 takes from one had better fit
// into one of its buffers, which have 2048 bytes: it writes the VLAN tag of a longer frame four bytes beyond the end of the first
// buffer, and a pod may send what it likes. The rest is what the kernel puts before a packet, and the Ethernet header with two
// tags.
const MaxVethMTU = 2048 - 128

// What our VPP plugin has room for.
const (
	ContivPolicyRules = 16384 // of a policy, both directions together
	ContivPolicyItems = 8192  // policies and ends of tiers of one side of an endpoint
)
