// Package preflight reports what a node lacks before the vswitch fails because of it. It runs as the first container of the vswitch pod and by
// hand (contiv-init preflight).
//
// Gather collects Facts from /proc and /sys. Probe tries the kernel's features in a temporary network namespace, because the kernel's build
// options do not show which modules it may load. Check is a pure function: it compares the facts with what contiv.conf requires, and returns a
// Finding, with its fix, for each thing that is missing. A Finding that is an Error means that pods could not be served; a warning means that
// they are served, but with limitations.
package preflight
