package conntrack

import (
	"context"
	"errors"
	"net/netip"
	"testing"
)

// TestFoundAfterAnError: after an error of confirm, the list that it received stays unchanged, because another goroutine may still read it.
func TestFoundAfterAnError(t *testing.T) {
	var seen []Flow
	f := found{confirm: func(_ context.Context, flows []Flow) ([]bool, error) {
		seen = flows
		return nil, errors.New("stopped")
	}}
	flow := func(i int) Flow {
		return Flow{Proto: 17, From: netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), uint16(i))}
	}
	for i := range maxFound + 10 {
		f.add(t.Context(), flow(i), 2, entry{})
	}
	f.choose(t.Context())
	if f.err == nil || len(seen) != maxFound {
		t.Fatalf("error %v after %d connections", f.err, len(seen))
	}
	for i := range seen {
		if seen[i] != flow(i) {
			t.Fatalf("connection %d is %v now", i, seen[i])
		}
	}
}
