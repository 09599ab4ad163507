package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/matrix"
)

// Ways to select which of a node's two NICs, eth0 (management) and eth1, connects it with the others.
const (
	byName    = "{namePattern: 'eth1,enp*'}"
	byNetwork = "{network: '192.168.16.0/24,fd00:16::/64'}" // on Linux, where eth1 has addresses
	byMgmt    = "{network: 10.199.0.0/24}"
	byRoute   = "{defaultRoute: true}"
)

// ip runs ip(8) in a node.
func (w *world) ip(n *testbed.Node, line string) {
	w.t.Helper()
	_, err := n.Run(w.ctx, "ip", strings.Fields(line)...)
	w.must(err)
}

// launch starts all agents without waiting for them.
func (w *world) launch() {
	w.t.Helper()
	for _, n := range w.Nodes {
		w.must(n.LaunchAgent(w.ctx))
	}
}

func (w *world) ready() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	for _, n := range w.Nodes {
		w.must(n.WaitReady(ctx))
	}
}

// says waits until the end of a node's log contains the text.
func (w *world) says(n *testbed.Node, text string) {
	w.t.Helper()
	w.within(time.Minute, "the log of "+n.Name+" has "+text, func() error {
		if log := n.LogTail(60); !strings.Contains(log, text) {
			return fmt.Errorf("it ends with\n%s", log)
		}
		return nil
	})
}

// TestUplinkIsFound checks that nodes without their own sections are connected by the NIC that is selected for the whole cluster.
func TestUplinkIsFound(t *testing.T) {
	t.Parallel()
	for _, m := range []mode{
		{dataplane: "vpp", transport: "vxlan", uplink: byName}, {dataplane: "vpp", transport: "vxlan", uplink: byMgmt},
		{dataplane: "vpp", transport: "nooverlay", uplink: byRoute},
		{dataplane: "linux", transport: "vxlan", uplink: byName}, {dataplane: "linux", transport: "nooverlay", uplink: byNetwork},
		{dataplane: "linux", transport: "vxlan", uplink: byNetwork, ipv6: true},
		{dataplane: "linux", transport: "vxlan", uplink: byRoute},
	} {
		t.Run(m.String()+"-"+strings.Trim(strings.Fields(m.uplink)[0], "{:"), func(t *testing.T) {
			matrix.Only(t, "vpp-vxlan-namePattern", "linux-vxlan-defaultRoute")
			m.unstarted = true
			w := newWorld(t, m, 2)
			want := testbed.UplinkNIC
			if m.uplink == byMgmt || m.uplink == byRoute {
				want = testbed.MgmtNIC
			}
			for _, n := range w.Nodes {
				w.ip(n, "route add default via 10.199.0.1 dev eth0")
			}
			w.launch()
			w.ready()
			w.mesh(w.podPerNode())
			for _, n := range w.Nodes {
				w.says(n, `msg="uplink selected" nic=`+want+" ")
			}
		})
	}
}

// TestUplinkComesLater checks that a node whose NIC does not exist yet is not ready, reports why, and works once the NIC exists; it
// follows a NIC that is renamed. Its pods keep their addresses and interfaces.
func TestUplinkComesLater(t *testing.T) {
	t.Parallel()
	for _, m := range []mode{
		{dataplane: "vpp", transport: "vxlan", uplink: "{namePattern: enp*}", unstarted: true},
		{dataplane: "linux", transport: "vxlan", uplink: "{namePattern: enp*}", unstarted: true},
	} {
		t.Run(m.dataplane, func(t *testing.T) {
			matrix.Only(t, "vpp")
			w := newWorld(t, m, 2)
			w.rename(w.Nodes[0], testbed.UplinkNIC, "enp1s0")
			w.launch()
			late := w.Nodes[1]
			w.says(late, "no NIC of this node matches mainVPPInterface {namePattern: enp*}; it has eth0 (10.199.0.102/24)")
			if _, err := late.Get(w.ctx, "/readiness"); err == nil || !strings.Contains(err.Error(), "no NIC of this node matches") {
				t.Errorf("ready without a NIC: %v", err)
			}
			w.rename(late, testbed.UplinkNIC, "enp1s0")
			w.ready()
			pods := w.podPerNode()
			w.mesh(pods)
			w.rename(late, "enp1s0", "enp7s0")
			w.says(late, "nic=enp7s0")
			w.mesh(pods)
			w.rename(late, "enp7s0", "wan0") // the new name does not match the configuration
			w.says(late, "no NIC of this node matches")
			w.rename(late, "wan0", "enp7s0")
			w.mesh(pods)
			w.ready()
		})
	}
}

// rename gives a NIC another name; its addresses of both families stay.
func (w *world) rename(n *testbed.Node, from, to string) {
	w.t.Helper()
	addrs, err := n.Run(w.ctx, "ip", "-6", "-o", "addr", "show", "dev", from, "scope", "global")
	w.must(err)
	w.ip(n, "link set "+from+" down")
	w.ip(n, "link set "+from+" name "+to)
	w.ip(n, "link set "+to+" up")
	for line := range strings.Lines(addrs) { // the kernel removes those of a NIC that is set down
		w.ip(n, "addr replace "+strings.Fields(line)[3]+" dev "+to+" nodad")
	}
}

// TestUplinkStays checks that, if several NICs match, none is used, and all are named; the NIC that was the uplink before stays the
// uplink, also for the next agent.
func TestUplinkStays(t *testing.T) {
	t.Parallel()
	for _, dataplane := range []string{"vpp", "linux"} {
		t.Run(dataplane, func(t *testing.T) {
			matrix.Only(t, "linux")
			w := newWorld(t, mode{dataplane: dataplane, transport: "vxlan", uplink: "{namePattern: 'eth[1-9]'}", unstarted: true}, 2)
			second := w.Nodes[1]
			w.ip(second, "link add eth2 type bridge")
			w.ip(second, "link set eth2 up")
			w.launch()
			w.says(second, "several NICs of this node match mainVPPInterface {namePattern: eth[1-9]}: eth1")
			w.ip(second, "link del eth2")
			w.ready()
			pods := w.podPerNode()
			w.mesh(pods)
			w.ip(second, "link add eth2 type bridge")
			w.ip(second, "link set eth2 up")
			w.must(second.Agent.Kill())
			ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
			defer cancel()
			w.must(second.StartAgent(ctx))
			w.mesh(pods)
		})
	}
}

// TestNoUplink checks that a VPP without a NIC causes a warning; the node is ready as long as it is the only one, and not ready
// when there are others, unless it is configured to stand alone.
func TestNoUplink(t *testing.T) {
	w := newWorld(t, mode{dataplane: "vpp", transport: "vxlan", uplink: "{}", unstarted: true}, 2)
	first := w.Nodes[0]
	w.must(first.LaunchAgent(w.ctx))
	w.within(time.Minute, "a lone node is ready", func() error { _, err := first.Get(w.ctx, "/readiness"); return err })
	w.says(first, `level=WARN msg="VPP has no NIC: a loopback interface replaces it, and this node cannot reach other nodes"`)
	w.must(w.Nodes[1].LaunchAgent(w.ctx))
	w.within(time.Minute, "a node that cannot reach others is not ready", func() error {
		_, err := first.Get(w.ctx, "/readiness")
		if err == nil || !strings.Contains(err.Error(), "VPP has no NIC, and there are 1 other nodes: set mainVPPInterface") {
			return fmt.Errorf("readiness: %w", err)
		}
		return nil
	})
}

// TestStandAlone checks that a node that is configured to stand alone has no warning.
func TestStandAlone(t *testing.T) {
	w := newWorld(t, mode{dataplane: "vpp", transport: "vxlan", uplink: "{standAlone: true}"}, 1)
	n := w.Nodes[0]
	a, b := w.pod(n, "a"), w.pod(n, "b")
	w.mesh([]*testbed.Pod{a, b})
	if log := n.LogTail(100); strings.Contains(log, "VPP has no NIC") {
		t.Errorf("it warns:\n%s", log)
	}
}
