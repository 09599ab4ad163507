package pathwatch

import (
	"fmt"
	"time"
)

// limits are the senders that have as many connections as they may have.
type limits map[string]*limited

// limited is one of them: how many of its connections were refused when it was looked at last, and since it was calm.
type limited struct {
	before, refused uint64
	last            time.Time // the last refusal
}

// step reports which senders are refused connections now. It is theirs to mend: the node serves all others.
func (l limits) step(at time.Time, list []Refusing, times *Times) (out []Cause) {
	seen := make(map[string]bool, len(list))
	for _, r := range list {
		seen[r.Name] = true
		e, known := l[r.Name]
		if !known {
			l[r.Name] = &limited{before: r.Refused} // those of long ago
			continue
		}
		if r.Refused > e.before {
			e.refused += r.Refused - e.before
			e.last = at
		}
		e.before = r.Refused
		if at.Sub(e.last) >= times.TableCalm {
			e.refused = 0
		}
		if e.refused >= times.TableRefused {
			out = append(out, Cause{Kind: ConnectionLimit, Object: r.Name, Text: fmt.Sprintf(
				"it has %d connections, and may not have more: %d new ones were refused", r.Open, e.refused)})
		}
	}
	for name := range l {
		if !seen[name] {
			delete(l, name)
		}
	}
	return out
}
