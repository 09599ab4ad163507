// Package model defines network policy in the form that all dataplanes use: the compiler's output and the renderers' input. It depends
// neither on Kubernetes nor on a dataplane.
//
// There are three kinds of objects. Each refers only to kinds before it:
//
//   - Set: a set of networks, or of (address, protocol, port). A set's ID is a hash of what the set means, for example "pods of
//     namespace a with label app=web". So a set never changes its meaning; only its members change.
//   - Policy: two lists of rules, for ingress and for egress. The rules refer to sets.
//   - Endpoint: a pod of this node with the policies that apply to it.
//
// A Change lists the differences to the previous state. A renderer applies it in this order: new sets, added and removed members, policies,
// endpoints, deleted endpoints, deleted policies, deleted sets. So every reference is valid at any time.
//
// # How a packet is evaluated
//
// The direction is relative to the pod: ingress is received by the pod, egress is sent by the pod. A connection between two pods must pass
// the egress of the sender and the ingress of the receiver. Only the first packet of a connection is evaluated: answers, and ICMP errors
// about the connection, pass. When policy changes, each open connection is evaluated again like its first packet.
//
// A Direction is evaluated as follows:
//
//  1. The tiers in their order. In a tier, the policies in their order. In a policy, the rules of the direction in their order. The
//     first rule that matches decides: Allow and Deny end the search; Pass continues with the next tier.
//  2. If no rule of a tier matches, Tier.Default decides in the same way.
//  3. If every tier passes, Direction.Default decides.
//
// Traffic of a pod to its own node (the node's own addresses) is evaluated in the same way, with two differences: a tier with AllowsNode
// allows it immediately, and if every tier passes, it is allowed. So only the rules of tiers before the first one with AllowsNode can deny
// it.
//
// Addresses are those of the real peers: the destination of egress is the backend and not the service; the source of ingress is the client
// before any source NAT.
//
// # What renderers allow without rules
//
// The following passes without any rule, because only the dataplane can identify it:
//
//   - traffic of a pod's own node to the pod, that is, of the node's own processes. Packets that the node forwards or masquerades
//     for other senders are not the node's own traffic.
//   - traffic between a pod and itself, also through a service.
//
// A pod of this node for which there is no Endpoint must not send or receive any traffic except for that of its own node. A rule that
// refers to a set that the renderer cannot program (unknown, too large) matches nothing if its action is Allow. If its action is Deny or
// Pass, it matches all packets that meet the rest of the rule, and denies them.
package model
