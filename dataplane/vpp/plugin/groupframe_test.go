package plugin_test

import (
	"net/netip"
	"path/filepath"
	"slices"
	"testing"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// TestGroupFramesOfKnownFlow: packets in group frames on an uplink are dropped, even those of a flow that has just passed in unicast
// frames.
func TestGroupFramesOfKnownFlow(t *testing.T) {
	const many = 512 // two of VPP's frames
	r := newRig(t, vpptest.Options{FewPlugins: []string{"af_packet"}})
	up, pod := r.pg(""), r.pg("")
	r.pgEndpoint(up, contiv.CONTIV_ROLE_API_UPLINK)
	for n, ends := range [][2]netip.Addr{{up.v4, pod.v4}, {up.v6, pod.v6}} {
		known := ether(up.n, flow{udp, netip.AddrPortFrom(ends[0], 1000), netip.AddrPortFrom(ends[1], 2000)}.packet(0, make([]byte, 18)))
		group := slices.Clone(known)
		copy(group, []byte{0x33, 0x33, 0, 0, 0, 1})
		pcap := filepath.Join(t.TempDir(), "frames.pcap")
		writePcap(t, pcap, append(slices.Repeat([][]byte{known}, many), slices.Repeat([][]byte{group}, many)...)...)
		node := []string{"contiv-ip4-input", "contiv-ip6-input"}[n]
		before := r.counter(node, "passed")
		r.cli("packet-generator new pcap %s source pg%d name s%d limit %d", pcap, up.n, n, 2*many)
		r.cli("packet-generator enable-stream s%d", n)
		r.streamEnds()
		passed, dropped := r.counter(node, "passed")-before, r.counter(node, "unicast packet in a group frame")
		if passed != many || dropped != many {
			t.Errorf("%s: %d packets passed and %d were dropped, want %d of each", node, passed, dropped, many)
		}
	}
}
