package whoami

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed/netns"
)

// maxWait is the timeout for an answer on a busy machine.
const maxWait = 20 * time.Second

// TestOutcomes checks that an answer names the server and the client, that a closed port is a rejection, and that an unused
// address gives no answer.
func TestOutcomes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	ctx := context.Background()
	ns, err := netns.New(ctx, fmt.Sprintf("whoami%d", os.Getpid()%100000))
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Delete(ctx)
	for _, args := range [][]string{
		{"link", "add", "sink", "up", "type", "veth", "peer", "name", "far"}, {"link", "set", "far", "up"},
		{"addr", "add", "192.0.2.1/24", "dev", "sink"},
		{"neigh", "add", "192.0.2.9", "lladdr", "02:00:00:00:00:09", "dev", "sink"},
	} {
		if _, err := ns.Run(ctx, "ip", args...); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Serve(ns, "me", 8080)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, network := range []string{"tcp", "udp"} {
		for _, addr := range []string{"127.0.0.1:8080", "[::1]:8080"} {
			a, err := Query(ctx, ns, network, netip.MustParseAddrPort(addr), maxWait)
			if err != nil || a.Server != "me" || a.Local.Port() != 8080 || !a.Client.Addr().IsLoopback() {
				t.Errorf("%s %s: %+v, %v", network, addr, a, err)
			}
		}
		for addr, want := range map[string]error{"127.0.0.1:1": ErrRejected, "[::1]:1": ErrRejected, "192.0.2.9:1": ErrDropped} {
			wait := maxWait
			if want == ErrDropped {
				wait = 200 * time.Millisecond // no answer is expected
			}
			if _, err := Query(ctx, ns, network, netip.MustParseAddrPort(addr), wait); !errors.Is(err, want) {
				t.Errorf("%s %s: %v, want %v", network, addr, err, want)
			}
		}
	}
}
