// Package scheduler turns transactions of northbound values into operations on a dataplane.
//
// It keeps one graph of values: what is desired, what is applied, what depends on what. A transaction changes desires; the difference to
// what is applied is planned once (deletes in reverse dependency order, then creates and updates in dependency order, grouped into waves)
// and carried out wave by wave, each wave pipelined on the backends. A value whose dependency is missing is pending, not wrong. One
// goroutine owns the graph.
//
// # A transaction's way
//
//   - batch.go: load validates the values and makes them the desired ones (graph.go); parents derive their items (derive.go).
//     Everything whose desire changed is touched.
//   - resync.go: for resyncs, and for values that an operation left unknown, the dataplane is dumped and the applied values
//     are corrected. What differs, appeared or is gone is touched.
//   - plan.go, plan_delete.go: the touched values, those they wake and those they take down are planned.
//   - exec.go: the plan is carried out; what it took for granted is checked again before each operation, since operations
//     before it may have failed. No value is created before what it depends on, or removed before what depends on it.
//   - batch.go: states are settled, the record is filed (history.go), failed values are queued for a retry (retry.go) or the
//     desires are put back and planned again (revert).
//
// # Rules worth knowing
//
// A failed create leaves nothing, a failed delete leaves everything, the result of a failed update is unknown. The latter, and any
// operation with an error that implements OutcomeUnknown() bool, makes the kind be dumped before the next operation on the value, or on one
// that depends on it. For a kind without a dump the value is deleted and created instead, so deletes must succeed for what is gone. When a
// dump fails, nothing is done to what it would have reported, and what was only just discovered is not removed: it may be used by that.
//
// When the dataplane's process has been replaced nothing is known any more: a transaction or a retry that comes before the resync dumps the
// kinds that it builds on (peers.go).
//
// A value that does not validate is reported and marked; the value before it stays, with its items. When the invalid value is the first one
// known (a restart), what was found under its key stays, but its items, which nothing derives, go.
//
// Item keys must be unique to their parents. An item may move from one parent to another in one transaction.
//
// Values of kinds with DeleteLast are removed after the creates and updates, so that what uses them never goes without: the agent may end between any two
// operations, and what is there then stays until the next one has started.
//
// The functions of a kind that panic end the scheduler; its job reports that (internal/lifecycle).
package scheduler
