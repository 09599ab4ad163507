package ipnet

import (
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/plugins/controller/api"
)

// TestNodeBeyondTheNetworks checks that a node whose ID is too high for the configured networks is not connected, and that the others,
// which cannot repair this, continue. An error would prevent their start, and make running ones unready.
func TestNodeBeyondTheNetworks(t *testing.T) {
	var logs strings.Builder
	w := newNodeWithID(t, dualTAP+uplink, 1)
	w.n.Log = slog.New(slog.NewTextHandler(&logs, nil))
	w.node("n2", fakePeer(2))
	before := texts(w.want)
	w.node("n300", fakePeer(300, "192.168.16.77/24"))
	if got := texts(w.want); !slices.Equal(got, before) {
		t.Errorf("now\n%s\nbefore\n%s", strings.Join(got, "\n"), strings.Join(before, "\n"))
	}
	w.resync()
	if got := texts(w.want); !slices.Equal(got, before) {
		t.Errorf("after a resync\n%s\nbefore\n%s", strings.Join(got, "\n"), strings.Join(before, "\n"))
	}
	if !strings.Contains(logs.String(), "n300") || !strings.Contains(logs.String(), "node ID 300") {
		t.Errorf("the log does not tell: %s", logs.String())
	}
	w.node("n2", fakePeer(300, "192.168.16.2/24")) // the node got another ID, with which it can no longer be connected
	alone := texts(w.want)
	w.resync()
	if got := texts(w.want); !slices.Equal(got, alone) || len(alone) >= len(before) || w.n.peers.byName["n2"] != nil {
		t.Errorf("n2 is still connected:\n%s", strings.Join(alone, "\n"))
	}
}

// TestRestartWithDHCP: an agent that starts has no lease until VPP reports it. Until then it uses the address that the node has published:
// without an address, the other nodes would remove their tunnels, and the agent its own.
func TestRestartWithDHCP(t *testing.T) {
	config := dualTAP + "nodeConfig:\n- nodeName: n1\n  mainVPPInterface: {interfaceName: host-eth1, useDHCP: true}\n"
	w := newNodeWithID(t, config, 1)
	w.node("n2", fakePeer(2, "192.0.2.2/24"))
	w.n.VPPIfPlugin = &fakeNICs{}
	lease := netip.MustParsePrefix("192.0.2.1/24")
	w.n.leased = lease
	w.resync()
	before := texts(w.want)

	again := newNodeWithID(t, config, 1)
	again.nodes.all["n2"], again.nodes.all["n1"] = w.nodes.all["n2"], fakePeer(1, lease.String())
	again.nodes.published = nil
	again.resync()
	if got := texts(again.want); !slices.Equal(got, before) {
		t.Errorf("after the restart\n%s\nbefore\n%s", strings.Join(got, "\n"), strings.Join(before, "\n"))
	}
	if len(again.nodes.published) != 1 || again.nodes.published[0].Address != lease.Addr() {
		t.Errorf("published %v", again.nodes.published)
	}
	again.n.leased = netip.MustParsePrefix("192.0.2.99/24")
	again.resync()
	if got := again.n.settings.nodeIPs; len(got) != 1 || got[0] != again.n.leased {
		t.Errorf("node addresses %v, leased %s", got, again.n.leased)
	}
}

// TestNeighboursAge checks that VPP removes stale neighbours in every family that a NIC has; otherwise it would keep IPv6 ones permanently.
func TestNeighboursAge(t *testing.T) {
	main := func(ip string) string {
		return "nodeConfig:\n- nodeName: n1\n  mainVPPInterface: {interfaceName: host-eth1, ip: \"" + ip + "\"}\n"
	}
	for config, want := range map[string]vpp_l3.IPScanNeighbor_Mode{
		"":                                  vpp_l3.IPScanNeighbor_IPV4,
		dualTAP:                             vpp_l3.IPScanNeighbor_BOTH,
		main("192.0.2.1/24"):                vpp_l3.IPScanNeighbor_IPV4,
		main("192.0.2.1/24,2001:db8::1/64"): vpp_l3.IPScanNeighbor_BOTH,
	} {
		w := newNode(t, config)
		scan, _ := w.want[nb.IPScanNeighborKey].(*vpp_l3.IPScanNeighbor)
		if scan.GetMode() != want || scan.GetStaleThreshold() != 4 {
			t.Errorf("%q: %v, want %s", config, scan, want)
		}
	}
}

// restlessHost is a host whose addresses change often.
type restlessHost struct {
	fakeHost
	changed func()
}

func (h *restlessHost) WatchHostIPs(callback func()) { h.changed = callback }

// countingLoop counts events, which it does not handle, or rejects all of them.
type countingLoop struct {
	pushed []api.Event
	err    error
}

func (l *countingLoop) PushEvent(ev api.Event) error {
	if l.err == nil {
		l.pushed = append(l.pushed, ev)
	}
	return l.err
}

func (l *countingLoop) PushFollowUp(_, ev api.Event) error { return l.PushEvent(ev) }

// TestHostAddressesThatChangeOften checks that a host whose addresses change faster than a resync takes does not fill the event queue: one
// resync that has not begun takes all changes into account. A resync that has begun does not.
func TestHostAddressesThatChangeOften(t *testing.T) {
	w := newNode(t, dualTAP)
	host, loop := &restlessHost{}, &countingLoop{}
	w.n.LinuxNsPlugin, w.n.EventLoop = host, loop
	if err := w.n.Init(); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		host.changed()
	}
	if len(loop.pushed) != 1 {
		t.Fatalf("%d events wait", len(loop.pushed))
	}
	dump := w.n.hostIPsDump
	w.n.hostIPsDump = func() ([]net.IP, error) {
		ips, err := dump()
		host.changed() // after the addresses were read
		return ips, err
	}
	w.resync()
	if len(loop.pushed) != 2 {
		t.Errorf("%d events: a change during the resync is lost", len(loop.pushed))
	}
}

// leasing reports a lease.
type leasing struct {
	give func(net.IP, *net.IPNet, net.IP)
}

func (l *leasing) WatchDHCPLeases(_ string, callback func(net.IP, *net.IPNet, net.IP)) error {
	l.give = callback
	return nil
}

// TestLeaseMeetsFullQueue checks that a lease that is reported once, while the queue has no room for the event, is used by the next resync.
func TestLeaseMeetsFullQueue(t *testing.T) {
	w := newNode(t, dualTAP+"nodeConfig:\n- nodeName: n1\n  mainVPPInterface: {interfaceName: host-eth1, useDHCP: true}\n")
	dhcp := &leasing{}
	w.n.VPPIfPlugin, w.n.EventLoop = dhcp, &countingLoop{err: api.ErrQueueFull}
	w.resync()
	ip, network, err := net.ParseCIDR("192.0.2.7/24")
	if err != nil {
		t.Fatal(err)
	}
	dhcp.give(ip, network, nil)
	w.resync()
	if got := w.n.settings.nodeIPs; len(got) != 1 || got[0].String() != "192.0.2.7/24" {
		t.Errorf("node addresses %v", got)
	}
}

// TestManyNodesWithoutOverlay checks that, without an overlay, the size of the unused vxlanCIDR does not limit the number of nodes.
func TestManyNodesWithoutOverlay(t *testing.T) {
	config := "useTAPInterfaces: true\nipamConfig: {podSubnetCIDR: 10.16.0.0/12, nodeInterconnectCIDR: 192.168.0.0/16,\n" +
		"  vppHostSubnetCIDR: 172.16.0.0/12, vxlanCIDR: 10.40.0.0/24}\nnodeToNodeTransport: "
	w := newNodeWithID(t, config+"nooverlay\n", 300)
	w.node("n301", fakePeer(301, "192.168.1.45/16"))
	if w.n.peers.byName["n301"] == nil {
		t.Error("node 301 is not connected to node 300")
	}
	// With an overlay it does.
	v := newNodeWithID(t, config+"vxlan\n", 1)
	v.node("n301", fakePeer(301, "192.168.1.45/16"))
	if v.n.peers.byName["n301"] != nil {
		t.Error("node 301 has no address in the overlay, and is connected")
	}
}
