package nat44_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"contiv.dev/vswitch/test/testbed/poll"
)

// TestRestartAndChanges: what becomes of clients when the agent is restarted and when backends come and go.
func TestRestartAndChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, "")
	client, a, b, c := w.pod(0, "client"), w.pod(0, "a"), w.pod(0, "b"), w.pod(0, "c")
	web := w.service("web", "10.96.0.10", nodePort(30080), a, b)
	w.service("sticky", "10.96.0.11", func(s *corev1.Service) {
		seconds := int32(600)
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
	}, a, b, c)
	w.reaches(client, "tcp", "10.96.0.10:80", a, b)

	chosen := w.sticks(client, "10.96.0.11:80", "")
	open := map[string]*call{}
	for _, network := range []string{"tcp", "udp"} {
		for _, s := range []*server{a, b} {
			open[network+s.name] = w.connectTo(client, network, "10.96.0.10:80", s.name)
		}
	}
	writes := w.restart()
	if writes != 0 {
		t.Errorf("the restarted agent makes %v writes", writes)
	}
	w.sticks(client, "10.96.0.11:80", chosen)
	for name, conn := range open {
		if now, _, err := conn.query(); err != nil || name[3:] != now {
			t.Errorf("%s is with %q after the restart: %v", name, now, err)
		}
	}

	w.endpoints(web, b, c)
	w.reaches(client, "tcp", "10.96.0.10:80", b, c)
	for name, want := range map[string]string{"tcpa": "a", "tcpb": "b", "udpb": "b"} {
		if now, _, err := open[name].query(); err != nil || now != want {
			t.Errorf("%s is with %q after a has gone: %v", name, now, err)
		}
	}
	if now, _, err := open["udpa"].query(); err != nil || now != "b" && now != "c" {
		t.Errorf("UDP that was with a, which has gone, is with %q: %v", now, err)
	}
	w.sticks(client, "10.96.0.11:80", chosen)
	w.must(w.api.Delete(web))
	w.refused(client, "tcp", "10.96.0.10:80")
	for _, conn := range open {
		_ = conn.Close()
	}
}

// sticks makes connections that all have to reach one server, if want is set, that one.
func (w *world) sticks(from *server, to, want string) string {
	w.t.Helper()
	for range 10 {
		var name string
		w.must(w.eventually(func() (err error) {
			name, _, err = queryOnce(from.Namespace, "tcp", to)
			return err
		}))
		if want == "" {
			want = name
		}
		if name != want {
			w.t.Errorf("from %s to %s: %s, before %s", from.name, to, name, want)
		}
	}
	return want
}

// connectTo is a connection that has reached a server.
func (w *world) connectTo(from *server, network, to, name string) (c *call) {
	w.t.Helper()
	w.must(w.eventually(func() error {
		conn, err := dial(from.Namespace, network, to)
		if err != nil {
			return err
		}
		if reached, _, err := conn.query(); err != nil || reached != name {
			_ = conn.Close()
			return fmt.Errorf("%s instead of %s: %w", reached, name, err)
		}
		c = conn
		return nil
	}))
	return c
}

// restart kills the first node's agent and starts it again. The result is how many requests that change VPP it has made when
// it has seen everything.
func (w *world) restart() float64 {
	w.t.Helper()
	n := w.Nodes[0]
	w.must(n.Agent.Kill())
	w.must(n.StartAgent(w.ctx))
	last, since := -1.0, time.Now()
	w.must(poll.Until(w.ctx, 50*time.Millisecond, func() error {
		writes, err := n.Metric(w.ctx, "contiv_vpp_writes_total")
		if err != nil {
			return err
		}
		if writes != last {
			last, since = writes, time.Now()
		}
		if time.Since(since) < 1500*time.Millisecond {
			return fmt.Errorf("%v writes, not settled", writes)
		}
		return nil
	}))
	return last
}

const balanced = "203.0.113.9"

// onlyFrom is a load balancer's service that some networks may use.
func onlyFrom(ranges ...string) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.Type, s.Spec.LoadBalancerSourceRanges = corev1.ServiceTypeLoadBalancer, ranges
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: balanced}}
	}
}

// TestSourceRangesSurviveRestarts: source ranges hold when the agent or VPP is restarted, when pods come and go, and when they
// change.
func TestSourceRangesSurviveRestarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, "")
	client, other, a, b := w.pod(0, "client"), w.pod(0, "other"), w.pod(0, "a"), w.pod(0, "b")
	outside := w.outside()
	_, err := outside.Run(w.ctx, "ip", "route", "add", balanced, "via", "192.168.16.1")
	w.must(err)
	only := func(s *server) string { return s.ip.String() + "/32" }
	w.service("lb", "10.96.0.10", onlyFrom(only(client)), a, b)
	at := balanced + ":80"
	shut := func(when string, clients ...*server) {
		t.Helper()
		var all sync.WaitGroup
		for _, from := range clients {
			for _, network := range []string{"tcp", "udp"} {
				all.Go(func() { w.silent(from, network, at) })
			}
		}
		if all.Wait(); t.Failed() {
			t.Fatal(when)
		}
	}
	w.each("at first", func(network string) { w.reaches(client, network, at, a, b) })
	shut("at first", other, outside)
	w.reaches(other, "tcp", "10.96.0.10:80", a, b)
	open := w.connectTo(client, "tcp", at, "a")
	defer open.Close()
	if writes := w.restart(); writes != 0 {
		t.Errorf("the restarted agent makes %v writes", writes)
	}
	late := w.pod(0, "late")
	w.reaches(late, "tcp", "10.96.0.10:80", a, b)
	shut("a new pod", late, other)
	if name, _, err := open.query(); err != nil || name != "a" {
		t.Errorf("the open connection is with %q: %v", name, err)
	}
	w.service("lb", "10.96.0.10", onlyFrom(only(other)), a, b)
	w.each("other ranges", func(network string) { w.reaches(other, network, at, a, b) })
	shut("other ranges", client, late, outside)
	n := w.Nodes[0]
	n.VPP.Kill()
	w.must(n.VPP.Run(w.ctx))
	w.each("a new VPP", func(network string) { w.reaches(other, network, at, a, b) })
	shut("a new VPP", client, late, outside)
	w.service("lb", "10.96.0.10", onlyFrom(), a, b)
	w.each("all clients", func(network string) {
		for _, from := range []*server{client, late, outside} {
			w.reaches(from, network, at, a, b)
		}
	})
}
