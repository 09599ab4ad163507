package ipnet_test

import (
	"log/slog"
	"net/netip"
	"testing"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/plugins/ipnet"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/nat44"
)

// TestPacketsToTheOutside checks that a pod's packet to the outside leaves through the uplink with the node's address if natExternalTraffic
// is on, with and without an overlay, and that the answer reaches the pod.
func TestPacketsToTheOutside(t *testing.T) {
	for _, c := range []struct{ config, source string }{
		{"nodeToNodeTransport: vxlan\n", "192.168.16.1"},
		{"nodeToNodeTransport: nooverlay\n", "192.168.16.1"},
		{"nodeToNodeTransport: nooverlay\nnatExternalTraffic: false\n", ""},
	} {
		t.Run(c.config, func(t *testing.T) {
			nodes := ipnet.NewTestNodes(t, c.config)
			plugin, state := nodes.First()
			r := nat44.New(nat44.Deps{NodeName: "n1", Network: plugin, Txn: desired(state), Log: slog.New(slog.DiscardHandler)})
			ev := renderer.NewResyncEventData()
			ev.FrontendIfs = renderer.NewInterfaces("host-eth1", plugin.GetHostInterconnectIfName(), nodes.PodA.If)
			if bvi := plugin.GetVxlanBVIIfName(); bvi != "" {
				ev.FrontendIfs = renderer.NewInterfaces("host-eth1", plugin.GetHostInterconnectIfName(), nodes.PodA.If, bvi)
			}
			if err := r.Resync(ev); err != nil {
				t.Fatal(err)
			}
			const server, hw = "192.168.16.200", "02:00:00:00:00:c8"
			arp := &vpp_l3.ARPEntry{Interface: "host-eth1", IpAddress: server, PhysAddress: hw, Static: true}
			key, err := nb.Key(arp)
			if err != nil {
				t.Fatal(err)
			}
			state[key] = arp
			fake := nodes.ApplyFirst()
			a := nodes.PodA
			source := c.source
			if source == "" {
				source = a.Addr.String()
			}
			for _, proto := range []uint8{vppfake.ProtoTCP, vppfake.ProtoUDP} {
				p := send(t, fake, "cv:"+a.If, vppfake.Packet{
					EthSrc: vppfake.MAC(a.MAC), EthDst: vppfake.MAC(a.PeerMAC), Src: a.Addr, Dst: netip.MustParseAddr(server),
					Proto: proto, SrcPort: 1000, DstPort: 80, Flags: vppfake.FlagSYN, Size: 100,
				}, "cv:host-eth1")
				if p.Src.String() != source {
					t.Errorf("it leaves as %v, want it from %s", p, source)
				}
				answer := vppfake.Packet{
					EthSrc: p.EthDst, EthDst: p.EthSrc, Src: p.Dst, Dst: p.Src, Proto: proto, SrcPort: p.DstPort, DstPort: p.SrcPort,
					Flags: vppfake.FlagSYN | vppfake.FlagACK, Size: 100,
				}
				if back := send(t, fake, "cv:host-eth1", answer, "cv:"+a.If); back.Dst != a.Addr || back.DstPort != 1000 {
					t.Errorf("the answer arrives as %v", back)
				}
			}
		})
	}
}

// send sends a packet and checks where it leaves.
func send(t *testing.T, fake *vppfake.Fake, at string, p vppfake.Packet, want string) vppfake.Packet {
	t.Helper()
	got, err := fake.Send(at, p)
	if err != nil {
		t.Fatal(err)
	}
	d, ok := got.Delivered()
	if !ok || d.Tag != want {
		t.Fatalf("%v: %+v, want it at %s\n%s", p, got.Out, want, got)
	}
	return d.Packet
}
