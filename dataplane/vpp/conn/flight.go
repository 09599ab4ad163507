package conn

import "time"

// flight is the window of a lane: the requests that were sent and have not been answered, in order.
type flight struct {
	window   int // how many there may be
	count    int
	slots    []slot // a ring; larger than the window, so that a request whose answer was lost does not stop the others
	head     uint32 // sequence number of the oldest
	tail     uint32 // of the next one
	progress int64  // when an answer last came
}

type slot struct {
	pending
	sequence uint32
	busy     bool
	sent     int64
	bad      error // a part of a dump that could not be decoded
}

func (f *flight) init(window int) {
	size := 1
	for size < 4*window {
		size *= 2
	}
	f.window, f.slots = window, make([]slot, size)
}

func (f *flight) room() bool { return f.count < f.window && int(f.tail-f.head) < len(f.slots) }

func (f *flight) at(sequence uint32) *slot { return &f.slots[int(sequence)&(len(f.slots)-1)] }

func (f *flight) next() uint32 { return f.tail }

func (f *flight) add(p pending, now int64) {
	*f.at(f.tail) = slot{pending: p, sequence: f.tail, busy: true, sent: now}
	f.tail++
	f.count++
}

// find is the request with the low bits of a sequence number, or nil if it has ended.
func (f *flight) find(low uint32) *slot {
	s := f.at(low)
	if !s.busy || s.sequence&sequenceMask != low {
		return nil
	}
	return s
}

func (f *flight) drop(s *slot) {
	*s = slot{}
	f.count--
	for f.head != f.tail && !f.at(f.head).busy {
		f.head++
	}
}

// left is how long s may still take. VPP answers in order, so the time runs from the last answer to anything.
func (f *flight) left(s *slot, now int64, limit time.Duration) time.Duration {
	return limit - time.Duration(now-max(s.sent, f.progress))
}

// leftOldest is left of the request with the earliest deadline.
func (f *flight) leftOldest(now int64, limit time.Duration) time.Duration {
	return f.left(f.at(f.head), now, limit)
}
