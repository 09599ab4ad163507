// Package nodesync gives each node of the cluster a number and tells nodes about each other.
//
// The node ID is the first free positive integer. It is claimed by putting the node's record under
// /vnf-agent/contiv-ksr/allocatedIDs/<id> in the cluster database, atomically and only if there is none; two nodes never get
// the same one. After a restart a node finds its record by its name, in the database or in the node's own copy of it. All of
// the node's networks follow from the ID (package ipam), so without an ID nothing can be configured: then the resync is
// aborted, and comes again once the database is back.
//
// The record also carries the addresses of the node's vswitch, which Kubernetes does not know. They are published by a job of
// its own, because the event loop must not wait for the database. It writes the record only where there is none or where the
// record is this node's own, with compare-and-swap, until it has been written.
//
// Records of other nodes arrive as events of the database watcher. Every change that matters to others becomes a NodeUpdate.
package nodesync
