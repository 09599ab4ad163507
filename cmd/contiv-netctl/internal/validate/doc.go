// Package validate compares what the nodes of a cluster report: about each other, their pods, and what they have programmed. It does what
// contiv's L2 and L3 validators did, for both dataplanes, both families and both transports. It is pure: Views are its input, Findings its
// output.
//
// A network can be wrong in two ways. First, an object is not as it was programmed: each agent checks that itself (POST /contiv/v1/check, and
// with the Linux dataplane the kernel's own tables), and drift.go reports it. Second, what was programmed is not what the other nodes need:
// nodes.go (the set of nodes), overlay.go (tunnel ends, ARP, forwarding entries), routes.go (routes to the pods of others) and pods.go (pods,
// their addresses and what Kubernetes reports) find that by comparing views.
package validate
