// Package hnscall makes calls of Windows' Host Network Service with a limit. Neither HNS nor hcsshim has a way to end a call, and one
// that hangs must not hold up what waits for it.
package hnscall
