package conntrack

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/netlink/nettest"
)

// TestTranslated: connections are counted by the address behind the translation; others are not counted.
func TestTranslated(t *testing.T) {
	ns := nettest.New(t)
	fill(t, ns)
	for _, args := range []string{
		"-s 10.0.0.8 -d 10.96.0.1 -p udp --sport 1 --dport 53 --dst-nat 10.0.0.1",
		"-s 10.0.0.2 -d 203.0.113.1 -p udp --sport 7 --dport 53 --src-nat 192.0.2.1",
		"-s fd00::8 -d fd96::1 -p udp --sport 1 --dport 53 --dst-nat fd00::1",
	} {
		ns.Run("conntrack -I -t 300 " + args)
	}
	want := map[netip.Addr]int{
		netip.MustParseAddr("10.0.0.1"): 2, netip.MustParseAddr("10.0.0.2"): 1, netip.MustParseAddr("fd00::1"): 1,
	}
	if got, err := Translated(t.Context(), ns.Namespace); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, want %v; %v\n%s", got, want, err, ns.Run("conntrack -L"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Translated(ctx, ns.Namespace); err == nil {
		t.Error("it continues after its context has ended")
	}
}

// TestTranslatedOfMany measures the cost.
func TestTranslatedOfMany(t *testing.T) {
	const connections = 20000
	ns := nettest.New(t)
	ns.Run("ip link set lo up")
	ns.Run("nft add table ip t")
	ns.Run("nft add chain ip t o {type nat hook output priority filter;}")
	ns.Run("nft add rule ip t o udp dport 80 dnat to 127.0.0.1:81")
	if err := ns.Do(func() error {
		conn, err := net.ListenUDP("udp4", nil)
		if err != nil {
			return err
		}
		defer conn.Close()
		for i := range connections {
			to := &net.UDPAddr{IP: net.IPv4(127, 1, byte(i>>8), byte(i)), Port: 80}
			_, _ = conn.WriteToUDP([]byte{1}, to) // nothing listens there
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	got, err := Translated(t.Context(), ns.Namespace)
	took := time.Since(start)
	if n := got[netip.MustParseAddr("127.0.0.1")]; err != nil || n < connections/2 {
		t.Fatalf("%d connections, %v", n, err)
	}
	t.Logf("%d connections: %s", got[netip.MustParseAddr("127.0.0.1")], took.Round(10*time.Microsecond))
}
