package ipnet

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
)

// pastThePipe returns the networks that the pod VRF forwards to the main VRF, and the interface of its IPv4 default route.
func (w *node) pastThePipe() (past []string, out string) {
	for _, v := range w.want {
		r, ok := v.(*vpp_l3.Route)
		if !ok || r.VrfId != w.n.settings.podVRF {
			continue
		}
		dst := netip.MustParsePrefix(r.DstNetwork)
		switch {
		case r.DstNetwork == "0.0.0.0/0":
			out += r.OutgoingInterface
		case dst.Addr().Is4() && r.Type == vpp_l3.Route_INTER_VRF && r.ViaVrfId == w.n.settings.mainVRF:
			past = append(past, r.DstNetwork)
		}
	}
	slices.Sort(past)
	return past, out
}

// TestRoutesAroundThePipe checks that destinations that are not outside bypass the pipe: the cluster, this node and its host, other nodes
// as they are added and removed, and networks behind other NICs.
func TestRoutesAroundThePipe(t *testing.T) {
	w := newNodeWithID(t, dualTAP+"nodeToNodeTransport: nooverlay\nnodeConfig:\n- nodeName: n1\n"+
		"  mainVPPInterface: {interfaceName: host-eth1}\n"+
		"  otherVPPInterfaces:\n  - {interfaceName: host-eth2, ip: 198.51.100.7/24}\n", 1)
	w.n.hostIPsDump = func() ([]net.IP, error) { return []net.IP{net.IPv4(10, 99, 0, 1), net.IPv4(192, 168, 16, 1)}, nil }
	w.resync()
	own := []string{"10.1.0.0/16", "10.96.0.0/12", "10.99.0.1/32", "172.30.0.0/16", "192.168.16.1/32", "198.51.100.0/24"}
	if past, out := w.pastThePipe(); !slices.Equal(past, own) || out != egressPipe {
		t.Errorf("past it go %q, want %q; the rest goes to %q", past, own, out)
	}
	w.node("n2", fakePeer(2))
	both := append(slices.Clone(own), "10.99.0.2/32", "192.168.16.2/32")
	slices.Sort(both)
	if past, _ := w.pastThePipe(); !slices.Equal(past, both) {
		t.Errorf("with another node %q, want %q", past, both)
	}
	w.node("n2", nil)
	if past, _ := w.pastThePipe(); !slices.Equal(past, own) {
		t.Errorf("when it has left %q, want %q", past, own)
	}
}

// TestNoPipe checks that there is no pipe if nothing is translated, or if NAT on the uplink is sufficient.
func TestNoPipe(t *testing.T) {
	const noOverlay = "nodeToNodeTransport: nooverlay\n"
	for what, c := range map[string]struct {
		config string
	}{
		"overlay":            {config: dualTAP + uplink},
		"natExternalTraffic": {config: dualTAP + noOverlay + uplink + "natExternalTraffic: false\n"},
		"no NIC":             {config: dualTAP + noOverlay},
		"IPv6 only": {
			config: noOverlay + uplink + "ipamConfig:\n  podSubnetCIDR: fd10:1::/48\n  podSubnetOneNodePrefixLen: 64\n",
		},
	} {
		w := newNodeWithID(t, c.config, 1)
		w.resync()
		w.node("n2", fakePeer(2))
		past, out := w.pastThePipe()
		past = slices.DeleteFunc(past, func(p string) bool { return p == "172.30.1.0/24" }) // the route of the overlay to the host
		if out != "" || len(past) > 0 || w.want[nb.VppInterfaceKey(egressPipe)] != nil {
			t.Errorf("%s: a pipe %q, past it %q", what, out, past)
		}
	}
}
