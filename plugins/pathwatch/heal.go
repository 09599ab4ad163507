package pathwatch

import "time"

// attempts counts the attempts of one repair.
type attempts struct {
	made int
	last time.Time
}

// pause returns how long to wait after the last attempt.
func (a *attempts) pause(t *Times) time.Duration {
	d := t.HealFirst
	for i := 1; i < a.made && d < t.HealMax; i++ {
		d *= 2
	}
	return min(d, t.HealMax)
}

// due reports whether the next attempt may be made, and counts it. After a long time without attempts the pauses are short again.
func (a *attempts) due(now time.Time, t *Times) bool {
	if a.made > 0 && now.Sub(a.last) >= t.HealMax+t.HealCalm {
		a.made = 0
	}
	if a.made > 0 && now.Sub(a.last) < a.pause(t) {
		return false
	}
	a.made++
	a.last = now
	return true
}

// next returns the first cause that can be repaired now.
func (c *core) next(at time.Time) action {
	for _, cause := range c.causes {
		if cause.heal == (Fix{}) || cause.unseen > 0 {
			continue
		}
		tries := c.tries[cause.heal]
		if tries == nil {
			tries = &attempts{}
			c.tries[cause.heal] = tries
		}
		if tries.due(at, &c.times) {
			return action{Fix: cause.heal, Why: cause.Cause}
		}
		return action{} // a worse cause comes first: it explains the following ones
	}
	return action{}
}
