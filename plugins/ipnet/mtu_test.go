package ipnet

import (
	"net"
	"net/netip"
	"strings"
	"testing"
)

// fakeHost is a host with one NIC.
type fakeHost struct{ mtu uint32 }

func (fakeHost) HostIPs() ([]net.IP, error) { return nil, nil }
func (fakeHost) WatchHostIPs(func())        {}
func (h fakeHost) NIC(name string) (NIC, error) {
	return NIC{Name: name, Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24")}, MTU: h.mtu}, nil
}

// TestMTU: pods' packets fit into the uplink with all that the overlay adds; what cannot fit is refused with the way out.
func TestMTU(t *testing.T) {
	const v6only = "ipamConfig: {podSubnetCIDR: 'fd10:1::/48'}\n"
	for _, tc := range []struct {
		name, config string
		dataplane    Dataplane
		uplink, want uint32
		fails        string
	}{
		{"default", uplink, DataplaneVPP, 1500, 1450, ""},
		{"jumbo frames", "useTAPInterfaces: true\n" + uplink, DataplaneVPP, 9000, 8950, ""},
		{"jumbo frames, but pods by VETH", uplink, DataplaneVPP, 9000, 1920, ""},
		{"jumbo frames on Linux", "", DataplaneLinux, 9000, 8950, ""},
		{"no overlay", "nodeToNodeTransport: nooverlay\n" + uplink, DataplaneVPP, 1500, 1500, ""},
		{"over IPv6", v6only + uplink, DataplaneVPP, 1500, 1430, ""},
		{"configured", "mtuSize: 1400\n" + uplink, DataplaneVPP, 1500, 1400, ""},
		{"configured too large", "mtuSize: 1460\n" + uplink, DataplaneVPP, 1500, 0, "use 1450 or less, or leave mtuSize out"},
		{"tiny uplink", uplink, DataplaneVPP, 600, 0, "leaves less than 576 bytes"},
		{"no NIC in Linux", "", DataplaneVPP, 1500, 1450, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newNode(t, tc.config)
			w.n.Dataplane, w.n.LinuxNsPlugin = tc.dataplane, fakeHost{tc.uplink}
			s, err := w.n.gather()
			switch {
			case tc.fails != "":
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("error %v, want one that says %q", err, tc.fails)
				}
			case err != nil:
				t.Error(err)
			case s.mtu != tc.want || s.local.PodMTU != tc.want:
				t.Errorf("MTU %d (transport: %d), want %d", s.mtu, s.local.PodMTU, tc.want)
			}
		})
	}
}

// TestMTUOfVeths: what VPP does not take from a VETH is refused, even where the uplink is not known.
func TestMTUOfVeths(t *testing.T) {
	n := newNode(t, "").n
	for _, tc := range []struct {
		mtu   uint32
		tap   bool
		fails bool
	}{{1920, false, false}, {1921, false, true}, {9000, true, false}} {
		err := n.checkMTU(&settings{mtu: tc.mtu, useTAP: tc.tap}, false)
		if (err != nil) != tc.fails || err != nil && !strings.Contains(err.Error(), "useTAPInterfaces: true") {
			t.Errorf("MTU %d, TAP %t: %v", tc.mtu, tc.tap, err)
		}
	}
}
