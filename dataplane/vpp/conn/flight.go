package conn

import "time"

// flight is the window of a lane: the requests that were sent and not answered yet, in order.
type flight struct {
	window   int // largest number of requests in flight
	count    int
	slots    []slot // a ring; larger than the window, so that a request whose answer was lost does not block the others
	head     uint32 // sequence number of the oldest request
	tail     uint32 // sequence number of the next request
	progress int64  // time of the last answer
}

type slot struct {
	pending
	sequence uint32
	busy     bool
	sent     int64
	bad      error // error of a part of a dump that could not be decoded
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

// find returns the request with the low bits of a sequence number, or nil if it has ended.
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

// left returns the time that remains for s. VPP answers in order, so the time runs from the last answer to
// any request.
func (f *flight) left(s *slot, now int64, limit time.Duration) time.Duration {
	return limit - time.Duration(now-max(s.sent, f.progress))
}

// leftOldest returns left of the request with the earliest deadline.
func (f *flight) leftOldest(now int64, limit time.Duration) time.Duration {
	return f.left(f.at(f.head), now, limit)
}
