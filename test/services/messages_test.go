package services

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"contiv.dev/vswitch/test/testbed/kubeapi"
)

// TestMessages checks that VPP with our plugin receives messages only for changes: one additional backend is one message, for any
// number of backends of the service.
func TestMessages(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		if !m.hasPlugin() {
			t.Skipf("%s: skipped: only our plugin has backends of their own", m)
		}
		mainly(t, fakePlugin) // it counts messages as VPP does
		w := newWorld(t, m)
		const backends = 200
		svc := w.service("messages", 1, func(s *corev1.Service) {
			*s = *kubeapi.Service(s.Name, []netip.Addr{netip.MustParseAddr(s.Spec.ClusterIPs[0])}, kubeapi.Port(corev1.ProtocolTCP, 80))
		})
		ends := make([]discoveryv1.Endpoint, backends)
		for i := range ends {
			ends[i] = kubeapi.Endpoint("n3", netip.AddrFrom4([4]byte{10, 1, 3, byte(i + 1)}))
		}
		put := func(ends []discoveryv1.Endpoint) {
			w.must(w.api.Put(kubeapi.Slice(svc, discoveryv1.AddressTypeIPv4, targetPort, ends...)))
		}
		w.calm()
		w.messages("a service without backends: its frontend, and the one that closes its other ports", 2, func() { w.must(w.api.Put(svc)) })
		w.messages("backends, their service, and the frontend that leads there", backends+2, func() { put(ends) })
		w.messages("one backend more", 1, func() {
			ends = append(ends, kubeapi.Endpoint("n3", netip.MustParseAddr("10.1.3.250")))
			put(ends)
		})
		w.messages("one backend is going", 1, func() {
			ends[7].Conditions = kubeapi.Ready(false, true, true)
			put(ends)
		})
		w.messages("it has gone", 0, func() {
			ends = slices.Delete(ends, 7, 8)
			put(ends)
		})
		w.messages("one is replaced by another", 2, func() {
			ends[20] = kubeapi.Endpoint("n3", netip.MustParseAddr("10.1.3.251"))
			put(ends)
		})
		for i, n := range w.members {
			w.must(n.restart(w.ctx))
			w.synced(n)
			w.calm()
			if writes, err := n.writes(w.ctx); err != nil || writes != 0 {
				w.t.Errorf("node %d: a new agent with nothing to do has written %.0f times: %v", i+1, writes, err)
			}
		}
	})
}

// messages makes a change, and requires a number of messages to VPP on every node.
func (w *world) messages(what string, want float64, change func()) {
	w.t.Helper()
	before := make([]float64, len(w.members))
	for i, n := range w.members {
		var err error
		before[i], err = n.writes(w.ctx)
		w.must(err)
	}
	change()
	for i, n := range w.members {
		w.within(time.Minute, what, func() error {
			now, err := n.writes(w.ctx)
			if err == nil && now-before[i] < want {
				err = fmt.Errorf("node %d: %.0f messages by now, %.0f are due", i+1, now-before[i], want)
			}
			return err
		})
	}
	w.calm()
	for i, n := range w.members {
		now, err := n.writes(w.ctx)
		w.must(err)
		if now-before[i] != want {
			w.t.Errorf("%s: VPP of node %d has got %.0f messages instead of %.0f", what, i+1, now-before[i], want)
		}
	}
}
