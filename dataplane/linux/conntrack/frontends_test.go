package conntrack

import (
	"maps"
	"net/netip"
	"testing"

	"contiv.dev/vswitch/dataplane/netlink/nettest"
)

// TestFrontends: connections to services are counted by the destination that their clients use; connections with source NAT only, and
// untranslated ones, are not.
func TestFrontends(t *testing.T) {
	ns := nettest.New(t)
	for _, args := range []string{
		"-s 10.0.0.8 -d 10.96.0.1 -p udp --sport 1 --dport 53 --dst-nat 10.0.0.1",
		"-s 10.0.0.8 -d 10.96.0.1 -p udp --sport 2 --dport 53 --dst-nat 10.0.0.2",
		"-s 10.0.0.2 -d 203.0.113.1 -p udp --sport 7 --dport 53 --src-nat 192.0.2.1",
		"-s 10.0.0.2 -d 10.0.0.3 -p udp --sport 7 --dport 53",
		"-s fd00::8 -d fd96::1 -p udp --sport 1 --dport 80 --dst-nat fd00::1",
	} {
		ns.Run("conntrack -I -t 300 " + args)
	}
	want := map[Frontend]Flows{
		{netip.MustParseAddrPort("10.96.0.1:53"), 17}: {Connections: 2}, {netip.MustParseAddrPort("[fd96::1]:80"), 17}: {Connections: 1},
	}
	if got, err := Frontends(t.Context(), ns.Namespace); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, want %v; %v", got, want, err)
	}
}
