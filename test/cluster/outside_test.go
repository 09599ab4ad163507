package cluster

import (
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/whoami"
)

const queryPort = 8080

// outside makes a machine on the network that connects nodes, outside of the cluster: it has no route to pods.
func (w *world) outside(address string) netip.Addr {
	w.t.Helper()
	prefix := []string{address + "/24"}
	if strings.Contains(address, ":") {
		prefix = []string{address + "/64", "nodad"}
	}
	_, err := w.Underlay.Run(w.ctx, "ip", append([]string{"addr", "add", "dev", "uplink"}, prefix...)...)
	w.must(err)
	// Checksums must be complete, as on a wire: VPP's af_packet would receive packets without valid checksums.
	_, err = w.Underlay.Run(w.ctx, "ethtool", "-K", "uplink", "tx", "off")
	w.must(err)
	w.serve(w.Underlay, "outside")
	return netip.MustParseAddr(address)
}

func (w *world) serve(ns *netns.Namespace, name string) {
	w.t.Helper()
	s, err := whoami.Serve(ns, name, queryPort)
	w.must(err)
	w.t.Cleanup(s.Close)
}

// seen checks that, by TCP and UDP, the server at an address receives requests of a client in ns from the address want;
// invalid: from the client's own.
func (w *world) seen(ns *netns.Namespace, server, want netip.Addr) {
	w.t.Helper()
	for _, network := range []string{"tcp", "udp"} {
		w.within(time.Minute, fmt.Sprintf("%s from %s to %s", network, ns.Name, server), func() error {
			got, err := whoami.Query(w.ctx, ns, network, netip.AddrPortFrom(server, queryPort), time.Second)
			if err == nil && got.Client.Addr() != want {
				err = fmt.Errorf("%s sees %s, not %s", got.Server, got.Client, want)
			}
			return err
		})
	}
}

// nodeAddress returns a node's address on the network that connects nodes.
func (w *world) nodeAddress(n *testbed.Node) netip.Addr {
	w.t.Helper()
	var report struct{ NodeIP string }
	w.must(n.GetJSON(w.ctx, "/contiv/v1/ipam", &report))
	p, err := netip.ParsePrefix(report.NodeIP)
	if err != nil {
		addr, err := netip.ParseAddr(report.NodeIP)
		w.must(err)
		return addr
	}
	return p.Addr()
}

// TestOutside checks that packets of pods to the outside have their node's address, with every transport between nodes;
// packets to other pods, and on VPP to nodes, have their own. Connections survive the end of the agent, and VPP serves new
// ones as soon as it is back.
func TestOutside(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		w := newWorld(t, m, 2)
		pods := w.podPerNode()
		w.mesh(pods)
		out := w.outside("192.168.16.200")
		for i, p := range pods {
			w.serve(p.Namespace, p.Name)
			w.serve(w.Nodes[i].Namespace, w.Nodes[i].Name)
		}
		check := func() {
			w.t.Helper()
			for i, p := range pods {
				w.seen(p.Namespace, out, w.nodeAddress(w.Nodes[i]))
				w.must(w.reach(p.Namespace, out.String()))
				w.seen(p.Namespace, pods[1-i].IPs[0], p.IPs[0])
				for j := range w.Nodes {
					w.must(w.reach(p.Namespace, testbed.MgmtAddress(j)))
					if m.dataplane == "vpp" {
						w.seen(p.Namespace, netip.MustParseAddr(testbed.MgmtAddress(j)), p.IPs[0])
						w.must(w.reach(p.Namespace, w.nodeAddress(w.Nodes[j]).String()))
					}
				}
			}
		}
		check()
		open, err := whoami.Dial(w.ctx, pods[0].Namespace, "tcp", netip.AddrPortFrom(out, queryPort), 10*time.Second)
		w.must(err)
		defer open.Close()
		w.must(w.Nodes[0].Agent.Kill())
		w.must(w.Nodes[0].StartAgent(w.ctx))
		if _, err := open.Query(); err != nil {
			t.Errorf("a connection to the outside, after the agent was killed: %v", err)
		}
		if m.dataplane != "vpp" {
			return
		}
		if n, err := w.Nodes[0].Metric(w.ctx, "contiv_vpp_writes_total"); err != nil || n != 0 {
			t.Errorf("the new agent wrote %v times to VPP, which has all that it should: %v", n, err)
		}
		w.Nodes[0].VPP.Kill()
		w.must(w.Nodes[0].VPP.Run(w.ctx))
		check()
	}, defaultVPP)
}

// TestOutsideWithDHCP checks that, when the lease changes, packets of pods to the outside have the new address.
func TestOutsideWithDHCP(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("dnsmasq"); err != nil {
		t.Skip("there is no DHCP server here: install dnsmasq-base")
	}
	for _, transport := range []string{"vxlan", "nooverlay"} {
		t.Run(transport, func(t *testing.T) {
			matrix.Only(t, "vxlan")
			w := newWorld(t, mode{dataplane: "vpp", transport: transport, dhcp: true}, 1)
			pod := w.pod(w.Nodes[0], "p")
			stop := w.serveDHCP("172.20.0")
			defer func() { stop() }()
			w.within(60*time.Second, "a lease", func() error { return w.leasedFrom("172.20.0.") })
			check := func(server string) {
				w.t.Helper()
				_, err := w.Underlay.Run(w.ctx, "ethtool", "-K", "uplink", "tx", "off")
				w.must(err)
				w.seen(pod.Namespace, netip.MustParseAddr(server), w.nodeAddress(w.Nodes[0]))
				w.must(w.reach(pod.Namespace, server))
			}
			w.serve(w.Underlay, "outside")
			check("172.20.0.1")
			if !matrix.All() {
				return // a lease lasts at least two minutes
			}
			stop()
			stop = w.serveDHCP("172.21.0")
			w.within(150*time.Second, "a new lease", func() error { return w.leasedFrom("172.21.0.") })
			check("172.21.0.1")
		})
	}
}
