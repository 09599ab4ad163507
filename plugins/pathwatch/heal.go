package pathwatch

import "time"

// attempts are those to heal one thing.
type attempts struct {
	made int
	last time.Time
}

// pause is how long to wait after the last attempt.
func (a *attempts) pause(t *Times) time.Duration {
	d := t.HealFirst
	for i := 1; i < a.made && d < t.HealMax; i++ {
		d *= 2
	}
	return min(d, t.HealMax)
}

// due reports whether the next attempt may be made, and counts it. What has been well for long begins again with short pauses.
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

// next is the first cause about which something can be done now.
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
		return action{} // first things first: what is worse explains the rest
	}
	return action{}
}
