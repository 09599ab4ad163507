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
	if _, err := ns.Run(ctx, "sh", "-c", "ip link add vpp1 type veth peer vpp1p && ip link set vpp1p up && "+
		"ip addr add 172.30.1.2/24 dev vpp1 && "+
		"ip addr add fd00:172::2/64 dev vpp1 nodad && ip link set vpp1 up && "+
		"sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1"); err != nil {
		t.Fatal(err)
	}
	writes := 0
	start := func() *Keeper {
		k := New(slog.New(slog.DiscardHandler))
		k.nft = func(ctx context.Context, script string, args ...string) (string, error) {
			if args[0] == "-f" {
				writes++
			}
			cmd := ns.Command(ctx, "nft", args...)
			cmd.Stdin = strings.NewReader(script)
			out, err := cmd.CombinedOutput()
			if err != nil {
				return "", fmt.Errorf("%w: %s", err, out)
			}
			return string(out), nil
		}
		k.lead = func(a answers) error { return ns.Do(func() error { return here(a) }) }
		a := netip.MustParseAddr
		k.Set(false, Ports{
			Ports: []Port{{"tcp", 30080}, {"udp", 30080}}, At: []netip.Addr{a("10.99.0.1"), a("10.98.0.1")},
			To: a("172.30.1.1"), Link: "vpp1",
		})
		k.Set(true, Ports{
			Ports: []Port{{"tcp", 30081}}, At: []netip.Addr{a("fd00:99::1")}, To: a("fd00:172::1"), Link: "vpp1",
			Own: a("fd00:172::2"), Alias: a("fd10:1::fe"),
		})
		for ipv6, place := range []string{"203.0.113.1:80 172.30.1.1:30080 192.0.2.0/24", "[2001:db8::1]:80 [fd10:96::1]:80 ::/0"} {
			words := strings.Fields(place)
			to, from := netip.MustParseAddrPort(words[1]), []netip.Prefix{netip.MustParsePrefix(words[2])}
			via := netip.MustParseAddr([]string{"172.30.1.1", "fd00:172::1"}[ipv6])
			k.SetPlaces(ipv6 == 1, Places{Link: "vpp1", Via: via, Places: []Place{
				{At: netip.MustParseAddrPort(words[0]), Proto: "tcp", To: to, From: from, Own: true},
				{At: netip.MustParseAddrPort(words[0]), Proto: "udp", To: to},
			}})
		}
		return k
	}
	apply := func(k *Keeper, what string, want int) {
		t.Helper()
		writes = 0
		for range 2 {
			for i := range k.wanted {
				if err := k.apply(ctx, i); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
			}
		}
		if writes != want {
			t.Errorf("%s: %d tables were written, want %d", what, writes, want)
		}
	}
	k := start()
	apply(k, "first", 4)
	for _, way := range []string{"ip -4 route get 198.51.100.1 mark 0x10000001", "ip -6 route get 2001:db8:9::1 mark 0x10000000"} {
		if out, err := ns.Run(ctx, "sh", "-c", way); err != nil || !strings.Contains(out, "via") || !strings.Contains(out, "vpp1") {
			t.Errorf("%s: %s, %v", way, out, err)
		}
	}
	k = start()
	apply(k, "a new agent", 0)
	forwards := func(value string) error {
		if _, err := ns.Run(ctx, "sysctl", "-qw", "net.ipv6.conf.all.forwarding="+value); err != nil {
			t.Fatal(err)
		}
		return k.apply(ctx, 3)
	}
	if err := forwards("0"); err == nil || !strings.Contains(err.Error(), "net.ipv6.conf.all.forwarding") {
		t.Errorf("a host that does not forward: %v", err)
	}
	if err := forwards("1"); err != nil {
		t.Error(err)
	}
	for _, by := range []string{"nft delete table ip contiv-places; nft flush table ip6 contiv-places",
		"nft delete table ip contiv-nodeports; nft delete table ip6 contiv-nodeports",
		"nft delete element ip contiv-nodeports ports '{ tcp . 30080 }'; nft flush chain ip6 contiv-nodeports away"} {
		if _, err := ns.Run(ctx, "sh", "-c", by); err != nil {
			t.Fatal(err)
		}
		apply(k, by, 2)
	}
	if _, err := ns.Run(ctx, "nft", "flush", "ruleset"); err != nil {
		t.Fatal(err)
	}
	apply(k, "flush ruleset", 4)
	k.SetPlaces(false, Places{Link: "vpp1"})
	k.SetPlaces(true, Places{Link: "vpp1"})
	apply(k, "no places", 2)
	out, err := ns.Run(ctx, "sh", "-c", "nft list tables; ip -4 rule; ip -6 rule; "+
		"ip -4 route show table all; ip -6 route show table all")
	if err != nil || strings.Contains(out, placesTable) || strings.Contains(out, fmt.Sprint(answerTable)) {
		t.Errorf("left: %s, %v", out, err)
	}
}
