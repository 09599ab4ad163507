package conn

import (
	"testing"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/nat44_ed"
)

// VPP gets both parts of a change in one read, whatever else is in flight and however fast VPP is.
func TestTogether(t *testing.T) {
	const rounds, first = 400, "nat44_add_del_identity_mapping"
	s := newServer(t)
	l := connect(t, s, Config{}).Lane()
	var o outcome
	change := &nat44_ed.Nat44AddDelLbStaticMapping{Locals: make([]nat44_ed.Nat44LbAddrPort, 100)}
	pairs := func(i int) {
		for range i % 40 {
			l.Request(up(i), o.done)
		}
		l.WriteAtOnce(1600, func() {
			l.Request(&nat44_ed.Nat44AddDelIdentityMapping{}, o.done)
			l.Request(change, o.done)
		})
	}
	for i := range rounds {
		pairs(i)
		if i%100 == 0 {
			flush(l)
		}
	}
	flush(l)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followed[first] != rounds || s.received[first] != rounds {
		t.Errorf("%d of %d were read together with what follows", s.followed[first], s.received[first])
	}
	if len(o.errs) > 0 || o.answered < 2*rounds {
		t.Errorf("%d answers, errors %v", o.answered, o.errs)
	}
}

// Requests without the guarantee are also sent: those of callbacks, and those that are too large.
func TestTogetherWithoutGuarantee(t *testing.T) {
	s := newServer(t)
	l := connect(t, s, Config{Window: 1}).Lane()
	answered := 0
	two := func(size int) {
		l.WriteAtOnce(size, func() {
			for range 2 {
				Call(l, up(1), func(_ *interfaces.SwInterfaceSetFlagsReply, err error) {
					if answered++; err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
	two(100)
	two(2 * outboxBytes)
	Call(l, up(1), func(*interfaces.SwInterfaceSetFlagsReply, error) { two(100) })
	flush(l)
	if answered != 6 {
		t.Errorf("%d answers", answered)
	}
}
