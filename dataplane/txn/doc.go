// Package txn is the transaction that the controller commits once per event, and the record of what became of it.
//
// A transaction says which northbound values (dataplane/nb) are desired; a caller that applies it (dataplane/scheduler, or one of the
// two-phase drivers) works out the difference. The package is the seam between plugins and dataplanes and holds only data and one
// interface.
package txn
