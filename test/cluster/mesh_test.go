package cluster

import (
	"fmt"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/matrix"
)

// TestMesh checks that all pods reach all pods, hosts and the other nodes' management addresses, and that a node that joins is
// connected.
func TestMesh(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		w := newWorld(t, m, 2)
		var pods []*testbed.Pod
		for i, n := range w.Nodes {
			pods = append(pods, w.pod(n, fmt.Sprintf("a%d", i)))
		}
		pods = append(pods, w.pod(w.Nodes[0], "b"))
		w.mesh(pods)
		n3, err := w.AddNode(w.ctx)
		w.must(err)
		pods = append(pods, w.pod(n3, "late"))
		w.mesh(pods)
		for i, n := range w.Nodes {
			for _, p := range pods {
				w.must(w.reach(n.Namespace, p.IPs[0].String()))
				w.must(w.reach(p.Namespace, testbed.MgmtAddress(i)))
			}
		}
	}, defaultVPP)
}

// TestIPv6Underlay checks three nodes that are connected only by IPv6; with an overlay, their pods have both families.
func TestIPv6Underlay(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		m.ipv6 = true
		t.Run(m.String(), func(t *testing.T) {
			matrix.Only(t, "vpp-vxlan-ipv6-plugin", "linux-nooverlay-ipv6")
			w := newWorld(t, m, 3)
			w.mesh(w.podPerNode())
		})
	}
}

// TestSharedNIC checks that, on a node with one NIC, VPP and the host both use it. The host is not affected when VPP dies, or
// never starts.
func TestSharedNIC(t *testing.T) {
	w := newWorld(t, mode{dataplane: "vpp", transport: "vxlan", sharedNIC: true}, 2)
	pods := w.podPerNode()
	w.mesh(pods)
	host := testbed.MgmtAddress(1)
	w.must(w.reach(w.Nodes[0].Namespace, host))
	pinged := make(chan outcome, 1)
	go func() {
		r, err := w.Nodes[0].Ping(w.ctx, host, 200, 10*time.Millisecond)
		pinged <- outcome{r, err}
	}()
	w.Nodes[1].VPP.Kill()
	time.Sleep(time.Second)
	w.must(w.Nodes[1].VPP.Run(w.ctx))
	r := <-pinged
	w.must(r.err)
	if r.Lost() > 0 || r.Duplicates > 0 {
		t.Errorf("the host behind a NIC whose VPP is restarted: %s", r.PingResult)
	}
	w.mesh(pods)
}
