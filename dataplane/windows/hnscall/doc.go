// Package hnscall calls Windows' Host Network Service with a timeout. Neither HNS nor hcsshim can cancel a call, and a call that hangs must
// not block its caller.
package hnscall
