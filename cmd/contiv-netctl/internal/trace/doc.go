// Package trace interprets what agents have recorded of a packet: it finds the packet among the others, describes in one line what each stage
// did with it, joins the nodes' parts, and reports where the packet ended and why. It is pure: its input and output are text.
//
//   - vpp.go parses VPP's "show trace", nft.go "nft monitor trace".
//   - ends.go extracts a packet's addresses on arrival and on departure, between which it may have been translated.
//   - service.go handles packets to services: which backend was chosen, or why none was.
//   - explain.go follows the packet from the sender to the receiver and its answer back, and names the first place where it
//     was lost.
package trace
