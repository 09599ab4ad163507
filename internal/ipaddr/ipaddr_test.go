package ipaddr

import (
	"net/netip"
	"testing"
)

func TestFamilies(t *testing.T) {
	for text, want := range map[string][2]string{"192.0.2.1": {"192.0.2.1/32", "IPv4"}, "fd00::1": {"fd00::1/128", "IPv6"}} {
		a := netip.MustParseAddr(text)
		if p, f := HostPrefix(a).String(), Family(a); p != want[0] || f != want[1] {
			t.Errorf("%s: %s, %s; want %s", a, p, f, want)
		}
	}
}
