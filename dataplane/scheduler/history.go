package scheduler

import (
	"sync"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
)

// HistoryLimits bound the records that are kept; the oldest go first.
type HistoryLimits struct {
	Records int           // number of records; default 500
	Ops     int           // number of operations, planned and executed, in all records; default 200000
	Age     time.Duration // age of records; default 24 h
}

// HistoryFilter chooses records; the zero value chooses all.
type HistoryFilter struct {
	SeqNum       uint64 // only this one
	Since, Until time.Time
	First, Last  int // so many of what is left; 0: all of it
}

// history is a ring of records. Records are not changed after they have been added.
type history struct {
	limits HistoryLimits

	mu   sync.Mutex
	seq  uint64
	ring []*txn.Record
	head int // the oldest
	n    int
	ops  int
}

func newHistory(l HistoryLimits) *history {
	if l.Records <= 0 {
		l.Records = 500
	}
	if l.Ops <= 0 {
		l.Ops = 200_000
	}
	if l.Age <= 0 {
		l.Age = 24 * time.Hour
	}
	return &history{limits: l, ring: make([]*txn.Record, l.Records)}
}

func weight(r *txn.Record) int { return len(r.Planned) + len(r.Executed) }

// add files a record, numbers it, and drops what exceeds the limits. The newest record always stays.
func (h *history) add(r *txn.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seq++
	r.SeqNum = h.seq
	if h.n == len(h.ring) {
		h.dropOldest()
	}
	h.ring[(h.head+h.n)%len(h.ring)] = r
	h.n++
	h.ops += weight(r)
	for h.n > 1 && (h.ops > h.limits.Ops || r.Start.Sub(h.ring[h.head].Start) > h.limits.Age) {
		h.dropOldest()
	}
}

func (h *history) dropOldest() {
	h.ops -= weight(h.ring[h.head])
	h.ring[h.head] = nil
	h.head = (h.head + 1) % len(h.ring)
	h.n--
}

func (h *history) list(f HistoryFilter) []*txn.Record {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []*txn.Record
	for i := range h.n {
		r := h.ring[(h.head+i)%len(h.ring)]
		switch {
		case f.SeqNum != 0 && r.SeqNum != f.SeqNum:
		case !f.Since.IsZero() && r.Start.Before(f.Since):
		case !f.Until.IsZero() && r.Start.After(f.Until):
		default:
			out = append(out, r)
		}
	}
	if f.First > 0 {
		out = out[:min(f.First, len(out))]
	}
	if f.Last > 0 {
		out = out[max(0, len(out)-f.Last):]
	}
	return out
}

// History gives the records that are kept, oldest first. They must not be changed.
func (s *Scheduler) History(f HistoryFilter) []*txn.Record { return s.hist.list(f) }
