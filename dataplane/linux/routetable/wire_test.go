package routetable

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
)

// TestWire: written routes are read back unchanged.
func TestWire(t *testing.T) {
	a := netip.MustParseAddr
	for _, r := range []route{
		{dst: prefix("0.0.0.0/0"), typ: unix.RTN_UNICAST, protocol: 202, index: 7, gw: a("10.0.0.1")},
		{dst: prefix("10.0.0.1/32"), typ: unix.RTN_UNICAST, protocol: 202, index: 7, src: a("10.0.0.9"), mtu: 1400},
		{dst: prefix("10.0.0.0/8"), typ: unix.RTN_BLACKHOLE, protocol: 202},
		{dst: prefix("::/0"), typ: unix.RTN_UNICAST, protocol: 202, index: 7, gw: a("fe80::1"), metric: 1024, onLink: true},
		{dst: prefix("fd00::1/128"), typ: unix.RTN_THROW, protocol: 202, metric: 1024},
	} {
		var b netlink.Batch
		putRoute(&b, r, unix.NLM_F_EXCL)
		netlink.Messages(b.Bytes(), func(m netlink.Message) {
			if got, keep := parseRoute(m.Payload); !keep || got != r || m.Type != unix.RTM_NEWROUTE || m.Flags&unix.NLM_F_EXCL == 0 {
				t.Errorf("%+v comes back as %+v", r, got)
			}
		})
	}
}

func FuzzParseRoute(f *testing.F) {
	var b netlink.Batch
	putRoute(&b, route{dst: prefix("fd00::1/128"), typ: 1, index: 7, gw: netip.MustParseAddr("fe80::1"), mtu: 1400}, 0)
	f.Add(b.Bytes()[unix.SizeofNlMsghdr:])
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, keep := parseRoute(data); keep && !r.dst.IsValid() {
			t.Error(r)
		}
	})
}
