package pathwatch

import (
	"context"
	"net/netip"
	"os"
	"testing"
	"time"
)

// TestPinger checks that addresses of this host answer, in both families and all in one round, and that an unused address does not, and
// takes no longer than the timeout.
func TestPinger(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("raw sockets need root")
	}
	p := NewPinger()
	defer p.Close()
	addrs := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1")}
	if _, err := os.Stat("/proc/net/if_inet6"); err != nil {
		addrs[1] = netip.MustParseAddr("127.0.0.2")
	}
	for range 3 {
		start := time.Now()
		took, err := p.Query(t.Context(), addrs, 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range took {
			if d < 0 {
				t.Errorf("%s does not respond", addrs[i])
			}
		}
		if d := time.Since(start); d >= 5*time.Second {
			t.Errorf("it took %s", d)
		}
	}
	start := time.Now()
	took, err := p.Query(t.Context(), []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("ff02::1:2:3")}, 300*time.Millisecond)
	if err != nil || took[0] < 0 || took[1] >= 0 || time.Since(start) > 3*time.Second {
		t.Errorf("%v %v after %s", took, err, time.Since(start))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if took, err := p.Query(ctx, addrs, time.Minute); err != nil || len(took) != len(addrs) {
		t.Errorf("cancelled: %v %v", took, err)
	}
}

// TestAnswersOfOthers checks messages that are not answers to the current probe: too short, from another round, for another program.
func TestAnswersOfOthers(t *testing.T) {
	p := &Pinger{token: 1 << 40, round: 7}
	other := &Pinger{token: 2, round: 7}
	late := &Pinger{token: 1 << 40, round: 6}
	v6 := func(p *Pinger, i int) []byte { return append(make([]byte, 8), p.payload(i)...) }
	v4 := func(p *Pinger, i int) []byte {
		return append(append([]byte{0x46}, make([]byte, 31)...), p.payload(i)...)
	}
	for _, tc := range []struct {
		what   string
		family int
		data   []byte
		ok     bool
	}{
		{"IPv6", 1, v6(p, 5), true}, {"IPv4 with options", 0, v4(p, 5), true}, {"nothing", 0, nil, false}, {"short", 1, v6(p, 5)[:23], false},
		{"of another", 1, v6(other, 5), false}, {"too late", 0, v4(late, 5), false}, {"a header that is too long", 0, []byte{0x4f}, false},
	} {
		if i, ok := p.ours(tc.family, tc.data); ok != tc.ok || ok && i != 5 {
			t.Errorf("%s: %d %v", tc.what, i, ok)
		}
	}
}
