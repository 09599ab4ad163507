// Package testbed makes a node on one machine: a network namespace that represents the host, in it VPP (or its fake) and
// the agent as real processes, and pods as further network namespaces that the real CNI binary wires through libcni. The
// demo, the end-to-end tests and the benchmarks are all based on it, so that they test the programs that users run.
//
// It needs root and touches nothing of the machine's own network namespace. Close removes everything that it made.
package testbed
