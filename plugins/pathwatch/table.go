package pathwatch

import (
	"cmp"
	"fmt"
	"time"
)

// table is the state of the table of NAT sessions.
type table struct {
	before        Sessions
	full, filling bool
	refused       uint64    // without a long pause between two of them
	last          time.Time // the time of the last one
	begun         bool
}

// step returns the fault of the table. A table that reports refused sessions is full only if it refuses some: existing sessions may end as
// soon as room is needed. For any other table only the fill level is known.
func (t *table) step(at time.Time, s Sessions, times *Times) (c Cause, ok bool) {
	if s.Limit == 0 && !s.CountsRefused {
		*t = table{}
		return Cause{}, false
	}
	if s.CountsRefused {
		t.refusals(at, s, times)
	} else {
		t.full = above(t.full, s, 98, 90)
	}
	t.filling = (!s.CountsRefused || s.Keeps) && above(t.filling, s, 85, 75)
	c = Cause{Object: "NAT", Text: fmt.Sprintf("%d of %d sessions are taken", s.Used, s.Limit)}
	if s.Limit == 0 { // the sessions have not been counted yet
		c.Text = "all sessions are taken"
	}
	hint := "; " + cmp.Or(s.ListCommand, "contiv-netctl nat") + " lists them"
	switch {
	case t.full:
		c.Kind, c.Unready = NATTableFull, true
		c.Text += ": new connections fail" + hint
	case t.filling:
		c.Kind = NATTableFilling
		c.Text += hint
	}
	return c, t.full || t.filling
}

// above applies a threshold with hysteresis, in percent.
func above(was bool, s Sessions, on, off uint64) bool {
	if was {
		return s.Used*100 >= s.Limit*off
	}
	return s.Used*100 >= s.Limit*on
}

// refusals counts refused sessions, until none is refused for a while.
func (t *table) refusals(at time.Time, s Sessions, times *Times) {
	before, begun := t.before, t.begun
	t.before, t.begun = s, true
	if begun && s.Refused > before.Refused {
		t.refused += s.Refused - before.Refused
		t.last = at
	}
	if at.Sub(t.last) >= times.TableCalm {
		t.refused, t.full = 0, false
	}
	t.full = t.full || t.refused >= times.TableRefused
}
