package e2e

import (
	"net/netip"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed/matrix"
)

// TestDualStack checks that pods have an address of each family, and that both work.
func TestDualStack(t *testing.T) {
	t.Parallel()
	each(t, []mode{tap, veth, linux, iptables}, func(t *testing.T, m mode) {
		matrix.Only(t, tap.name, linux.name, fake.name)
		r := newRig(t, m, config("ipamConfig:\n  podSubnetCIDR: \"10.1.0.0/16,fd10:1::/48\"\n"))
		pods := r.add("a", "b", "c")
		for _, p := range pods {
			if len(p.IPs) != 2 || !p.IPs[0].Is4() || !p.IPs[1].Is6() || p.IPs[1].Is4In6() {
				t.Fatalf("%s has %v, not one address of each family", p.Name, p.IPs)
			}
			if !netip.MustParsePrefix("fd10:1::/48").Contains(p.IPs[1]) {
				t.Errorf("%s has %s, which is not of the pods' network", p.Name, p.IPs[1])
			}
			if len(p.Gateways) != 2 {
				t.Errorf("%s has the gateways %v", p.Name, p.Gateways)
			}
		}
		// An address that is still tentative would cost the first packets.
		r.reaches(pods[0].Namespace, pods[1].IPs[1].String())
		r.must(r.ring(5*time.Second, pods))
		for _, ip := range pods[1].IPs {
			if _, err := transfer(pods[0].Namespace, pods[1].Namespace, ip.String(), 1<<18); err != nil {
				t.Errorf("TCP to %s: %v", ip, err)
			}
			r.within(3*time.Second, "the node reaches the pod", func() error { return r.PingOnce(r.ctx, ip.String(), 0) })
		}
		r.onlyPods(pods)
		r.restartsQuietly(pods)
		if !m.linux {
			r.VPP.Kill()
			r.must(r.VPP.Run(r.ctx))
		}
		r.must(r.ring(20*time.Second, pods))
		for _, p := range pods {
			r.must(r.CNI.Del(r.ctx, p))
		}
		r.onlyPods(nil)
	})
}
