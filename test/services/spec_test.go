package services

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// specChange is a change of a service that open connections, and new ones of clients in the cluster, do not notice.
type specChange struct {
	name   string
	change func(svc *corev1.Service, number int)
}

// allSpecChanges returns changes; each is made on the result of the one before it.
func allSpecChanges() []specChange {
	return []specChange{
		{"a label", func(s *corev1.Service, _ int) { s.Labels = map[string]string{"team": "red"} }},
		{"one more port", func(s *corev1.Service, number int) {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "more", Protocol: corev1.ProtocolTCP, Port: 81, NodePort: int32(31000 + number)})
		}},
		{"the ports in another order", func(s *corev1.Service, _ int) {
			p := s.Spec.Ports
			p[0], p[2] = p[2], p[0]
		}},
		{"the additional port is gone", func(s *corev1.Service, _ int) {
			s.Spec.Ports = s.Spec.Ports[1:]
			p := s.Spec.Ports
			p[0], p[1] = p[1], p[0]
		}},
		{"external traffic to local endpoints", func(s *corev1.Service, _ int) {
			s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		}},
		{"external traffic to all endpoints", func(s *corev1.Service, _ int) {
			s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
		}},
		{"internal traffic to local endpoints", internalLocal},
		{"internal traffic to all endpoints", func(s *corev1.Service, _ int) { s.Spec.InternalTrafficPolicy = nil }},
		{"affinity", affinity},
		{"no affinity", func(s *corev1.Service, _ int) {
			s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = corev1.ServiceAffinityNone, nil
		}},
		{"source ranges that include all clients", func(s *corev1.Service, _ int) { s.Spec.LoadBalancerSourceRanges = []string{"0.0.0.0/0", "::/0"} }},
		{"no source ranges", func(s *corev1.Service, _ int) { s.Spec.LoadBalancerSourceRanges = nil }},
		{"external addresses", func(s *corev1.Service, number int) { s.Spec.ExternalIPs = external(number + 100) }},
		{"no external addresses", func(s *corev1.Service, _ int) { s.Spec.ExternalIPs = nil }},
		{"preference of the zone", sameZone},
		{"no preference", func(s *corev1.Service, _ int) { s.Spec.TrafficDistribution = nil }},
	}
}

// lasting is a connection that must stay with its server.
type lasting struct {
	talk
	name, server string
}

// specChanges changes a service under load in ways that do not concern its clients: no connection fails, and connections stay with their servers.
func (w *world) specChanges(number int) {
	svc := w.service("changing", number, func(s *corev1.Service) { loadBalancer()(s, number) })
	w.put(svc, "a", "c")
	w.waitEverywhere(svc, "p1,p2 any cluster -> a,c", "out any node1 -> a,c", "out any lb -> a,c")
	var open []lasting
	for f, family := range w.mode.families() {
		for _, c := range []struct{ client, place, network, server string }{
			{"p1", "cluster", "tcp", "c"}, {"p1", "cluster", "udp", "a"},
			// The node has this server: traffic policies and preferences of clients outside keep it.
			{"out", "node1", "tcp", "a"}, {"out", "node1", "udp", "a"}, {"out", "lb", "tcp", "a"}, {"out", "lb", "udp", "a"},
		} {
			to, err := w.destination(svc, c.place, f)
			w.must(err)
			name := fmt.Sprintf("%s of %s to %s, IPv%s", c.network, c.client, c.place, family)
			open = append(open, lasting{w.connectTo(c.network, c.client, to, c.server), name, c.server})
		}
	}
	l := w.press(svc)
	for _, c := range allSpecChanges() {
		svc = svc.DeepCopy()
		c.change(svc, number)
		w.must(w.api.Put(svc))
		w.underLoad(l, 200*time.Millisecond, 4)
		for i := range open {
			if open[i].talk == nil {
				continue
			}
			if a, err := open[i].Query(); err != nil || a.Server != open[i].server {
				w.t.Errorf("after %s: %s is served by %q instead of %s: %v", c.name, open[i].name, a.Server, open[i].server, err)
				w.must(open[i].Close())
				open[i].talk = nil
			}
		}
	}
	w.end(l)
	w.waitEverywhere(svc, "p1,p2 any cluster -> a,c", "out any node1 -> a,c", "out any lb -> a,c")
	var errs []error
	for i := range open {
		if open[i].talk != nil {
			errs = append(errs, open[i].Close())
		}
	}
	w.must(errors.Join(errs...))
}
