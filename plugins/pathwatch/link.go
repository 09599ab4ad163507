package pathwatch

import (
	"fmt"
	"time"
)

// flow is one direction of a link: the frames that wait while none is moved.
type flow struct {
	waiting uint64
	since   time.Time // the arrival of the first of them
	moved   bool      // in the last round
}

// step records that n frames have arrived since the last round, and whether any has been moved.
func (f *flow) step(now time.Time, n uint64, moved bool) {
	switch f.moved = false; {
	case n > 0 && moved:
		*f = flow{moved: true}
	case n > 0:
		if f.waiting == 0 {
			f.since = now
		}
		f.waiting += n
	}
}

// stands reports whether enough frames have been waiting for long enough.
func (f *flow) stands(now time.Time, t *Times) bool {
	return f.waiting >= t.LinkFrames && now.Sub(f.since) >= t.Link
}

// link is the state of a link.
type link struct {
	before  *Link // the counters of the previous round
	out, in flow
	down    int // rounds in a row without device or carrier
}

// reset resets the state: the link has been created again, or the observations do not count.
func (l *link) reset() { *l = link{} }

// pause keeps the counters as the base of the next round, and records no evidence.
func (l *link) pause(now *Link) { *l = link{before: now, down: l.down} }

// step compares two rounds.
func (l *link) step(at time.Time, now *Link) {
	before := l.before
	l.before = now
	if now == nil {
		l.reset()
		return
	}
	if now.Present && now.Carrier {
		l.down = 0
	} else {
		l.down++
	}
	if before == nil || before.Device != now.Device || less(now, before) {
		l.out, l.in = flow{}, flow{}
		return
	}
	offered, refused := now.Offered-before.Offered, now.Refused-before.Refused
	l.out.step(at, offered, offered > refused && (!now.Counts || now.Sent > before.Sent))
	taken, brought := now.Taken-before.Taken, now.Brought-before.Brought
	if !now.Counts {
		brought = taken
	}
	l.in.step(at, max(brought, taken), taken > 0)
}

// less reports whether a counter has decreased: then it belongs to another interface.
func less(a, b *Link) bool {
	return a.Offered < b.Offered || a.Refused < b.Refused || a.Taken < b.Taken || a.Sent < b.Sent || a.Brought < b.Brought
}

// doubtful reports whether frames are waiting, even for a moment: then other parts are not blamed.
func (l *link) doubtful() bool { return l.down > 0 || l.out.waiting > 0 || l.in.waiting > 0 }

// broken returns the fault of the uplink; ok is false if there is none.
func (l *link) broken(at time.Time, t *Times) (c Cause, ok bool) {
	now := l.before
	if now == nil {
		return Cause{}, false
	}
	heal := Fix{Recreate: now.Key}
	switch {
	case l.down >= t.LinkDown && !now.Present:
		return Cause{Kind: UplinkDown, Object: now.Device, heal: Fix{Resync: true}, Text: now.Device + " is not there, or is down"}, true
	case l.down >= t.LinkDown:
		return Cause{Kind: UplinkDown, Object: now.Device, Text: now.Device + " has no carrier: check the cable, and the device " +
			"at its other end"}, true
	case l.down > 0:
		return Cause{}, false
	case l.out.stands(at, t):
		return Cause{Kind: UplinkStuck, Object: now.Device, heal: heal, Text: fmt.Sprintf("%s transmits none of the frames "+
			"that VPP has for it: %d frames in %s", now.Device, l.out.waiting, at.Sub(l.out.since).Round(time.Second))}, true
	case l.in.stands(at, t):
		return Cause{Kind: UplinkDeaf, Object: now.Device, heal: heal, Text: fmt.Sprintf("VPP receives none of the frames that "+
			"arrive at %s: %d frames in %s", now.Device, l.in.waiting, at.Sub(l.in.since).Round(time.Second))}, true
	}
	return Cause{}, false
}
