package ipnet

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/plugins/ipnet/transport/vxlan"
	"contiv.dev/vswitch/plugins/podmanager"
)

// fakeHost is a host with one NIC.
type fakeHost struct{ mtu uint32 }

func (fakeHost) HostIPs() ([]net.IP, error) { return nil, nil }
func (fakeHost) WatchHostIPs(func())        {}
func (h fakeHost) NIC(name string) (NIC, error) {
	return NIC{Name: name, Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24")}, MTU: h.mtu}, nil
}

// TestMTU checks that pods' packets fit into the uplink with the overhead of the overlay, and that an MTU that cannot fit is rejected with
// the fix.
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
			w.n.settings = nil // as at the start of the agent
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

// TestMTUOfVeths checks that an MTU that VPP does not accept from a VETH is rejected, even if the uplink is not known.
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

// TestMTUFollows checks that a change of the uplink's MTU also changes the MTU of the uplink in VPP, of the overlay, of the link to the
// host and of pods, all in place. An MTU that no longer fits is reduced and reported; an agent that starts rejects it.
func TestMTUFollows(t *testing.T) {
	w := newNode(t, dualTAP+"mtuSize: 1450\n"+uplink)
	w.n.Dataplane = DataplaneVPP
	nic := &fakeHost{1500}
	w.n.LinuxNsPlugin = nic
	w.resync()
	pod, own := w.add("a").Attachment, w.addWithMTU("own", 1200).Attachment
	for _, step := range []struct {
		uplink, pods uint32
		fault        string
	}{
		{1500, 1450, ""}, {9000, 1450, ""}, {1400, 1350, "mtuSize 1450 does not fit"}, {1320, 1280, "leaves less than 1280 bytes"},
		{1495, 1445, "mtuSize 1450 does not fit"}, {1500, 1450, ""},
	} {
		nic.mtu = step.uplink
		w.resync()
		for _, name := range []string{HostInterconnectTAPinVPPLogicalName, podGwLoopName, vxlan.BVI, w.n.AttachmentInterface(pod)} {
			if got := w.vppIf(name).GetMtu(); got != step.pods {
				t.Errorf("uplink %d: MTU %d of %s, want %d", step.uplink, got, name, step.pods)
			}
		}
		if got := w.vppIf("host-eth1").GetMtu(); got != step.uplink {
			t.Errorf("uplink %d: VPP has %d", step.uplink, got)
		}
		if got := w.vppIf(w.n.AttachmentInterface(own)).GetMtu(); got != 1200 {
			t.Errorf("uplink %d: a pod with an MTU of its own has %d", step.uplink, got)
		}
		if err := w.n.MTUFits(); (err == nil) != (step.fault == "") || err != nil && !strings.Contains(err.Error(), step.fault) {
			t.Errorf("uplink %d: %v, want %q", step.uplink, err, step.fault)
		}
	}
}

// TestMTUOfOwnPods checks that a pod whose network configuration sets a larger MTU than fits is reported, until it is deleted.
func TestMTUOfOwnPods(t *testing.T) {
	w := newNode(t, dualTAP+uplink)
	w.n.Dataplane, w.n.LinuxNsPlugin = DataplaneVPP, fakeHost{1400}
	w.resync()
	large := w.addWithMTU("large", 1450)
	if err := w.n.MTUFits(); err == nil || !strings.Contains(err.Error(), "(1350 bytes): default/large;") {
		t.Errorf("%v", err)
	}
	if _, err := w.n.Update(podmanager.NewDeletePod(large.Attachment), w.want); err != nil {
		t.Fatal(err)
	}
	if err := w.n.MTUFits(); err != nil {
		t.Error(err)
	}
}

func (w *node) vppIf(name string) *vpp_interfaces.Interface {
	v, _ := w.want[nb.VppInterfaceKey(name)].(*vpp_interfaces.Interface)
	return v
}
