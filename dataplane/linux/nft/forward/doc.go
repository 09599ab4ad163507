// Package forward lets forwarded packets of pods pass the chain FORWARD of iptables-nft while its policy is to drop packets.
//
// Docker and ufw set this policy, and it applies to the packets of pods too: in nf_tables, a packet passes the base chains of all tables, and
// an accept ends only the chain that it is in. The rules that this package adds accept all packets of the given links. This opens nothing
// that our own tables deny: a drop is final in every table.
package forward
