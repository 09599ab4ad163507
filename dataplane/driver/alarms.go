package driver

import "time"

// alarm is one reason to wake at a time.
type alarm struct {
	at   time.Time // zero: off
	fire func(now time.Time)
}

func (a *alarm) set(at time.Time) { a.at = at }

func (a *alarm) off() { a.at = time.Time{} }

// alarms holds all alarms of a loop, which share one timer. They are few: a scan costs less than a heap.
type alarms []*alarm

func (as *alarms) add(fire func(now time.Time)) *alarm {
	a := &alarm{fire: fire}
	*as = append(*as, a)
	return a
}

// next returns the time of the first alarm; zero if all are off.
func (as alarms) next() time.Time {
	var first time.Time
	for _, a := range as {
		if !a.at.IsZero() && (first.IsZero() || a.at.Before(first)) {
			first = a.at
		}
	}
	return first
}

// run fires the alarms that are due, each once. An alarm is off when it fires; its function may set it again.
func (as alarms) run(now time.Time) {
	for _, a := range as {
		if !a.at.IsZero() && !a.at.After(now) {
			a.off()
			a.fire(now)
		}
	}
}
