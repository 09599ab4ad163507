// Package podmanager turns what the container runtime asks for through CNI into events, and keeps the node's attachments.
//
//	contiv-cni ── internal/cniapi ──► PodManager.Handle ── AddPod, DeletePod ──► event loop ──► ipam, ipnet, …
//	                                        ▲                                        │
//	                                        └───────────── attachments ◄─────────────┘ Update, Revert, SetAddresses
//
// An attachment is one interface of one sandbox, named by container ID and interface name; never by pod, since two sandboxes of one pod may
// exist at a time and the deletion of the older one must not touch the newer. Attachments are kept in a file each (Config.StoreDir, on a
// tmpfs: neither they nor the pods survive a reboot), which is written before the dataplane is programmed and removed after the deletion.
// So a restarted agent has the owner of each address without asking the runtime, and it works with any runtime.
//
// # What runs where
//
// The event loop is the only writer of attachments. Requests run on the CNI server's goroutines; they read attachments under a lock, push
// events and wait. All that is done for one attachment is serialised by an op: it is taken by the request and by each event that the
// request pushes, and it is free when the last of them is done. A request whose caller gave up returns; its event is completed and holds
// the op until then, so that a DEL which follows waits for the ADD before it.
//
// # Failures
//
// An ADD that fails is reverted, with the attachment. An ADD whose caller is gone before it succeeds leaves an attachment, with its
// address, until the runtime repeats the ADD, deletes it, or collects garbage. A DEL succeeds when the attachment is not wanted any more;
// what the dataplane still has of it is the scheduler's to repair.
package podmanager
