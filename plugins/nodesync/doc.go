// Package nodesync gives each node of the cluster a number and informs nodes about each other.
//
// The node ID is the first free positive integer. A node claims it by putting its record under /vnf-agent/contiv-ksr/allocatedIDs/<id> in
// the cluster database, atomically and only if the ID is free. If other nodes claim IDs at the same time, the node queues (queue.go), so
// that hundreds of nodes that start together get their IDs quickly and without gaps. All networks of a node follow from its ID (package
// ipam), so without an ID nothing can be configured: then the resync is aborted, and repeated once the database is available.
//
// An ID has one rightful owner, even if the database loses data (docs/adr/0006). A node keeps a UUID and its claim on its own disk
// (IdentityStore). The claim has a generation, which grows whenever the ID changes its owner, and a time; of two claims the one with the
// higher generation is right, then the older one (claim.go). If a node's record was lost, or replaced by a claim that is not right, the
// keeper puts the node's record back. A node whose claim is not right reports a FatalError with the fix, and gets a new ID when its agent
// is restarted. A node that claims its first ID waits for a probation time before it uses the ID, so that other nodes can object.
//
// Release leaves a record with the former owner of the ID, and a key that etcd deletes after the quarantine; only then is the ID free. So
// no clock has to be right. If the Node object of a node is permanently deleted from Kubernetes, the agent whose waiting time ends first
// releases the ID (departed.go), provided that this agent receives data from Kubernetes. Nodes that a wiped or restored database has lost,
// although they were not released, count as present until their records return (hold.go).
//
// The record also contains the addresses of the node's vswitch, which Kubernetes does not have, and its management addresses. Records of
// other nodes arrive as events of the database watcher; every relevant change becomes a NodeUpdate, at a cost that does not depend on the
// number of nodes. Invalid records are reported and skipped.
//
// The event loop waits for the database only to get an ID. Jobs do all other work with the database.
//
// Example: examples/nodeids, which is a separate module and has its own cluster database.
package nodesync
