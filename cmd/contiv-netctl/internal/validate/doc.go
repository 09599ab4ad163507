// Package validate compares what the nodes of a cluster say: of each other, of their pods, and of what they have programmed. It does what
// contiv's L2 and L3 validators did, for both dataplanes, both families and both transports. It is pure: Views in, Findings out.
//
// There are two ways in which a network can be wrong. Something is not as it was programmed: each agent looks for that itself (POST
// /contiv/v1/check, and with the Linux dataplane the kernel's own tables), and drift.go reports it. Or what was programmed is not what the
// other nodes need: nodes.go (which nodes there are), overlay.go (tunnel ends, ARP, forwarding entries), routes.go (routes to the pods of others)
// and pods.go (pods, their addresses and what Kubernetes says) find that by comparing views.
package validate
