package pathwatch

import (
	"fmt"
	"time"
)

// limits holds the senders that have reached their limit of connections.
type limits map[string]*limited

// limited is one such sender: its number of refused connections at the last check, and since it was last calm.
type limited struct {
	before, refused uint64
	last            time.Time // the last refusal
}

// step returns the senders whose connections are currently refused. The fault is the sender's, not the node's: the node serves all others.
func (l limits) step(at time.Time, list []Refusing, times *Times) (out []Cause) {
	seen := make(map[string]bool, len(list))
	for _, r := range list {
		seen[r.Name] = true
		e, known := l[r.Name]
		if !known {
			l[r.Name] = &limited{before: r.Refused} // earlier refusals do not count
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
				"it has %d connections, which is its limit: %d new connections were rejected", r.Open, e.refused)})
		}
	}
	for name := range l {
		if !seen[name] {
			delete(l, name)
		}
	}
	return out
}
