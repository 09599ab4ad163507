package vppfake_test

import (
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/af_packet"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/tapv2"

	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// TestLongPackets tests that a packet that does not fit in af_packet's ring crashes VPP, whether it represents many packets or is longer than
// its header states. All possible packets fit in rings that dataplane/vpp creates.
func TestLongPackets(t *testing.T) {
	small := &af_packet.AfPacketCreateV3{Mode: af_packet.AF_PACKET_API_MODE_ETHERNET, HostIfName: "out", TxFrameSize: 2048, TxFramesPerBlock: 256}
	ours := iface.AfPacketRequest("out", 1500, iface.DefaultAfPacketRings())
	for _, c := range []struct {
		name         string
		flags        tapv2.TapFlags
		uplink       *af_packet.AfPacketCreateV3
		size         int
		gso, padding int
		dies         bool
		drops        string
	}{
		{"MTU", 0, small, 1472, 0, 0, false, ""},
		{"taken in whole", tapv2.TAP_API_FLAG_GSO, small, 64000, 1400, 0, true, ""},
		{"cut up by the pod's kernel", 0, small, 64000, 1400, 0, false, ""},
		{"segments longer than the MTU", tapv2.TAP_API_FLAG_GSO, small, 64000, 1473, 0, false, "too big"},
		{"longer than it says", 0, small, 100, 0, 3000, true, ""},
		{"longer than it says, in our ring", 0, ours, 100, 0, 60000, false, ""},
		{"taken in whole, in our ring", tapv2.TAP_API_FLAG_GSO, ours, 64000, 1400, 0, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, conn := client(t, vppfake.Config{})
			s := &script{t: t, conn: conn}
			must(t, conn, &tapv2.TapCreateV3{ID: none, MacAddress: portMAC(1), TapFlags: c.flags})
			must(t, conn, c.uplink)
			must(t, conn, &interfaces.SwInterfaceSetMtu{SwIfIndex: 2, Mtu: []uint32{1500, 0, 0, 0}})
			s.up(1)
			s.up(2)
			s.addr(1, "10.1.0.1/24")
			s.addr(2, "10.2.0.1/24")
			s.neighbor(true, 2, "10.2.0.2", hostMAC(2).String(), 1)
			p := udp(1, 1, "10.1.0.2", "10.2.0.2")
			p.Size, p.GSO, p.Padding, p.DF = c.size, c.gso, c.padding, true
			r, err := f.SendIndex(1, p)
			if died := len(f.Crashes()) > 0; died != c.dies {
				t.Fatalf("died: %t, %v\n%s", died, err, r)
			}
			if c.dies {
				if !strings.Contains(f.Crashes()[0], "af_packet: ") {
					t.Errorf("of %q", f.Crashes())
				}
				return
			}
			if reason, dropped := r.Dropped(); err != nil || dropped != (c.drops != "") || !strings.Contains(reason, c.drops) {
				t.Errorf("%v, %q\n%s", err, reason, r)
			}
		})
	}
}

// TestSplitPackets tests that with our plugin a packet that represents several is split for a device that cannot split it, and stays whole for
// one that can. Forged packets of a pod are dropped.
func TestSplitPackets(t *testing.T) {
	small := &af_packet.AfPacketCreateV3{Mode: af_packet.AF_PACKET_API_MODE_ETHERNET, HostIfName: "out", TxFrameSize: 2048, TxFramesPerBlock: 256}
	out := func(flags tapv2.TapFlags) *tapv2.TapCreateV3 {
		return &tapv2.TapCreateV3{ID: none, MacAddress: portMAC(2), TapFlags: flags}
	}
	for _, c := range []struct {
		name      string
		out       api.Message
		proto     uint8
		size, gso int
		arrives   int // bytes after the header
		drops     string
	}{
		{"AF_PACKET", small, vppfake.ProtoTCP, 64000, 1400, 1400, ""},
		{"a TAP that splits", out(tapv2.TAP_API_FLAG_GSO), vppfake.ProtoTCP, 64000, 1400, 64000, ""},
		{"a TAP that does not", out(0), vppfake.ProtoTCP, 64000, 1400, 1400, ""},
		{"UDP", small, vppfake.ProtoUDP, 64000, 1400, 0, "does not fit"},
		{"too many", small, vppfake.ProtoTCP, 64000, 400, 0, "forbidden size"},
		{"too long", small, vppfake.ProtoTCP, 64000, 10000, 0, "forbidden size"},
		{"longer than the next hop takes", small, vppfake.ProtoTCP, 64000, 1461, 0, "too big"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, conn := client(t, vppfake.Config{Plugin: true})
			s := &script{t: t, conn: conn}
			must(t, conn, &tapv2.TapCreateV3{ID: none, MacAddress: portMAC(1), TapFlags: tapv2.TAP_API_FLAG_GSO})
			must(t, conn, c.out)
			must(t, conn, &interfaces.SwInterfaceSetMtu{SwIfIndex: 2, Mtu: []uint32{1500, 0, 0, 0}})
			s.up(1)
			s.up(2)
			s.addr(1, "10.1.0.1/24")
			s.addr(2, "10.2.0.1/24")
			s.neighbor(true, 2, "10.2.0.2", hostMAC(2).String(), 1)
			p := udp(1, 1, "10.1.0.2", "10.2.0.2")
			p.Proto, p.Size, p.GSO, p.DF = c.proto, c.size, c.gso, true
			r, err := f.SendIndex(1, p)
			if reason, dropped := r.Dropped(); err != nil || dropped != (c.drops != "") || !strings.Contains(reason, c.drops) {
				t.Fatalf("%v, %q\n%s", err, reason, r)
			}
			if d, ok := r.Delivered(); c.drops == "" && (!ok || d.Packet.Size != c.arrives) {
				t.Errorf("%d bytes arrive\n%s", d.Packet.Size, r)
			}
		})
	}
}

// TestPartialPacket tests that a packet that does not fit in the ring to VPP is not received.
func TestPartialPacket(t *testing.T) {
	f, conn := client(t, vppfake.Config{})
	s := &script{t: t, conn: conn}
	must(t, conn, iface.AfPacketRequest("in", 1500, iface.DefaultAfPacketRings()))
	s.up(1)
	s.addr(1, "10.1.0.1/24")
	for size, want := range map[int]string{1892: "", 60000: "partial packet"} {
		p := udp(1, 1, "10.1.0.2", "10.1.0.1")
		p.Size, p.EthDst = size, vppfake.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
		r, err := f.SendIndex(1, p)
		if reason, _ := r.Dropped(); err != nil || reason != want && !strings.Contains(reason, want) || want == "" && reason != "" {
			t.Errorf("%d bytes: %v, %q\n%s", size, err, reason, r)
		}
	}
}
