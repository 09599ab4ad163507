// Package preflight says what a node lacks, before the vswitch finds out the hard way. It runs as the first container of the
// vswitch pod and by hand (contiv-init preflight).
//
// Gather collects Facts from /proc and /sys; Probe tries the kernel's features in a network namespace that is thrown away,
// since what a kernel was built with says little about which modules it may load. Check is pure: from facts and from what
// contiv.conf wants it finds what is missing, each Finding with what to do about it. A Finding that is an Error means that
// pods could not be served; a warning that they will be served, but not as well as they could.
package preflight
