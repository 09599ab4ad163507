package services

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"contiv.dev/vswitch/test/testbed/whoami"
)

// TestFakeReuse checks that a client that uses a port again, for another service with the same backend or for the backend
// itself, loses its connection on the fake in the same cases as on VPP (letter H of plugins/service/README.md; TestFaults of
// renderer/nat44), and in no others.
func TestFakeReuse(t *testing.T) {
	if !slices.Contains(modes(), fake) {
		t.Skip("fake: skipped: not among the modes")
	}
	w := newWorld(t, fake)
	one, two := w.service("one", 1, nil), w.service("two", 2, nil)
	w.put(one, "a")
	w.put(two, "a")
	w.await("barrier")
	client := w.fakes.site("p1")
	for i, turn := range []struct {
		use  []string
		lost bool // the last connection is lost
	}{
		{[]string{"one", "one", "one"}, false},
		{[]string{"one", "two"}, false},
		{[]string{"one", "two", "one"}, true},
		{[]string{"one", "direct"}, true},
		{[]string{"direct", "one"}, false},
	} {
		for f, family := range w.mode.families() {
			places := map[string]netip.AddrPort{
				"one": at(one, f), "two": at(two, f), "direct": netip.AddrPortFrom(w.addrs["a"][f], targetPort),
			}
			for n, to := range turn.use {
				err := client.tryFrom(uint16(40000+i), places[to])
				last := n == len(turn.use)-1
				if last && turn.lost != errors.Is(err, whoami.ErrDropped) || last && !turn.lost && err != nil {
					t.Errorf("IPv%s: %v from one port, the last: %v; VPP loses it: %t", family, turn.use, err, turn.lost)
				}
			}
		}
	}
}

// tryFrom makes a TCP connection from a port.
func (s *fakeSite) tryFrom(port uint16, to netip.AddrPort) error {
	c, err := s.connect(port, "tcp", to)
	if err != nil {
		return err
	}
	_, err = c.Query()
	return errors.Join(err, c.Close())
}
