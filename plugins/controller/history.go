package controller

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/plugins/controller/api"
)

// EventRecord is the record of an event. A record that has been published is never changed.
type EventRecord struct {
	SeqNum          uint64
	ProcessingStart time.Time
	ProcessingEnd   time.Time
	IsFollowUp      bool
	FollowUpTo      uint64 `json:",omitempty"`
	Name            string
	Description     string
	Method          string
	Handlers        []HandlerRecord
	// TxnError is the error of the commit. Error joins all errors (the argument of Done).
	TxnError string      `json:",omitempty"`
	Error    string      `json:",omitempty"`
	Txn      *txn.Record `json:",omitempty"`
}

// HandlerRecord is one call of a handler.
type HandlerRecord struct {
	Handler string
	Revert  bool   `json:",omitempty"`
	Change  string `json:",omitempty"`
	Error   string `json:",omitempty"`
}

func newRecord(seqNum, followUpTo uint64, ev api.Event, now time.Time) *EventRecord {
	return &EventRecord{
		SeqNum:          seqNum,
		ProcessingStart: now,
		IsFollowUp:      followUpTo != 0,
		FollowUpTo:      followUpTo,
		Name:            ev.GetName(),
		Description:     ev.String(),
		Method:          ev.Method().String(),
		Handlers:        []HandlerRecord{},
	}
}

func (r *EventRecord) addHandler(name string, revert bool, change string, err error) {
	hr := HandlerRecord{Handler: name, Revert: revert, Change: change}
	if err != nil {
		hr.Error = err.Error()
	}
	r.Handlers = append(r.Handlers, hr)
}

// String formats the record for an operator.
func (r *EventRecord) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#%d %s +%s %s", r.SeqNum, r.ProcessingStart.UTC().Format("2006-01-02T15:04:05.000Z"),
		r.ProcessingEnd.Sub(r.ProcessingStart).Round(time.Microsecond), r.body())
	return b.String()
}

// body returns the text of the record without its number and times.
func (r *EventRecord) body() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s] %s", r.Method, oneLine(r.Description))
	if r.IsFollowUp {
		fmt.Fprintf(&b, " (follow-up to #%d)", r.FollowUpTo)
	}
	b.WriteByte('\n')
	for _, h := range r.Handlers {
		name := h.Handler
		if h.Revert {
			name = "revert " + name
		}
		fmt.Fprintf(&b, "    %s:", name)
		if h.Change != "" {
			b.WriteString(" " + oneLine(h.Change))
		}
		if h.Error != "" {
			b.WriteString(" ! " + oneLine(h.Error))
		}
		b.WriteByte('\n')
	}
	if r.Txn != nil {
		for line := range strings.Lines(strings.TrimRight(r.Txn.String(), "\n")) {
			b.WriteString("    txn " + strings.TrimRight(line, "\n") + "\n")
		}
	}
	if r.TxnError != "" {
		b.WriteString("    txn ! " + oneLine(r.TxnError) + "\n")
	}
	if r.Error != "" {
		b.WriteString("    ! " + oneLine(r.Error) + "\n")
	}
	return b.String()
}

// maxHistoryOps bounds the operations, planned and executed, of all recorded transactions together. A resync of a large node has tens of
// thousands of them, so a bound on the number of records alone would not bound the memory.
const maxHistoryOps = 200_000

// history is the bounded list of recorded events. The records of the initial period are the most important ones and are not removed because
// of their age. Beyond maxOps the oldest recent records lose the operations of their transactions; the rest of such a record stays. The
// newest record is always complete.
type history struct {
	cfg    HistoryConfig
	maxOps int

	mu         sync.Mutex
	started    time.Time      // guarded by mu
	initial    []*EventRecord // guarded by mu
	initialOps int            // guarded by mu; in initial
	recent     []*EventRecord // guarded by mu; oldest first
	recentOps  int            // guarded by mu; in recent
	stripped   int            // guarded by mu; so many records at the head of recent have no operations
}

func newHistory(cfg HistoryConfig) *history { return &history{cfg: cfg, maxOps: maxHistoryOps} }

// ops returns the number of operations that the record holds.
func (r *EventRecord) ops() int {
	if r.Txn == nil {
		return 0
	}
	return len(r.Txn.Planned) + len(r.Txn.Executed)
}

// withoutOps returns a copy of the record without the operations of its transaction.
func (r *EventRecord) withoutOps() *EventRecord {
	short, t := *r, *r.Txn
	t.OpsDropped, t.Planned, t.Executed = r.ops(), nil, nil
	short.Txn = &t
	return &short
}

// start begins the initial period.
func (h *history) start(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.started = now
}

// add appends a record, which must not change after this call.
func (h *history) add(r *EventRecord) {
	if !h.cfg.RecordEventHistory {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	initialEnd := h.started.Add(time.Duration(h.cfg.PermanentlyRecordedInitPeriod))
	if r.ProcessingStart.Before(initialEnd) && len(h.initial) < h.cfg.EventHistoryLimit/2 && h.initialOps+r.ops() <= h.maxOps/2 {
		h.initial = append(h.initial, r)
		h.initialOps += r.ops()
	} else {
		h.recent = append(h.recent, r)
		h.recentOps += r.ops()
		h.removeOldLocked(r.ProcessingEnd)
	}
	h.limitOpsLocked()
}

// limitOpsLocked removes the operations of the oldest recent records until the rest is within the limit.
func (h *history) limitOpsLocked() {
	for ; h.initialOps+h.recentOps > h.maxOps && h.stripped < len(h.recent)-1; h.stripped++ {
		if r := h.recent[h.stripped]; r.ops() > 0 {
			h.recentOps -= r.ops()
			h.recent[h.stripped] = r.withoutOps() // others may be reading the published record
		}
	}
}

// removeOldLocked drops records that are too old or too many.
func (h *history) removeOldLocked(now time.Time) {
	horizon := now.Add(-time.Duration(h.cfg.EventHistoryAgeLimit))
	n := max(0, len(h.initial)+len(h.recent)-h.cfg.EventHistoryLimit)
	for n < len(h.recent) && h.recent[n].ProcessingEnd.Before(horizon) {
		n++
	}
	for _, r := range h.recent[:n] {
		h.recentOps -= r.ops()
	}
	h.stripped = max(0, h.stripped-n)
	clear(h.recent[:n]) // the array stays allocated for a while, the records need not
	h.recent = h.recent[n:]
}

// snapshot returns the current records, in ascending order.
func (h *history) snapshot(now time.Time) []*EventRecord {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removeOldLocked(now)
	return slices.Concat(h.initial, h.recent)
}
