package scheduler

import (
	"sync"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
)

// HistoryLimits bounds the stored records; the oldest records are removed first.
type HistoryLimits struct {
	Records int           // number of records; default 500
	Ops     int           // number of operations, planned and executed, in all records; default 200000
	Age     time.Duration // age of records; default 24 h
}

// HistoryFilter selects records; the zero value selects all.
type HistoryFilter struct {
	SeqNum       uint64 // only the record with this number
	Since, Until time.Time
	First, Last  int // the first or last records of the selection, at most this many; 0: all
}

// history is a ring of records. Records are not changed after they have been added.
type history struct {
	limits HistoryLimits

	mu   sync.Mutex
	seq  uint64
	ring []*txn.Record
	head int // index of the oldest record
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

// add numbers and stores a record, and drops the oldest records beyond the limits. The newest record always stays.
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

// History returns the stored records that f selects, oldest first. They must not be changed.
func (s *Scheduler) History(f HistoryFilter) []*txn.Record { return s.hist.list(f) }
