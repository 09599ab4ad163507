package iptables

import "time"

// repairsInARow is the number of repairs, each at the first check after the last repair, that are treated as accidental. After that another
// program is repeatedly changing the rules, and checks continue at doubling intervals as if nothing had been written.
const repairsInARow = 3

// checks schedules the checks whether the kernel's table is still as written: at the refresh interval, and after a write at doubling
// intervals. The latter soon detect that a program which had read the table before our write has written its old state back.
type checks struct {
	refresh, first time.Duration

	refreshAt time.Time     // zero: never
	againAt   time.Time     // zero: never
	interval  time.Duration // the interval that ends at againAt
	repairs   int
	scheduled bool // the last apply has set againAt
}

// seen records that the table was read.
func (c *checks) seen(now time.Time) {
	if c.refresh > 0 {
		c.refreshAt = now.Add(c.refresh)
	}
}

func (c *checks) due(now time.Time) bool {
	return !c.refreshAt.IsZero() && !now.Before(c.refreshAt) || !c.againAt.IsZero() && !now.Before(c.againAt)
}

// done records the end of an apply. After a write the first check is at least atLeast later.
func (c *checks) done(now time.Time, wrote, repair bool, atLeast time.Duration) {
	looked := !c.againAt.IsZero() && !now.Before(c.againAt)
	switch {
	case wrote && repair:
		c.repairs++
	case wrote || looked:
		c.repairs = 0
	}
	switch {
	case c.first <= 0:
	case wrote && (!repair || c.repairs <= repairsInARow):
		c.interval = max(c.first, atLeast)
		c.againAt, c.scheduled = now.Add(c.interval), true
	case looked:
		if c.interval *= 2; c.interval > maxPostWrite {
			c.againAt = time.Time{}
		} else {
			c.againAt, c.scheduled = now.Add(c.interval), true
		}
	}
}

// align postpones the next check until a later check of another table, by at most most.
func (c *checks) align(at time.Time, most time.Duration) {
	if !c.againAt.IsZero() && at.After(c.againAt) && at.Sub(c.againAt) <= most {
		c.againAt = at
	}
}

// next returns when the next check is due; zero: never.
func (c *checks) next() time.Time {
	if c.againAt.IsZero() || !c.refreshAt.IsZero() && c.refreshAt.Before(c.againAt) {
		return c.refreshAt
	}
	return c.againAt
}
