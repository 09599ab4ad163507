package services

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"contiv.dev/vswitch/test/testbed/whoami"
)

// TestConflicts checks that services that claim addresses of other services do not affect these, in terms of packets (docs/adr/0016).
func TestConflicts(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		if m == kubeProxy {
			t.Skip("kube-proxy: skipped: it serves whichever rule comes first")
		}
		mainly(t, fakePlugin, linuxNFT)
		w := newWorld(t, m)
		for i, part := range []struct {
			name string
			run  func(w *world, number int)
		}{
			{"ClusterIPTaken", (*world).clusterIPTaken},
			{"NodePortTaken", (*world).nodePortTaken},
			{"NodeNeedsPort", (*world).nodeNeedsPort},
			{"PodTaken", (*world).podTaken},
			{"PassesOn", (*world).passesOn},
		} {
			t.Run(part.name, func(t *testing.T) {
				w := w.in(t)
				w.apart(i)
				part.run(w, 150+4*i)
			})
		}
	})
}

// madeIn sets the year in which a service was created.
func madeIn(year int, svc *corev1.Service) *corev1.Service {
	svc.CreationTimestamp = metav1.NewTime(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
	return svc
}

// attack puts a service that is older than all others and claims addresses of another service or of another object.
func (w *world) attack(number int, addrs []string, change func(*corev1.Service)) *corev1.Service {
	w.t.Helper()
	svc := madeIn(2001, w.service("a-attacker", number, change))
	svc.Spec.ExternalIPs = addrs
	w.put(svc, "d")
	w.waitEverywhere(svc, "p1,p2 any cluster -> d")
	return svc
}

func ports(svc *corev1.Service, port int32) {
	for i := range svc.Spec.Ports {
		svc.Spec.Ports[i].Port = port
	}
}

// clusterIPTaken is the case of the original finding: externalIPs take over the cluster's DNS.
func (w *world) clusterIPTaken(number int) {
	victim := madeIn(2020, w.service("victim", number, nil))
	w.put(victim, "a")
	w.waitEverywhere(victim, "p1,p2,h1 any cluster -> a")
	attacker := w.attack(number+1, victim.Spec.ClusterIPs, nil)
	w.calm()
	w.holds(victim, "p1,p2,h1,h2 any cluster -> a")
	w.reportedOfProblems()
	w.putEndpoints(attacker) // otherwise it would be rejected for its victim, too
	w.calm()
	w.holds(victim, "p1,p2,h1,h2 any cluster -> a")
	w.must(w.api.Delete(attacker))
	attacker = w.attack(number+2, victim.Spec.ClusterIPs, func(s *corev1.Service) {
		s.Spec.Ports = append(s.Spec.Ports, s.Spec.Ports...)
		for i, port := range []int32{80, 80, 81, 81} {
			s.Spec.Ports[i].Port, s.Spec.Ports[i].Name = port, s.Spec.Ports[i].Name+string(rune('a'+i))
		}
	})
	w.calm()
	w.holds(victim, "p1,p2,h1 any cluster -> a", "p1,h1 any cluster:81 -> rejected")
	// The victim is created again, and is now the younger service.
	w.must(w.api.Delete(victim))
	victim = madeIn(2030, w.service("victim", number, nil))
	w.put(victim, "a")
	w.waitEverywhere(victim, "p1,p2,h1,h2 any cluster -> a")
	w.must(w.api.Delete(attacker, victim))
}

// holds checks that expectations are met, now and later.
func (w *world) holds(svc *corev1.Service, expect ...string) {
	w.t.Helper()
	for range 3 {
		for _, text := range expect {
			e, err := parseExpectation(text)
			w.must(err)
			for f, family := range w.mode.families() {
				if err := w.meetsNow(svc, e, f); err != nil {
					w.t.Errorf("IPv%s: %v", family, err)
				}
			}
		}
	}
}

// meetsNow is like meets, but repeats a lost request with NAT44: a client that used the same port for another service with the same backend
// may still have a session there.
func (w *world) meetsNow(svc *corev1.Service, e expectation, family int) (err error) {
	if w.mode != vpp {
		e.limit = answered
	}
	for range 4 {
		if err = w.meets(svc, e, family); w.mode != vpp || !errors.Is(err, whoami.ErrDropped) {
			return err
		}
	}
	return err
}

// reportedOfProblems checks that both agents report the conflict in their metrics, and once in their logs. If IPv6 is not served, that is a
// problem of each of the two services, too.
func (w *world) reportedOfProblems() {
	w.t.Helper()
	if w.mode.isFake() {
		w.t.Log("fake: not covered: metrics and logs of agents")
		return
	}
	want := 1
	if len(w.mode.families()) == 1 {
		want = 3
	}
	for _, n := range w.Nodes {
		problems, err := n.Metric(w.ctx, "contiv_object_problems")
		if w.must(err); problems != float64(want) {
			w.t.Errorf("%s counts %.0f problems", n.Name, problems)
		}
		if log := n.LogTail(1000); strings.Count(log, "a service is not served as specified") != want || strings.Count(log, "FrontendConflict") != 1 {
			w.t.Errorf("the log of %s:\n%s", n.Name, log)
		}
	}
}

func (w *world) uplinksOf(nodes ...int) (out []string) {
	for _, n := range nodes {
		for _, addr := range w.uplinks[n] {
			out = append(out, addr.String())
		}
	}
	return out
}

// nodePortTaken checks that a service cannot take over a node port by naming nodes' addresses, at this node or on the path to another.
func (w *world) nodePortTaken(number int) {
	victim := madeIn(2020, w.service("victim", number, func(s *corev1.Service) { nodePort(s, number) }))
	w.put(victim, "a")
	w.waitEverywhere(victim, "out any node1 -> a")
	attacker := w.attack(number+1, w.uplinksOf(0, 1), func(s *corev1.Service) { ports(s, victim.Spec.Ports[0].NodePort) })
	w.calm()
	w.holds(victim, "out any node1 -> a", "p1,p2 any node1 -> a", "h1 any node1 -> a")
	w.must(w.api.Delete(attacker))
	// A port that no other service has may be used at a node's address, as for an ingress.
	ingress := w.service("ingress", number+2, func(s *corev1.Service) { s.Spec.ExternalIPs = w.uplinksOf(0) })
	w.put(ingress, "a")
	w.waitEverywhere(ingress, "out,p1,h1 any external -> a")
	w.must(w.api.Delete(ingress, victim))
}

// nodeNeedsPort checks that no service can take over the kubelet's port of a node.
func (w *world) nodeNeedsPort(number int) {
	attacker := w.attack(number, w.uplinksOf(0), func(s *corev1.Service) { ports(s, 10250) })
	w.calm()
	w.holds(attacker, "out,p1,p2 tcp external -> nothing")
	w.must(w.api.Delete(attacker))
}

// podTaken checks that no service can take over a pod's own address and port.
func (w *world) podTaken(number int) {
	var addrs []string
	for _, addr := range w.addrsOf("a") {
		addrs = append(addrs, addr.String())
	}
	attacker := w.attack(number, addrs, func(s *corev1.Service) { ports(s, targetPort) })
	w.calm()
	w.holds(attacker, "p1,p2 any external -> a")
	w.must(w.api.Delete(attacker))
}

// passesOn checks that an address of the older of two services passes to the younger one and back, and that two services swap addresses,
// while a third service loses no connection. A restarted agent writes nothing.
func (w *world) passesOn(number int) {
	steady := w.service("steady", number, nil)
	w.put(steady, "b")
	w.waitEverywhere(steady, "p1,p2 tcp cluster -> b")
	l := w.press(steady)
	named := func(name string, n, year int, addrs []string) *corev1.Service {
		svc := madeIn(year, w.service(name, n, nil))
		svc.Spec.ExternalIPs = addrs
		return svc
	}
	x, y := external(number), external(number+1)
	older, younger := named("z-older", number+1, 2010, x), named("a-younger", number+2, 2020, x)
	w.put(younger, "c")
	w.waitEverywhere(younger, "p1,h1 any external -> c")
	w.put(older, "a")
	w.waitEverywhere(older, "p1,h1 any external -> a", "out any external -> a")
	w.holds(younger, "p1,p2 any cluster -> c")
	w.must(w.api.Delete(older))
	w.waitEverywhere(younger, "p1,h1 any external -> c", "out any external -> c")
	w.put(older, "a")
	w.waitEverywhere(older, "p1,h1 any external -> a")
	younger = named("a-younger", number+2, 2020, y)
	w.must(w.api.Put(younger))
	w.waitEverywhere(younger, "p1,h1 any external -> c")
	older, younger = named("z-older", number+1, 2010, y), named("a-younger", number+2, 2020, x)
	w.must(w.api.Put(older))
	w.must(w.api.Put(younger))
	w.waitEverywhere(older, "p1,h1 any external -> a", "out any external -> a")
	w.waitEverywhere(younger, "p1,h1 any external -> c", "out any external -> c")
	w.put(named("m-loser", number+3, 2025, append(x, y...)), "d")
	w.calm()
	w.holds(older, "p1 any external -> a")
	w.holds(younger, "p1 any external -> c")
	w.must(w.members[0].restart(w.ctx))
	w.synced(w.members[0])
	w.underLoad(l, time.Second, 60)
	writes, err := w.members[0].writes(w.ctx)
	w.must(err)
	if writes != 0 {
		w.t.Errorf("a new agent with nothing to do has written %.0f times", writes)
	}
	w.end(l)
}
