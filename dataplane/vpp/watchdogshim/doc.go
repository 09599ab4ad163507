// Package watchdogshim is the source of a library that is preloaded into VPP 25.10 with worker threads. It prevents VPP from
// aborting if a worker does not get a processor for a second. README.md has the reasons; the vswitch's image and vpptest use the
// library.
package watchdogshim
