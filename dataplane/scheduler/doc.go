// Package scheduler turns transactions of northbound values into operations on a dataplane.
//
// It keeps one graph of values: which values are desired, which are applied, and which depend on which. A transaction changes desired values.
// The difference between desired and applied values is planned once (deletes in reverse dependency order, then creates and updates in
// dependency order, grouped into waves) and carried out wave by wave; the operations of a wave are pipelined on the backends. A value whose
// dependency is missing is pending; that is not an error. One goroutine owns the graph.
//
// # Steps of a transaction
//
//   - batch.go: load validates the values and makes them the desired ones (graph.go); parents derive their items (derive.go). Every value whose
//     desired value changed is touched.
//   - resync.go: for resyncs, and for values whose state is unknown after an operation, the dataplane is dumped and the applied values are
//     corrected. Values that differ, appeared or disappeared are touched.
//   - plan.go, plan_delete.go: the planner plans the touched values, the values that wait for them and the values that depend on those that are
//     removed.
//   - exec.go: the plan is carried out. The assumptions of the plan are checked again before each operation, since earlier operations may have
//     failed. No value is created before its dependencies, or removed before the values that depend on it.
//   - batch.go: states are set, the record is stored (history.go), and failed values are queued for a retry (retry.go); or the former desired
//     values are restored and planned again (revert).
//
// # Rules
//
// After a failed create the value is absent, after a failed delete it is still present, and the result of a failed update is unknown. After a
// failed update, and after any operation with an error that implements OutcomeUnknown() bool, the descriptor's values are dumped before the
// next operation on the value or on one that depends on it. If the dumped value is equivalent to the previous version, the previous version is the
// applied one, even if the dump cannot distinguish it from the desired version. If the descriptor has no dump, the value is deleted and created instead, so deletes
// must succeed for values that are absent. When a dump fails, there are no operations on the values that it would have reported, and values
// that were just discovered are not removed: the values that could not be dumped may use them.
//
// An error may name values that the operation needs and that are no longer in the dataplane (Lost): these are dumped before the retry, too.
//
// When the dataplane's process has been replaced, the state of all values is unknown: a transaction or a retry that runs before the resync
// dumps the values of the descriptors that its plan depends on (peers.go).
//
// A value that does not validate is reported and marked; the previous value stays, with its items. If there is no previous value (after a
// restart), the value that a dump finds under the key stays, but its items, which no value derives, are removed.
//
// An item key must belong to one parent only. An item may move from one parent to another in one transaction.
//
// Values whose descriptor has DeleteLast are removed after the creates and updates, so that their users always have a working value: the agent may
// stop between any two operations, and the values that are present then stay until the next agent has started. If the operation that replaces a
// reference to such a value failed (Descriptor.Refs), in this transaction or in an earlier one, the value stays until that operation succeeds.
//
// If a function of a descriptor panics, the scheduler ends; its job reports the panic (internal/lifecycle).
package scheduler
