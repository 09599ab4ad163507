package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/bulk"
	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/netns"
)

const bulkPort = 5201

// bulkModes are all the ways by which pods' packets are forwarded.
var bulkModes = []mode{
	{dataplane: "vpp", transport: "vxlan"}, {dataplane: "vpp", transport: "nooverlay"},
	{dataplane: "vpp", transport: "vxlan", veth: true}, {dataplane: "vpp", transport: "nooverlay", veth: true},
	{dataplane: "vpp", transport: "vxlan", ipv6: true},
	{dataplane: "vpp", transport: "vxlan", plugin: true}, {dataplane: "vpp", transport: "nooverlay", plugin: true},
	{dataplane: "vpp", transport: "vxlan", veth: true, plugin: true}, {dataplane: "vpp", transport: "vxlan", ipv6: true, plugin: true},
	{dataplane: "vpp", transport: "nooverlay", ipv6: true}, {dataplane: "vpp", transport: "nooverlay", ipv6: true, plugin: true},
	{dataplane: "vpp", transport: "nooverlay", ipv6: true, derived: true, veth: true, plugin: true},
	{dataplane: "linux", transport: "vxlan"}, {dataplane: "linux", transport: "nooverlay"},
}

// TestBulk checks that megabytes of data are delivered without errors, by many streams at once in both directions, in both
// families: between pods of one node and of two, with the host and with the outside. The same holds for single packets up to the
// MTU; longer ones are rejected by the sender, or on the way by an ICMP error that the sender processes.
func TestBulk(t *testing.T) {
	t.Parallel()
	for _, m := range bulkModes {
		t.Run(m.String(), func(t *testing.T) {
			matrix.Only(t, "vpp-vxlan-plugin", "vpp-nooverlay-ipv6-derived-veth-plugin", "linux-vxlan")
			w := newWorld(t, m, 2)
			pods := w.podPerNode()
			pods = append(pods, w.pod(w.Nodes[0], "b"))
			w.mesh(pods)
			for _, p := range pods {
				w.serveBulk(p.Namespace)
			}
			for _, to := range []*testbed.Pod{pods[2], pods[1]} {
				for _, ip := range to.IPs {
					w.load(pods[0].Namespace, ip)
					w.sizes(pods[0].Namespace, ip, w.podMTU())
				}
			}
			if w.families() == 2 { // hosts have IPv4 addresses only
				w.serveBulk(w.Nodes[0].Namespace)
				w.serveBulk(w.Nodes[1].Namespace)
				w.load(pods[0].Namespace, netip.MustParseAddr(testbed.MgmtAddress(0)))
				w.load(pods[0].Namespace, netip.MustParseAddr(testbed.MgmtAddress(1)))
			}
			w.load(w.Nodes[0].Namespace, pods[0].IPs[0])
			w.load(w.Nodes[0].Namespace, pods[1].IPs[0])
			if !m.ipv6 || m.plugin { // without the plugin, IPv6 is not translated
				out := w.outside(map[bool]string{false: "192.168.16.200", true: "fd00:16::c8"}[m.ipv6])
				w.serveBulk(w.Underlay)
				w.load(pods[0].Namespace, out)
				w.sizes(pods[0].Namespace, out, w.podMTU())
			}
			w.narrow(pods)
			w.unharmed("tx frame not ready", "partial packet")
		})
	}
}

func (w *world) serveBulk(ns *netns.Namespace) {
	w.t.Helper()
	s, err := bulk.Serve(ns, bulkPort)
	w.must(err)
	w.t.Cleanup(s.Close)
}

// podMTU returns the MTU of the testbed's pods.
func (w *world) podMTU() int {
	switch {
	case w.mode.transport == "nooverlay":
		return testbed.UplinkMTU
	case w.mode.ipv6:
		return testbed.UplinkMTU - 70
	}
	return testbed.UplinkMTU - 50
}

// load transfers data from ns to a server and back.
func (w *world) load(ns *netns.Namespace, to netip.Addr) {
	w.t.Helper()
	w.must(w.reach(ns, to.String()))
	ctx, cancel := context.WithTimeout(w.ctx, 3*time.Minute)
	defer cancel()
	for _, l := range []bulk.Load{{Up: 1, Length: 8 << 20}, {Up: 4, Down: 4, Length: 1 << 20}} {
		r, err := l.Run(ctx, ns, netip.AddrPortFrom(to, bulkPort))
		w.must(err)
		w.t.Logf("%s to %s, %d streams: %s", ns.Name, to, l.Up+l.Down, r)
	}
}

// sizes sends single packets around the MTU.
func (w *world) sizes(ns *netns.Namespace, to netip.Addr, mtu int) {
	w.t.Helper()
	server := netip.AddrPortFrom(to, bulkPort)
	for _, size := range []int{mtu - 1, mtu} {
		w.within(time.Minute, "a packet up to the MTU", func() error { return bulk.Echo(w.ctx, ns, server, size, time.Second) })
	}
	if err := bulk.Echo(w.ctx, ns, server, mtu+1, 20*time.Second); !errors.Is(err, bulk.ErrTooLong) {
		w.t.Errorf("one byte more than the MTU: %v", err)
	}
}

// narrow checks the case that a pod has a smaller MTU than the others. An ICMP error reaches the sender, whose data is delivered
// after it.
func (w *world) narrow(pods []*testbed.Pod) {
	w.t.Helper()
	const mtu = 1300
	for i, from := range []*testbed.Pod{pods[2], pods[1]} { // on the same node, and on the other one
		to := w.podWithMTU(w.Nodes[0], fmt.Sprintf("narrow%d", i), mtu)
		w.serveBulk(to.Namespace)
		for _, ip := range to.IPs {
			w.must(w.reach(from.Namespace, ip.String()))
			server := netip.AddrPortFrom(ip, bulkPort)
			w.within(time.Minute, "the sender learns the MTU of the path", func() error {
				err := bulk.Echo(w.ctx, from.Namespace, server, mtu+1, 300*time.Millisecond)
				if !errors.Is(err, bulk.ErrTooLong) {
					return fmt.Errorf("not refused: %w", err)
				}
				return nil
			})
			w.within(time.Minute, "a packet of the path's MTU", func() error {
				return bulk.Echo(w.ctx, from.Namespace, server, mtu, time.Second)
			})
			w.load(from.Namespace, ip)
		}
	}
}

// podWithMTU adds a pod whose network configuration requests an MTU.
func (w *world) podWithMTU(n *testbed.Node, name string, mtu int) *testbed.Pod {
	w.t.Helper()
	p, err := n.AddPodOf(w.ctx, name, testbed.ConflistWithMTU(n.CNISocket(), mtu))
	w.must(err)
	w.pods = append(w.pods, p)
	return p
}

// unharmed checks that no VPP has counted one of the errors.
func (w *world) unharmed(errors ...string) {
	w.t.Helper()
	for _, n := range w.Nodes {
		if n.VPP == nil {
			continue
		}
		out, err := n.VPP.CLI("show errors")
		if err != nil {
			w.t.Errorf("VPP of %s: %v", n.Name, err)
		}
		for line := range strings.Lines(out) {
			if slices.ContainsFunc(errors, func(e string) bool { return strings.Contains(line, e) }) {
				w.t.Errorf("VPP of %s: %s", n.Name, strings.TrimSpace(line))
			}
		}
	}
}
