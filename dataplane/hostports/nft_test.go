package hostports

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/testbed"
)

// TestNFT: the kernel takes the tables; what is deleted there is written again, and a new agent writes nothing.
func TestNFT(t *testing.T) {
	if _, err := exec.LookPath("nft"); err != nil || os.Geteuid() != 0 {
		t.Skip("there is no nft here, or no root")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ns, err := testbed.NewNamespace(ctx, fmt.Sprintf("cvhp%d", os.Getpid()%100000))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Delete(context.WithoutCancel(ctx)) })
	writes := 0
	start := func() *Keeper {
		k := New(slog.New(slog.DiscardHandler))
		k.nft = func(ctx context.Context, script string, args ...string) (string, error) {
			if args[0] == "-f" {
				writes++
			}
			cmd := ns.Command(ctx, "nft", args...)
			cmd.Stdin = strings.NewReader(script)
			out, err := cmd.Output()
			return string(out), err
		}
		a := netip.MustParseAddr
		k.Set(false, Ports{
			Ports: []Port{{"tcp", 30080}, {"udp", 30080}}, At: []netip.Addr{a("10.99.0.1"), a("10.98.0.1")},
			To: a("172.30.1.1"), Link: "vpp1",
		})
		k.Set(true, Ports{
			Ports: []Port{{"tcp", 30081}}, At: []netip.Addr{a("fd00:99::1")}, To: a("fd00:172::1"), Link: "vpp1",
			Own: a("fd00:172::2"), Alias: a("fd10:1::fe"),
		})
		return k
	}
	apply := func(k *Keeper, what string, want int) {
		t.Helper()
		writes = 0
		for range 2 {
			for _, ipv6 := range []bool{false, true} {
				if err := k.apply(ctx, ipv6); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
			}
		}
		if writes != want {
			t.Errorf("%s: %d tables were written, want %d", what, writes, want)
		}
	}
	k := start()
	apply(k, "first", 2)
	k = start()
	apply(k, "a new agent", 0)
	for _, by := range []string{"nft flush ruleset", "nft delete table ip contiv-nodeports; nft delete table ip6 contiv-nodeports",
		"nft delete element ip contiv-nodeports ports '{ tcp . 30080 }'; nft flush chain ip6 contiv-nodeports away"} {
		if _, err := ns.Run(ctx, "sh", "-c", by); err != nil {
			t.Fatal(err)
		}
		apply(k, by, 2)
	}
}
