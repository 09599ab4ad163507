// Package model is network policy as all dataplanes take it: the compiler's output and the renderers' input. It depends neither on
// Kubernetes nor on a dataplane.
//
// There are three kinds of objects. Each refers only to those before it:
//
//   - Set: a set of networks, or of (address, protocol, port). A set's ID is a hash of what the set means, for example "pods of
//     namespace a with label app=web". So a set never changes its meaning; only its members come and go.
//   - Policy: two lists of rules, for ingress and for egress. The rules refer to sets.
//   - Endpoint: a pod of this node with what applies to it. It refers to policies.
//
// A Change lists what is different from the state before. A renderer applies it in this order: new sets, added and removed members,
// policies, endpoints, endpoints that are gone, policies that are gone, sets that are gone. Then no reference dangles at any time.
//
// # How a packet is judged
//
// The direction is the pod's: ingress is what the pod receives, egress is what it sends. A connection between two pods must pass the egress
// of the one and the ingress of the other. Only the first packet of a connection is judged: answers, and ICMP errors about the connection,
// pass. When policy changes, each open connection is judged again as its first packet would be.
//
// A Direction is judged as follows:
//
//  1. The tiers in their order. In a tier, the policies in their order. In a policy, the rules of the direction in their order. The
//     first rule that matches decides: Allow and Deny end the search; Pass continues with the next tier.
//  2. If no rule of a tier matches, Tier.Default decides in the same way.
//  3. If every tier passes, Direction.Default decides.
//
// What a pod sends to its own node (the node's own addresses) is judged in the same way, with two differences: a tier with AllowsNode
// allows it at once, and if every tier passes, it is allowed. So only the rules of tiers before the first one with AllowsNode can deny it.
//
// Addresses are those of the real peers: the destination of egress is the backend and not the service; the source of ingress is the client
// before any source NAT.
//
// # What renderers do by themselves
//
// The following passes without any rule, because only the dataplane can identify it:
//
//   - what a pod's own node sends to it, that is, the node's own processes. Packets that the node forwards or masquerades for others
//     are not the node's own traffic.
//   - traffic between a pod and itself, also by a service.
//
// A pod of this node for which there is no Endpoint must not send or receive anything but traffic of its own node. A rule that refers to a
// set that the renderer cannot program (unknown, too large) matches nothing if its action is Allow, and everything that the rest of the
// rule matches if its action is Deny or Pass; both are then Deny.
package model
