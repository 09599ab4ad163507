// Package vpptest runs private VPP instances: each has its own directory, sockets and shared memory names, so that any
// number run side by side, in tests (Start) as well as in benchmarks and demonstrations (Launch). It needs root, as VPP
// does.
package vpptest
