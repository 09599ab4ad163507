// Package watchdogshim is the source of a library which, preloaded into VPP 25.10 with worker threads, keeps it from aborting when
// a worker does not get a processor for a second. README.md says why; the vswitch's image and vpptest use it.
package watchdogshim
