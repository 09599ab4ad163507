package whoami

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed/netns"
)

// TestSCTP checks that a server answers the first packet of an association at its ports and at no others, in both families; damaged packets
// are ignored.
func TestSCTP(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: network namespaces need root")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ns, err := netns.New(ctx, netns.UniqueName("cvw"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ns.Delete(context.WithoutCancel(ctx)) }()
	if _, err := ns.Run(ctx, "ip", "link", "set", "lo", "up"); err != nil {
		t.Fatal(err)
	}
	s, err := ServeSCTP(ns, "me", 80, 81)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, address := range []string{"127.0.0.1", "127.0.0.2", "::1"} {
		for port, want := range map[uint16]error{80: nil, 81: nil, 82: ErrDropped} {
			to := netip.AddrPortFrom(netip.MustParseAddr(address), port)
			c, err := DialSCTP(ctx, ns, to, 300*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				a, err := c.Query()
				if !errors.Is(err, want) || err == nil && (a.Server != "me" || a.Local != to || a.Client.Port() != c.port) {
					t.Errorf("%s: %+v, error %v", to, a, err)
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	b := sctpPacket{from: 1, to: 2, tag: 3, chunk: chunkInitAck, own: 4, cookie: []byte("five5")}.bytes()
	if p, ok := parseSCTP(b); !ok || p.from != 1 || p.to != 2 || p.tag != 3 || p.own != 4 || string(p.cookie) != "five5" {
		t.Errorf("read %+v %t", p, ok)
	}
	for i := range b {
		b[i] ^= 1
		if p, ok := parseSCTP(b); ok {
			t.Errorf("byte %d is damaged: %+v", i, p)
		}
		b[i] ^= 1
	}
}
