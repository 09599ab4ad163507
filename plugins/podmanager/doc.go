// Package podmanager turns the CNI requests of the container runtime into events, and stores the node's attachments.
//
//	contiv-cni ── internal/cniapi ──► PodManager.Handle ── AddPod, DeletePod ──► event loop ──► ipam, ipnet, …
//	                                        ▲                                        │
//	                                        └───────────── attachments ◄─────────────┘ Update, Revert, SetAddresses
//
// An attachment is one interface of one sandbox. It is identified by container ID and interface name, never by pod, since two sandboxes of
// one pod may exist at a time and the deletion of the older one must not affect the newer one. Each attachment is stored in a file
// (Config.StoreDir, on a tmpfs: neither attachments nor pods survive a reboot), which is written before the dataplane is programmed and
// removed after the deletion. So a restarted agent has the owner of each address without a query to the runtime, and it works with any
// runtime.
//
// # What runs where
//
// The event loop is the only writer of attachments. Requests run on the CNI server's goroutines; they read attachments under a lock, push
// events and wait. All operations on one attachment are serialised by a lock: the request holds it, and so does each event that the request
// pushes, and it is free when the last holder has finished. If the caller of a request times out, the request returns; its event is
// completed and holds the lock until then, so that a following DEL waits for the ADD before it.
//
// # Failures
//
// An ADD that fails is reverted, including the attachment. If the caller disconnects before an ADD succeeds, the attachment remains, with
// its address, until the runtime repeats the ADD, deletes it, or collects garbage. A DEL succeeds when the attachment is no longer wanted;
// the scheduler repairs remaining state in the dataplane.
package podmanager
