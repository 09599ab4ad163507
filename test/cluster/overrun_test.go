package cluster

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/netns"
)

// TestRingOverruns checks that packets that the kernel drops while VPP does not empty its rings are counted for the pod or the interface that
// lost them, so that alerts show them; and that all traffic continues afterwards.
func TestRingOverruns(t *testing.T) {
	t.Parallel()
	for _, m := range []mode{
		{dataplane: "vpp", transport: "vxlan", plugin: true}, {dataplane: "vpp", transport: "nooverlay", veth: true, plugin: true},
	} {
		t.Run(m.String(), func(t *testing.T) {
			matrix.Only(t)
			w := newWorld(t, m, 2)
			pods := w.podPerNode()
			w.mesh(pods)
			losers := []string{`pod="p0"`, `interface="host-eth1"`}
			if m.veth {
				losers = append(losers, `interface="afpacket-vpp2"`)
			} else {
				losers = append(losers, `interface="tap-vpp2"`)
			}
			n := w.Nodes[0]
			for _, label := range losers {
				if lost, err := w.missed(n, label); err != nil || lost != 0 {
					t.Fatalf("%s: %.0f packets lost before: %v", label, lost, err)
				}
			}
			w.must(syscall.Kill(n.VPP.PID(), syscall.SIGSTOP))
			const packets = 8000
			w.pour(pods[0].Namespace, pods[1].IPs[0], packets)
			w.pour(pods[1].Namespace, pods[0].IPs[0], packets)
			w.pour(n.Namespace, pods[1].IPs[0], packets)
			w.must(syscall.Kill(n.VPP.PID(), syscall.SIGCONT))
			for _, label := range losers {
				w.within(time.Minute, "the losses of "+label+" are counted", func() error {
					lost, err := w.missed(n, label)
					if err == nil && (lost < 1000 || lost > 2*packets) {
						err = fmt.Errorf("%.0f", lost)
					}
					return err
				})
			}
			for _, p := range pods {
				w.serveBulk(p.Namespace)
			}
			w.load(pods[0].Namespace, pods[1].IPs[0])
			w.load(pods[1].Namespace, pods[0].IPs[0])
			for _, label := range losers {
				lost, err := w.missed(n, label)
				t.Logf("%s: %.0f packets lost: %v", label, lost, err)
			}
		})
	}
}

// missed returns contiv_interface_missed_total of the series with a label.
func (w *world) missed(n *testbed.Node, label string) (sum float64, err error) {
	body, err := n.Get(w.ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	found := false
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "contiv_interface_missed_total{") || !strings.Contains(line, label) {
			continue
		}
		fields := strings.Fields(line)
		v, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			return 0, err
		}
		sum, found = sum+v, true
	}
	if !found {
		return 0, fmt.Errorf("no series of contiv_interface_missed_total has %s", label)
	}
	return sum, nil
}

// pour sends UDP packets as fast as the kernel accepts them.
func (w *world) pour(ns *netns.Namespace, to netip.Addr, packets int) {
	w.t.Helper()
	w.must(ns.Do(func() error {
		c, err := net.Dial("udp", netip.AddrPortFrom(to, 9).String())
		if err != nil {
			return err
		}
		defer c.Close()
		for range packets {
			_, _ = c.Write(make([]byte, 1000)) // an ICMP error about an earlier packet is returned by the next write
		}
		return nil
	}))
}
