// Package nodesync gives each node of the cluster a number and informs nodes about each other.
//
// The node ID is the first free positive integer. It is claimed by putting the node's record under /vnf-agent/contiv-ksr/allocatedIDs/<id>
// in the cluster database, atomically and only if the ID is free. A node that finds others doing the same queues (queue.go), so that
// hundreds of nodes that start together have their IDs at once and without gaps. All of the node's networks follow from the ID (package
// ipam), so without an ID nothing can be configured: then the resync is aborted, and comes again once the database is back.
//
// An ID has one right owner, whatever becomes of the database (docs/adr/0006). A node keeps a UUID and its claim on its own disk
// (IdentityStore). The claim has a generation, which grows whenever the ID changes hands, and a time; of two claims the one with the higher
// generation is right, then the older one (claim.go). A node whose record was lost, or replaced by a claim that is not right, puts its own
// back, which is the job of the keeper. A node that is not right is reported by a FatalError that says what to do, and gets a new ID when
// its agent is restarted. A node that claims its first ID waits for a probation before it uses it, so that others can object.
//
// Release leaves a record that says whose the ID was, and a key that etcd deletes after the quarantine; only then the ID is free. So no
// clock has to be right. The ID of a node whose Node object is gone from Kubernetes for good is released by whichever agent finds out first
// (departed.go), provided that this agent hears from Kubernetes. Nodes that a wiped or restored database has forgotten, although nothing
// released them, count as there until they are back (hold.go).
//
// The record also carries the addresses of the node's vswitch, which Kubernetes does not know, and those for its management. Records of
// other nodes arrive as events of the database watcher; every change that matters becomes a NodeUpdate, at a cost that does not depend on
// how many nodes there are. Records that make no sense are reported and skipped.
//
// The event loop waits for the database only to get an ID. Everything else is done by jobs.
//
// Example: examples/nodeids, a module of its own, with a cluster database of its own.
package nodesync
