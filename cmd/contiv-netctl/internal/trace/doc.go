// Package trace makes sense of what agents have recorded of a packet: it finds the packet among the others, says in one line
// what each stage did with it, puts the nodes' parts together, and says where it ended and why. It is pure: text in, words out.
//
//   - vpp.go reads VPP's "show trace", nft.go "nft monitor trace".
//   - ends.go has a packet's addresses as it came and as it left, between which it may have been translated.
//   - service.go is about packets to services: which backend was chosen, or why none.
//   - explain.go follows the packet from the sender to the receiver and its answer back, and names the first place where it
//     was lost.
package trace
