// Package scheduler turns transactions of northbound values into operations on a dataplane.
//
// It keeps one graph of values: what is desired, what is applied, what depends on what. A transaction changes desires; the
// difference to what is applied is planned once (deletes in reverse dependency order, then creates and updates in
// dependency order, grouped into waves) and carried out wave by wave, each wave pipelined on the backends. A value whose
// dependency is missing is pending, not wrong. One goroutine owns the graph.
package scheduler
