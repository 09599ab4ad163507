// Package driver implements the two-phase loop on which every in-process dataplane driver runs (Linux and Windows; felix's architecture,
// docs/architecture.md). A driver consists of this loop, its managers and the last part of its apply (Config.Apply).
//
// # Phase one: fan out
//
// Messages (package proto, and internal ones from further sources such as the interface monitor) are passed to every manager in the order of
// registration. Managers only record the desired state. After a message the loop takes up to 100 more from the same channel if they are
// available, so a burst becomes one batch.
//
// # Phase two: apply
//
// Apply calls every manager's CompleteDeferredWork and then Config.Apply, which writes. It is skipped until the datastore is in sync
// (proto.InSync was received) and every gate is open, so that the first write is a consistent snapshot and a restart of the agent never results
// in a partly applied policy. It is throttled: the bucket holds ten applies and gets another one each 100 ms, or each two apply times if
// applies are slower than that. A failed apply is retried after RetryInterval, or with the next message.
//
// # One goroutine
//
// Managers, Apply, Refresh.Fire, gates and Inspect's function all run on the loop's goroutine: they need no locks, and must not call Inspect or
// Stop. The loop never waits for a reader: endpoint status is stored in a map that holds the latest message per endpoint. Health and the
// heartbeat are sent from this goroutine too: when it hangs, both stop, and liveness turns false.
//
// # Panics
//
// A panic in code that the loop calls becomes an error that names the manager and the message; the driver is not ready until an apply succeeds
// without a panic. A manager that panicked over a message receives the message again after RetryInterval, and a third time after another
// RetryInterval; later messages for this manager are held behind it, in order. After the third panic the message is dropped, so that one object
// cannot stop all others. The driver then stays not ready until it is restarted, because the dataplane is incomplete.
//
// The package imports dataplane/proto for two messages only: InSync and ProcessStatusUpdate.
package driver
