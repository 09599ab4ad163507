// Package vpptest runs private VPP instances. Each instance has its own directory, sockets and shared memory names, so
// that any number of them run side by side, in tests (Start) and in benchmarks and demonstrations (Launch). It needs
// root, because VPP does.
package vpptest
