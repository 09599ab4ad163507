// Package testbed makes a node on one machine: a network namespace that plays the host, in it VPP (or its fake) and the
// agent as real processes, and pods as further network namespaces that are wired by the real CNI binary through libcni. The
// demo, the end-to-end tests and the benchmarks all stand on it, so what they show is what a user runs.
//
// It needs root and touches nothing of the machine's own network namespace. Close removes everything it made.
package testbed
