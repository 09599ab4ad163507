// Package driver is the two-phase loop that every in-process dataplane driver runs on (Linux and Windows; felix's
// architecture, docs/architecture.md). A driver is this loop, its managers and the tail of its apply.
//
// # Phase one: fan out
//
// Messages (package proto, and internal ones from further sources such as the interface monitor) are handed to every manager
// in the order of registration. Managers only note what they want. After a message the loop takes up to 100 more of the same
// channel if they are there, so a burst becomes one batch.
//
// # Phase two: apply
//
// Every manager's CompleteDeferredWork, then Config.Apply, which writes. It is skipped until the datastore is in sync
// (proto.InSync was seen) and every gate is open, so that the first write is a consistent snapshot and the agent's restart
// never shows as half a policy. It is throttled: the bucket holds ten applies and gets another each 100 ms, or each two apply
// times if applies are slower than that. A failed apply is retried after RetryInterval, or with the next message.
//
// # One goroutine
//
// Managers, Apply, Refresh.Fire, gates and Inspect's function all run on the loop's goroutine: they need no locks, and must not
// call Inspect or Stop. Nothing in the loop waits for a reader: endpoint status goes to a map of the latest per endpoint.
// Health and the heartbeat are sent from this goroutine too: when it hangs, both fall silent, and liveness turns false.
//
// # Panics
//
// A panic in anything that the loop calls becomes an error that names the manager and the message; the driver is not ready
// until an apply succeeded without one. A manager that panicked over a message gets it once more after RetryInterval, and once
// more after that; what came for this manager meanwhile is kept behind it, in order. The third time the message is given up,
// so that one object cannot stop all others; the driver then stays not ready, as the dataplane lacks something, until it is
// restarted.
//
// The package imports dataplane/proto for two messages only: InSync and ProcessStatusUpdate.
package driver
