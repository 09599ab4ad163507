// Package idalloc allocates numbers that are unique in the cluster, from pools: VNIs and VRFs of networks, tunnel IDs.
//
// An allocation is a label and an ID. All nodes get the same ID for a label. The first node that requests a label owns its ID, and only the
// owner can release it. A released ID is not assigned to another label before a quarantine has ended.
//
// In the cluster database an allocation has two keys, one for the label and one for the ID. They are written in one transaction, and only
// if both are free. Different labels share no key, so hundreds of nodes can allocate at the same time. The first ID that is tried is
// computed from the label: it is rarely in use, and after a loss of the database the label gets the same ID again. The record of the pool
// itself is that of contiv; allocations that contiv has stored in it are moved to their own keys.
//
// The event loop never waits for the database. GetOrAllocateID returns a known ID, or returns ErrPending and leaves the allocation to a
// job. The result arrives as the event Allocated; the known IDs change with that event, not before. If the database loses allocations that
// this node uses, the job restores them.
package idalloc
