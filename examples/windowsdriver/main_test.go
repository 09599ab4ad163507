package main

import (
	"net/netip"
	"testing"
)

// TestRun checks that the friend's packets pass, and no others.
func TestRun(t *testing.T) {
	host, pod, err := run(netip.MustParseAddr("10.65.0.3"))
	if err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]bool{"10.65.0.3": true, "10.65.0.4": false} {
		if ok, err := allowed(host, pod, netip.MustParseAddr(from)); err != nil || ok != want {
			t.Errorf("from %s: allowed %t, %v; want %t", from, ok, err, want)
		}
	}
}
