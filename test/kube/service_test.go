package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"contiv.dev/vswitch/test/testbed/netns"
)

// svc has the data of a service that tests use.
type svc struct {
	Spec struct {
		ClusterIPs []string
		Ports      []struct{ Port, NodePort int }
	}
}

func (s *svc) nodePort() int { return s.Spec.Ports[0].NodePort }

// service makes a dual-stack service of an application, with a node port; it is deleted after the test.
func (w *world) service(app string) *svc {
	w.t.Helper()
	w.apply(fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec:
  type: NodePort
  ipFamilyPolicy: RequireDualStack
  selector: {app: %[1]s}
  ports: [{name: http, port: 80, targetPort: %[2]d}]
`, app, webPort))
	w.t.Cleanup(func() { w.kubectl("delete", "service", app, "--ignore-not-found") })
	s := &svc{}
	w.must(json.Unmarshal([]byte(w.kubectl("get", "service", app, "-o", "json")), s))
	return s
}

// nodeAddresses returns the addresses with node ports: on VPP those of VPP, which has its own in addition to the host's.
func (w *world) nodeAddresses(n *node) []string {
	if w.onVPP(n) {
		return []string{n.vppIP(), n.vppIP6()}
	}
	return []string{n.ip(), n.ip6()}
}

// testServices checks that pods, nodes and clients outside reach all backends of a service, and no removed one.
func testServices(w *world) {
	pods := w.webPods("web", 2)
	s := w.service("web")
	var names []string
	for _, p := range pods {
		names = append(names, p.Metadata.Name)
	}
	w.everywhere(s, pods, names)
	gone := pods[0].Metadata.Name
	w.kubectl("delete", "pod", gone)
	names = slices.DeleteFunc(names, func(n string) bool { return n == gone })
	w.everywhere(s, pods[1:], names)
	w.deletePods("web")
	for _, ip := range s.Spec.ClusterIPs {
		w.within(10*time.Second, "a service without backends refuses at "+ip, func() error {
			return refused(w.nodes[0].host, hostPort(ip, 80))
		})
	}
}

// refused checks that a connection is refused at once.
func refused(ns *netns.Namespace, server string) error {
	start := time.Now()
	if answer, err := queryFrom(ns, server, "/hostname"); err == nil {
		return fmt.Errorf("%s answers", answer)
	}
	if took := time.Since(start); took > 3*time.Second { // one second is normal: the client sends its SYN again
		return fmt.Errorf("it took %s to fail", took)
	}
	return nil
}

// everywhere sends requests to the service from all places until exactly the named servers answer.
func (w *world) everywhere(s *svc, pods []*client, names []string) {
	w.t.Helper()
	for _, ip := range s.Spec.ClusterIPs {
		for _, p := range pods {
			w.spread(p.Metadata.Name, p.ns, hostPort(ip, 80), names)
		}
		for _, n := range w.nodes {
			w.spread(n.name, n.host, hostPort(ip, 80), names)
		}
	}
	for _, n := range w.nodes {
		for _, ip := range w.nodeAddresses(n) {
			w.spread("outside", nil, hostPort(ip, s.nodePort()), names)
			w.spread(pods[0].Metadata.Name, pods[0].ns, hostPort(ip, s.nodePort()), names)
		}
	}
}

// spread sends a number of requests; all of the servers must have answered and no other. With n servers, the probability that
// one of them gives none of k answers is about n·(1-1/n)^k: with k=40 and 4 servers, 1 in 25,000.
func (w *world) spread(client string, ns *netns.Namespace, server string, names []string) {
	w.t.Helper()
	w.within(15*time.Second, fmt.Sprintf("%s reaches %v at %s", client, names, server), func() error {
		seen := map[string]bool{}
		for range 40 {
			answer, err := queryFrom(ns, server, "/hostname")
			if err != nil {
				return err
			}
			if !slices.Contains(names, answer) {
				return fmt.Errorf("%s answers", answer)
			}
			seen[answer] = true
		}
		if len(seen) != len(names) {
			return fmt.Errorf("only %v answer", seen)
		}
		return nil
	})
}

// testDNS checks that names of services resolve, by UDP and TCP, and that `curl http://name` works.
func testDNS(w *world) {
	w.kubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=60s")
	pods := w.webPods("named", 1)
	s := w.service("named")
	for _, network := range []string{"udp", "tcp"} {
		for _, p := range pods {
			r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
				err = p.ns.Do(func() error {
					conn, err = (&net.Dialer{}).DialContext(ctx, network, "10.96.0.10:53")
					return err
				})
				return conn, err
			}}
			w.within(20*time.Second, p.Metadata.Name+" resolves a name by "+network, func() error {
				ctx, cancel := context.WithTimeout(w.ctx, 3*time.Second)
				defer cancel()
				got, err := r.LookupHost(ctx, "named.default.svc.cluster.local")
				slices.Sort(got)
				want := slices.Sorted(slices.Values(s.Spec.ClusterIPs))
				if err == nil && !slices.Equal(got, want) {
					err = fmt.Errorf("it is %v instead of %v", got, want)
				}
				return err
			})
		}
	}
	out := w.kubectl("exec", pods[0].Metadata.Name, "--", "curl", "-s", "-m", "10", "http://named/hostname")
	if out != pods[0].Metadata.Name && out != pods[1].Metadata.Name {
		w.t.Errorf("curl http://named says %q", out)
	}
}

// testRolling replaces all pods of a deployment while connections are made to its service from all places.
func testRolling(w *world) {
	w.apply(deployment("roll", 4))
	w.t.Cleanup(func() { w.kubectl("delete", "deployment", "roll"); w.deletePods("roll") })
	s := w.service("roll")
	w.kubectl("rollout", "status", "deployment/roll", "--timeout=90s")
	from := w.webPods("roll-client", 1)
	w.spread(from[0].Metadata.Name, from[0].ns, hostPort(s.Spec.ClusterIPs[0], 80), w.namesOf("roll"))
	var loads []*load
	for _, ip := range s.Spec.ClusterIPs {
		server := hostPort(ip, 80)
		loads = append(loads, w.startLoad("pod to "+server, from[0].ns, server, 20*time.Millisecond),
			w.startLoad("host to "+server, w.nodes[1].host, server, 20*time.Millisecond))
	}
	for _, n := range w.nodes {
		server := hostPort(w.nodeAddresses(n)[0], s.nodePort())
		loads = append(loads, w.startLoad("outside to "+server, nil, server, 20*time.Millisecond))
	}
	start := time.Now()
	for range 2 {
		w.kubectl("rollout", "restart", "deployment/roll")
		w.kubectl("rollout", "status", "deployment/roll", "--timeout=120s")
	}
	w.t.Logf("two rolling updates took %s", since(start))
	failed := 0
	w.t.Logf("endpoints: %s", w.kubectl("get", "endpointslices", "-l", "kubernetes.io/service-name=roll", "-o",
		"jsonpath={.items[*].endpoints[*].addresses[0]}"))
	for _, l := range loads {
		failed += l.end()
		w.t.Log(l)
		if l.ok == 0 {
			w.t.Errorf("%s: no connection at all", l.name)
		}
	}
	w.results.failed, w.results.measured = failed, true
	allowed := 0
	if w.setup.reference() {
		return
	}
	if w.reference.measured {
		allowed = w.reference.failed
	}
	if failed > allowed {
		w.t.Errorf("%d connections failed; with kube-proxy %d", failed, allowed)
		w.late()
	}
}

// late logs the delay of the agents behind the API server, and their warnings and errors.
func (w *world) late() {
	for _, n := range w.nodes {
		metrics, err := n.rest(w.ctx, "/metrics")
		if err != nil {
			w.t.Log(err)
		}
		const behind = "kubeproxy_network_programming_duration_seconds_"
		w.t.Logf("%s: seconds behind:\n%s", n.name, strings.Join(linesWith(metrics, behind+`bucket{le="1"}`, behind+`bucket{le="2"}`,
			behind+`bucket{le="3"}`, behind+"count"), "\n"))
		log, err := w.agentLog(n)
		if err != nil {
			w.t.Log(err)
		}
		w.t.Logf("%s: %s", n.name, strings.Join(linesWith(log, "level=WARN", "level=ERROR"), "\n"))
		if out, err := n.sh(w.ctx, "timeout 20 vppctl -s /run/vpp/cli.sock show nat44 static mappings"); err == nil {
			w.t.Logf("%s: VPP's mappings:\n%s", n.name, out)
		}
	}
}

func (w *world) namesOf(app string) []string {
	w.t.Helper()
	pods, err := w.pods(w.ctx, app)
	w.must(err)
	var names []string
	for _, p := range pods {
		names = append(names, p.Metadata.Name)
	}
	return names
}
