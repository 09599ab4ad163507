//go:build linux

package main

import (
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"contiv.dev/vswitch/test/testbed/kubeapi"
	"contiv.dev/vswitch/test/testbed/poll"
)

// TestKubernetes: the pods of Kubernetes are compared, services are listed, and the latency of their programming is measured from the change
// that the endpoint slice names.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	w, api := withAPI(t, "linux")
	put := func(objs ...kubeapi.Object) {
		t.Helper()
		if err := api.Put(objs...); err != nil {
			t.Fatal(err)
		}
	}
	first, second := w.Nodes[0].Name, w.Nodes[1].Name
	b := kubeapi.Pod(first, "b", w.b.IPs)
	put(kubeapi.Pod(first, "a", w.a.IPs), b, kubeapi.Pod(second, "c", w.c.IPs))
	w.until(true, []string{"check"}, "0 findings")
	if err := api.Delete(b); err != nil {
		t.Fatal(err)
	}
	w.until(false, []string{"check"}, "Kubernetes has no such pod", "1 finding")
	put(b, kubeapi.Pod(second, "d", []netip.Addr{netip.MustParseAddr("10.1.2.77")}))
	w.until(false, []string{"check"}, "default/d", "is not connected", "1 finding")

	svc := kubeapi.Service("web", []netip.Addr{netip.MustParseAddr("10.96.0.10")}, kubeapi.Port(corev1.ProtocolTCP, 80))
	slice := kubeapi.Slice(svc, discoveryv1.AddressTypeIPv4, 8080, kubeapi.Endpoint(second, w.c.IPs[0]))
	slice.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: time.Now().UTC().Format(time.RFC3339Nano)}
	put(svc, slice)
	w.until(true, []string{"services", "default/web"}, "10.96.0.10", "80/TCP", w.c.IPs[0].String()+":8080")
	const name = "kubeproxy_network_programming_duration_seconds"
	err := poll.Until(w.ctx, 20*time.Millisecond, func() error {
		count, err := w.Nodes[0].Metric(w.ctx, name+"_count")
		if err == nil && count == 0 {
			err = errNothing
		}
		return err
	})
	sum, errSum := w.Nodes[0].Metric(w.ctx, name+"_sum")
	if err != nil || errSum != nil || sum <= 0 || sum > 30 {
		t.Errorf("programming latency: %g s in all, %v %v", sum, err, errSum)
	}
	t.Logf("from the change to the dataplane: %.1f ms", sum*1000)
}
