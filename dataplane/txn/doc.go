// Package txn defines the transaction that the controller commits once per event, and the record of its results.
//
// A transaction lists the northbound values (dataplane/nb) that are desired; the component that applies it (dataplane/scheduler, or one of the
// two-phase drivers) computes the difference. The package is the interface between plugins and dataplanes and holds only data and one
// interface.
package txn
