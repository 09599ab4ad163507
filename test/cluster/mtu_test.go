package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/bulk"
	"contiv.dev/vswitch/test/testbed/matrix"
)

// TestUplinkMTU changes the MTU of the network that connects nodes, to a larger and to a smaller one, while agents and VPP run and data is
// transferred. Existing pods follow, their packets are delivered whole before, during and after, and nothing is restarted.
func TestUplinkMTU(t *testing.T) {
	t.Parallel()
	for _, m := range []mode{
		{dataplane: "vpp", transport: "vxlan", plugin: true}, {dataplane: "vpp", transport: "nooverlay", plugin: true},
		{dataplane: "vpp", transport: "vxlan", ipv6: true, plugin: true}, {dataplane: "vpp", transport: "vxlan", veth: true, plugin: true},
		{dataplane: "vpp", transport: "vxlan"}, {dataplane: "vpp", transport: "nooverlay"},
		{dataplane: "linux", transport: "vxlan"}, {dataplane: "linux", transport: "nooverlay"},
	} {
		t.Run(m.String(), func(t *testing.T) {
			matrix.Only(t, "vpp-vxlan-plugin", "linux-vxlan")
			w := newWorld(t, m, 2)
			pods := w.podPerNode()
			w.mesh(pods)
			for _, p := range pods {
				w.serveBulk(p.Namespace)
			}
			before := w.processes()
			overhead := testbed.UplinkMTU - w.podMTU()
			w.crossNode(pods, testbed.UplinkMTU-overhead)
			for _, mtu := range []int{9000, 1400, 1600, testbed.UplinkMTU} {
				l := w.background(pods)
				w.setUplinkMTU(mtu)
				start, want := time.Now(), mtu-overhead
				if m.veth {
					want = min(want, 1920)
				}
				for _, p := range pods {
					w.hasMTU(p, want)
				}
				w.overlayHasMTU(want)
				w.t.Logf("uplink %d: pods have %d after %s", mtu, want, time.Since(start).Round(time.Millisecond))
				l.moves(w)
				l.end(w)
				w.crossNode(pods, want)
			}
			if after := w.processes(); after != before {
				t.Errorf("processes before %s, after %s", before, after)
			}
			if m.plugin { // otherwise packets that are too long for the device stay in VPP's ring until VPP has the new MTU
				w.unharmed("tx frame not ready", "partial packet")
			}
		})
	}
}

// setUplinkMTU changes the MTU of the network, and of the nodes' NICs on it.
func (w *world) setUplinkMTU(mtu int) {
	w.t.Helper()
	for i, n := range w.Nodes {
		_, err := w.Underlay.Run(w.ctx, "ip", "link", "set", fmt.Sprintf("uplink%d", i+1), "mtu", fmt.Sprint(mtu))
		w.must(err)
		w.ip(n, fmt.Sprintf("link set %s mtu %d", testbed.UplinkNIC, mtu))
	}
	_, err := w.Underlay.Run(w.ctx, "ip", "link", "set", "uplink", "mtu", fmt.Sprint(mtu))
	w.must(err)
}

// hasMTU waits until a pod has an MTU.
func (w *world) hasMTU(p *testbed.Pod, want int) {
	w.t.Helper()
	w.within(time.Minute, p.Namespace.Name+" follows the uplink", func() error {
		out, err := p.Namespace.Run(w.ctx, "ip", "-o", "link", "show", "dev", "eth0")
		if err == nil && !strings.Contains(out, fmt.Sprintf(" mtu %d ", want)) {
			err = fmt.Errorf("not %d: %s", want, out)
		}
		return err
	})
}

// overlayHasMTU checks that the overlay's device of the Linux dataplane follows the uplink on its event, before the next periodic
// comparison.
func (w *world) overlayHasMTU(want int) {
	w.t.Helper()
	if w.mode.dataplane != "linux" || w.mode.transport != "vxlan" {
		return
	}
	for _, n := range w.Nodes {
		w.within(5*time.Second, "the overlay of "+n.Name+" follows the uplink", func() error {
			out, err := n.Run(w.ctx, "ip", "-o", "link", "show", "dev", "contiv-vxlan")
			if err == nil && !strings.Contains(out, fmt.Sprintf(" mtu %d ", want)) {
				err = fmt.Errorf("not %d: %s", want, out)
			}
			return err
		})
	}
}

// crossNode checks that data and single packets up to the MTU are delivered between two nodes, in both directions and all families.
func (w *world) crossNode(pods []*testbed.Pod, mtu int) {
	w.t.Helper()
	for _, p := range pods { // a kernel keeps the path MTU that it has stored while the nodes differed for ten minutes
		for _, family := range []string{"-4", "-6"} {
			_, err := p.Namespace.Run(w.ctx, "ip", family, "route", "flush", "cache")
			w.must(err)
		}
	}
	for i, from := range pods {
		for _, ip := range pods[1-i].IPs {
			w.sizes(from.Namespace, ip, mtu)
			w.load(from.Namespace, ip)
		}
	}
}

// processes returns the PIDs of the processes that must not be restarted.
func (w *world) processes() string {
	var out []int
	for _, n := range w.Nodes {
		out = append(out, n.Agent.PID())
		if n.VPP != nil {
			out = append(out, n.VPP.PID())
		}
	}
	return fmt.Sprint(out)
}

// background is data that is transferred between two pods, in both directions, repeatedly.
type background struct {
	stop  context.CancelFunc
	work  sync.WaitGroup
	mu    sync.Mutex
	runs  int     // guarded by mu
	fails []error // guarded by mu
}

func (w *world) background(pods []*testbed.Pod) *background {
	ctx, cancel := context.WithCancel(w.ctx)
	l := &background{stop: cancel}
	for i, from := range pods {
		for _, ip := range pods[1-i].IPs {
			l.work.Go(func() {
				for ctx.Err() == nil {
					one, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
					_, err := bulk.Load{Up: 2, Down: 2, Length: 512 << 10}.Run(one, from.Namespace, netip.AddrPortFrom(ip, bulkPort))
					cancel()
					l.mu.Lock()
					if l.runs++; err != nil {
						l.fails = append(l.fails, err)
					}
					l.mu.Unlock()
				}
			})
		}
	}
	l.moves(w)
	return l
}

// moves waits until some more data has been transferred.
func (l *background) moves(w *world) {
	w.t.Helper()
	count := func() int { l.mu.Lock(); defer l.mu.Unlock(); return l.runs }
	enough := count() + 6
	w.within(2*time.Minute, "data moves", func() error {
		if n := count(); n < enough {
			return fmt.Errorf("%d of %d loads", n, enough)
		}
		return nil
	})
}

// end stops the transfer; every byte has to have arrived.
func (l *background) end(w *world) {
	w.t.Helper()
	l.stop()
	l.work.Wait()
	w.t.Logf("%d loads meanwhile", l.runs)
	w.must(errors.Join(l.fails...))
}
