package nat44_test

import (
	"bufio"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"contiv.dev/vswitch/internal/testbed"
)

// localAt is a load balancer's service with externalTrafficPolicy Local.
func localAt(ip string) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.Type, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeLoadBalancer, corev1.ServiceExternalTrafficPolicyLocal
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ip}}
	}
}

// TestLocalInCluster: clients in pods and on the host reach backends of other nodes by the external address of a service that
// has local ones for clients outside, whatever comes and goes meanwhile; and nothing of it stays.
func TestLocalInCluster(t *testing.T) {
	w := newWorld(t, 2, "")
	client, a, b := w.pod(0, "client"), w.pod(0, "a"), w.pod(1, "b")
	h0, outside := w.host(0, testbed.MgmtAddress(0)), w.outside()
	_, err := outside.Run(w.ctx, "ip", "route", "add", balanced, "via", "192.168.16.1")
	w.must(err)
	lb := w.service("lb", "10.96.0.10", localAt(balanced), b)
	to := balanced + ":80"
	served := func(when string) {
		t.Helper()
		w.each(when, func(network string) {
			w.reaches(client, network, to, b)
			w.sees(client, network, to, client.ip.String())
			w.reaches(h0, network, to, b)
			w.silent(outside, network, to)
		})
	}
	served("at first")
	w.must(w.eventually(func() error { return askWith(client.Namespace, to, strings.Repeat("x", 3000)) })) // in fragments

	open := w.connectTo(client, "tcp", to, "b")
	defer open.Close()
	datagrams := w.connectTo(client, "udp", to, "b")
	defer datagrams.Close()
	same := func(when string) {
		t.Helper()
		for _, c := range []*call{open, datagrams} {
			if name, _, err := c.ask(); err != nil || name != "b" {
				t.Errorf("%s: the open connection is with %q: %v", when, name, err)
			}
		}
	}
	if writes := w.restart(); writes != 0 {
		t.Errorf("the restarted agent makes %v writes", writes)
	}
	same("a new agent")
	load := w.press(client, to)
	for i := range 12 { // VPP switches all aliases of an interface off when one goes
		other := w.service("other", "10.96.0.11", localAt(fmt.Sprintf("203.0.113.%d", 100+i)), a)
		w.endpoints(lb, []*server{a, b}[i%2], b)
		w.reaches(h0, "tcp", fmt.Sprintf("203.0.113.%d:80", 100+i), a)
		w.must(w.api.Delete(other))
		time.Sleep(10 * time.Millisecond)
	}
	load.stop()
	load.work.Wait()
	load.check(t, 12, 0)
	same("others came and went")
	w.endpoints(lb, b)

	n := w.Nodes[0]
	n.VPP.Kill()
	w.must(n.VPP.Run(w.ctx))
	served("a new VPP")

	w.must(w.api.Delete(lb))
	w.must(w.eventually(func() error { return w.leftOfAliases(n) }))
}

// askWith asks by one datagram.
func askWith(ns *testbed.Namespace, to, text string) error {
	c, err := dial(ns, "udp", to)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(c, text); err != nil {
		return err
	}
	_, err = bufio.NewReader(c).ReadString('\n')
	return err
}

// leftOfAliases says what of aliases there is on a node.
func (w *world) leftOfAliases(n *testbed.Node) error {
	for _, show := range []string{"show pnat translations", "show pnat interfaces", "show nat44 static mappings"} {
		out, err := n.VPP.CLI(show)
		if err != nil {
			return err
		}
		if strings.Contains(out, "254.") || strings.Contains(out, "mask") {
			return fmt.Errorf("%s: %s", show, out)
		}
	}
	for _, list := range []string{"ip route show 254.0.0.0/8", "nft list tables | grep contiv-aliases || true"} {
		out, err := n.Run(w.ctx, "sh", "-c", list)
		if err != nil {
			return err
		}
		if len(out) > 0 {
			return fmt.Errorf("%s: %s", list, out)
		}
	}
	return nil
}
