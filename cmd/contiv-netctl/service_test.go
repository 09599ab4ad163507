//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/kubeapi"
	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/poll"
	"contiv.dev/vswitch/test/testbed/whoami"
)

// putAddresses sets the addresses in the objects of the pods a, b and c, like kubelet after their start.
func (w *world) putAddresses(api *kubeapi.Server) {
	w.t.Helper()
	first, second := w.Nodes[0].Name, w.Nodes[1].Name
	if err := api.Put(kubeapi.Pod(first, "a", w.a.IPs), kubeapi.Pod(first, "b", w.b.IPs), kubeapi.Pod(second, "c", w.c.IPs)); err != nil {
		w.t.Fatal(err)
	}
}

// withAPI returns a world whose agents watch an API server of the test, which has the nodes and the pods a, b and c: a pod that it does not
// have starts closed.
func withAPI(t *testing.T, dataplane string) (*world, *kubeapi.Server) {
	t.Helper()
	api, address := kubeapi.New(), "127.0.0.1:6443"
	t.Cleanup(api.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, kubeapi.Kubeconfig(address), 0o600); err != nil {
		t.Fatal(err)
	}
	pods := [][]string{{"a", "b"}, {"c"}} // by node, in the order of their start
	return newKubeWorld(t, dataplane, "vxlan", kubeconfig, func(n *testbed.Node) error {
		objs := []kubeapi.Object{kubeapi.Node(n.Name, nil)}
		for _, name := range pods[0] {
			objs = append(objs, kubeapi.Pod(n.Name, name, nil))
		}
		pods = pods[1:]
		if err := api.Put(objs...); err != nil {
			return err
		}
		return n.Do(func() error {
			l, err := net.Listen("tcp", address)
			if err == nil {
				api.Serve(l)
			}
			return err
		})
	}), api
}

// TestServices: trace shows which backend a packet to a service goes to and follows the packet there, or shows why there is none.
func TestServices(t *testing.T) {
	t.Parallel()
	for _, dataplane := range []string{"linux", iptables, "vpp", bare} {
		t.Run(dataplane, func(t *testing.T) {
			matrix.Only(t, "linux", "vpp")
			t.Parallel()
			w, api := withAPI(t, dataplane)
			w.services(api)
		})
	}
}

// endpoints puts a service and its endpoint slices, of both families.
func (w *world) endpoints(api *kubeapi.Server, s *corev1.Service, to ...*testbed.Pod) {
	w.t.Helper()
	objs := []kubeapi.Object{s}
	for i, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		var list []discoveryv1.Endpoint
		for _, p := range to {
			node := w.Nodes[0].Name
			if p == w.c {
				node = w.Nodes[1].Name
			}
			list = append(list, kubeapi.Endpoint(node, p.IPs[i]))
		}
		objs = append(objs, kubeapi.Slice(s, family, 8080, list...))
	}
	if err := api.Put(objs...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) service(name string, i int, change func(*corev1.Service)) *corev1.Service {
	s := kubeapi.Service(name, []netip.Addr{
		netip.MustParseAddr(fmt.Sprintf("10.96.0.%d", i)), netip.MustParseAddr(fmt.Sprintf("fd10:96::%d", i)),
	}, kubeapi.Port(corev1.ProtocolTCP, 80))
	if change != nil {
		change(s)
	}
	return s
}

func (w *world) services(api *kubeapi.Server) {
	first, second := w.Nodes[0].Name, w.Nodes[1].Name
	for _, p := range []*testbed.Pod{w.b, w.c} {
		server, err := whoami.Serve(p.Namespace, p.Name, 8080)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(server.Close)
	}
	local := corev1.ServiceInternalTrafficPolicyLocal
	w.endpoints(api, w.service("far", 11, nil), w.c)
	w.endpoints(api, w.service("near", 12, nil), w.b)
	w.endpoints(api, w.service("none", 13, nil))
	w.endpoints(api, w.service("local", 14, func(s *corev1.Service) { s.Spec.InternalTrafficPolicy = &local }), w.c)
	w.endpoints(api, w.service("both", 15, nil), w.b, w.c)
	w.endpoints(api, w.service("self", 16, nil), w.a)
	w.endpoints(api, w.service("port", 17, func(s *corev1.Service) {
		s.Spec.Type, s.Spec.Ports[0].NodePort = corev1.ServiceTypeNodePort, 30080
	}), w.b)
	w.endpoints(api, w.service("limited", 18, func(s *corev1.Service) {
		s.Spec.Type, s.Spec.LoadBalancerSourceRanges = corev1.ServiceTypeLoadBalancer, []string{"198.51.100.0/24"}
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.9"}}
	}), w.b)
	w.until(true, []string{"services"}, "far", "near", "none", "local", "both", "self", "port", "limited")
	for _, from := range []string{"a", "c"} { // both nodes have the services, including the last one
		w.until(true, []string{"ping", from, "svc/far", "-c", "1"}, "1 sent, 1 answered")
		w.until(true, []string{"ping", from, "svc/port", "-c", "1"}, "1 sent, 1 answered")
	}

	for _, family := range []string{"4", "6"} {
		if family == "6" && w.vppRuns() && !w.plugin() {
			// VPP without the plugin serves no IPv6 services: clients are rejected at once.
			w.want(false, []string{"ping", "a", "svc/both", "-c", "1", "-6"}, "1 sent, 0 answered", "permission denied")
			continue
		}
		flags := []string{}
		if family == "6" {
			flags = []string{"-6"}
		}
		backend := func(p *testbed.Pod) string {
			return netip.AddrPortFrom(netip.MustParseAddr(p.IPs[len(flags)].String()), 8080).String()
		}
		w.until(true, append([]string{"ping", "a", "svc/both", "-c", "1"}, flags...), "1 sent, 1 answered")
		w.want(true, append([]string{"trace", "a", "svc/far"}, flags...), "cluster IP, 1 endpoints", "translated",
			"node "+second, "delivered to pod default/c ("+backend(w.c)+" on "+second+"), reply received", "the reply, on node "+second)
		w.want(false, append([]string{"trace", "a", "svc/none:80"}, flags...), "service default/none has no endpoint for the packet on "+
			first+": it has no ready endpoint")
		if family == "6" && !w.vppRuns() {
			continue // the kernel's traces of both families are alike
		}
		w.want(true, append([]string{"trace", "a", "near"}, flags...), "delivered to pod default/b ("+backend(w.b)+" on "+first)
		w.want(false, append([]string{"trace", "a", "svc/local"}, flags...), "internalTrafficPolicy is Local, and node "+first+
			" has no endpoint")
		w.want(true, append([]string{"trace", "c", "svc/local"}, flags...), "delivered to pod default/c")
		w.bothBackends(flags)
		// No process listens on the port of the service's backend.
		w.want(false, append([]string{"trace", "b", "svc/self"}, flags...), "chose the backend pod default/a",
			"nothing listens on that port")
	}
	var rep traceReport
	text := w.want(true, []string{"trace", "a", "10.96.0.11:80", "-o", "json"})
	if err := json.Unmarshal([]byte(text), &rep); err != nil || len(rep.Sides) != 2 || rep.Service.Pod != "default/c" ||
		rep.Sides[1].Back.Outcome != "sent" || rep.Sides[0].There.Left.Dest != rep.Service.Chosen {
		w.t.Errorf("trace -o json: %v\n%s", err, text)
	}
	w.portsInUse()
	w.pluginTrace()
	w.sourcesCondition(api)
	w.want(false, []string{"trace", "a", "203.0.113.9:80"}, "load balancer address",
		w.a.IPs[0].String()+" is in none of its loadBalancerSourceRanges [198.51.100.0/24]")
	// The other node's node port has a pod of this node as backend.
	w.want(true, []string{"trace", "a", w.nodeIP(1) + ":30080"}, "service default/port, node port", "delivered to pod default/b")
	w.natByPod()
	w.want(true, []string{"trace", "a", "10.96.0.11"}, "svc/default/far")
	w.want(false, []string{"trace", "a", "svc/far:81"}, "has no such port; it has 80/TCP")
	w.want(false, []string{"trace", "a", "svc/nobody"}, "serves no service default/nobody")
	w.want(false, []string{"ping", "a", "nobody"}, "unknown name", "serves no service")
}

// portsInUse checks that a probe takes another source port if the pod uses the first one: the pod uses every second one.
func (w *world) portsInUse() {
	w.t.Helper()
	var listeners []net.Listener
	err := w.a.Do(func() error {
		for port := firstSourcePort; port < firstSourcePort+sourcePorts; port += 2 {
			l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
			if errors.Is(err, syscall.EADDRINUSE) {
				continue // an earlier probe
			}
			if err != nil {
				return err
			}
			listeners = append(listeners, l)
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for range 4 {
		w.want(true, []string{"trace", "a", "svc/far"}, "delivered to pod default/c")
	}
	for _, l := range listeners {
		_ = l.Close()
	}
}

// sourcesCondition checks that the node's condition shows whether sources are checked.
func (w *world) sourcesCondition(api *kubeapi.Server) {
	w.t.Helper()
	want := []string{`"type":"ContivSourcesChecked"`, `"status":"True"`}
	if w.vppRuns() && !w.plugin() {
		want = []string{want[0], `"status":"False"`, `"reason":"VPPWithoutPlugin"`}
	}
	path := "/api/v1/nodes/" + w.Nodes[0].Name + "/status"
	err := poll.Until(w.ctx, 100*time.Millisecond, func() error {
		for _, write := range api.Written() {
			missing := slices.ContainsFunc(want, func(text string) bool { return !strings.Contains(write.Body, text) })
			if write.Method == http.MethodPatch && write.Path == path && !missing {
				return nil
			}
		}
		return errNothing
	})
	if err != nil {
		w.t.Errorf("no condition with %v: %v", want, api.Written())
	}
}

// pluginTrace checks that the plugin's verdict is shown with the frontend and the backend. If VPP lacks the plugin, check reports it.
func (w *world) pluginTrace() {
	w.t.Helper()
	if !w.vppRuns() {
		return
	}
	if !w.plugin() {
		w.want(false, []string{"check"}, "pods' source addresses are not checked")
		return
	}
	w.want(true, []string{"trace", "a", "svc/far"}, "contiv-ip4-input", "translated: ", " -> 10.96.0.11:80 becomes ",
		" -> "+netip.AddrPortFrom(w.c.IPs[0], 8080).String()+" (connection ")
	w.want(true, []string{"trace", "a", "svc/far", "-6"}, "contiv-ip6-input", " -> [fd10:96::11]:80 becomes ")
	w.want(false, []string{"trace", "a", "svc/none"}, "reject: rejected, no backend")
}

// bothBackends checks that of several backends the chosen one is shown, on its node.
func (w *world) bothBackends(flags []string) {
	w.t.Helper()
	seen := map[string]bool{}
	for range 40 {
		out := w.want(true, append([]string{"trace", "a", "svc/both"}, flags...), "2 endpoints", "delivered to pod default/")
		for _, p := range []string{"b", "c"} {
			if strings.Contains(out, "delivered to pod default/"+p) {
				seen[p] = true
			}
		}
		if len(seen) == 2 {
			return
		}
	}
	w.t.Errorf("40 connections to two backends went to %v", seen)
}

// natByPod checks the number of sessions of each pod and, with VPP, how much each pod has sent to services.
func (w *world) natByPod() {
	w.t.Helper()
	var rows []natRow
	text := w.want(true, []string{"nat", w.Nodes[0].Name, "-o", "json"})
	if err := json.Unmarshal([]byte(text), &rows); err != nil || len(rows) != 1 || rows[0].Error != "" {
		w.t.Fatalf("%v %s", err, text)
	}
	sessions, packets := map[string]int{}, map[string]uint64{}
	for _, s := range rows[0].Sessions {
		sessions[s.Pod] = s.Sessions
	}
	for _, p := range rows[0].Packets {
		packets[p.Pod] = p.ToServices
	}
	if w.plugin() {
		if sessions["a"] == 0 || sessions["b"] == 0 {
			w.t.Errorf("pods a and b have opened connections: %s", text)
		}
	} else if sessions["b"] == 0 || sessions[""] == 0 {
		w.t.Errorf("there were connections to pod b, and to pods elsewhere: %s", text)
	}
	if w.vppRuns() && !w.plugin() && packets["a"] == 0 {
		w.t.Errorf("pod a has sent to services: %s", text)
	}
	w.want(true, []string{"nat"}, w.Nodes[1].Name, "SESSIONS")
}

// nodeIP returns a node's address in the network of nodes.
func (w *world) nodeIP(i int) string {
	if w.vppRuns() {
		return fmt.Sprintf("192.168.16.%d", i+1)
	}
	v4, _ := testbed.UplinkAddress(i)
	return v4
}

func (w *world) vppRuns() bool { return w.Nodes[0].VPP != nil }

// plugin reports whether VPP has our plugin.
func (w *world) plugin() bool { return w.vppRuns() && w.hasPlugin }
