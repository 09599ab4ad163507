package driver

import "time"

// Clock is the time that the loop lives in.
type Clock interface {
	Now() time.Time
	NewTimer(d time.Duration) Timer
}

// Timer is what the loop uses of a time.Timer. A stale tick after Reset does no harm.
type Timer interface {
	C() <-chan time.Time
	Reset(d time.Duration) bool
	Stop() bool
}

// RealClock is the machine's time.
func RealClock() Clock { return realClock{} }

type realClock struct{}

type realTimer struct{ *time.Timer }

func (realClock) Now() time.Time                 { return time.Now() }
func (realClock) NewTimer(d time.Duration) Timer { return realTimer{time.NewTimer(d)} }
func (t realTimer) C() <-chan time.Time          { return t.Timer.C }
