package iptables

import "time"

// repairsInARow is how many repairs, each at the first look after the last, are taken for accidents. After that another
// program is fighting over the rules, and looks are spread out as if nothing had been written.
const repairsInARow = 3

// checks reports when to look whether the kernel's table is still as written: at the refresh interval, and after a write at times that
// double, to notice soon when a program that had read the table before writes it back after us.
type checks struct {
	refresh, first time.Duration

	refreshAt time.Time     // zero: never
	againAt   time.Time     // zero: never
	interval  time.Duration // up to againAt
	repairs   int
}

// seen notes that the table was read.
func (c *checks) seen(now time.Time) {
	if c.refresh > 0 {
		c.refreshAt = now.Add(c.refresh)
	}
}

func (c *checks) due(now time.Time) bool {
	return !c.refreshAt.IsZero() && !now.Before(c.refreshAt) || !c.againAt.IsZero() && !now.Before(c.againAt)
}

// done notes the end of an apply. After a write the first look is not before atLeast.
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
		c.againAt = now.Add(c.interval)
	case looked:
		if c.interval *= 2; c.interval > maxPostWrite {
			c.againAt = time.Time{}
		} else {
			c.againAt = now.Add(c.interval)
		}
	}
}

// next is when the next look is due; zero: never.
func (c *checks) next() time.Time {
	if c.againAt.IsZero() || !c.refreshAt.IsZero() && c.refreshAt.Before(c.againAt) {
		return c.refreshAt
	}
	return c.againAt
}
