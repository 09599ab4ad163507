// Package idalloc hands out numbers that are unique in the cluster, from pools: VNIs and VRFs of networks, tunnel IDs.
//
// An allocation is a label and an ID. All nodes that ask for a label get the same ID; the one that asked first owns it, and only the owner
// releases it. A released ID is not given to another label before a quarantine is over.
//
// In the cluster database an allocation is two keys, by label and by ID, which are written in one transaction and only if both are free. No
// key is shared by different labels, so hundreds of nodes can allocate at once. The first ID to be tried follows from the label: it is
// rarely taken, and after the loss of the database the label gets it again. The record of the pool itself is contiv's; allocations that
// contiv has put into it are moved to their own keys.
//
// The event loop never waits for the database. GetOrAllocateID answers from what is known, or returns ErrPending and lets a job do it; the
// result comes back as the event Allocated, and what is known changes with that event, not before. If the database loses allocations that
// this node uses, the job puts them back as they were.
package idalloc
