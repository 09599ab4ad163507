package oracle

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/mattfenwick/cyclonus/pkg/generator"
	"github.com/mattfenwick/cyclonus/pkg/matcher"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"contiv.dev/vswitch/internal/kube"
	kubemodel "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/policy/compiler"
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/verdict"
)

type pod struct {
	id     model.EndpointID
	ip     netip.Addr
	labels map[string]string
}

// world is the state that the cases change. One compiler processes all cases.
type world struct {
	t          *testing.T
	v6         bool
	namespaces map[string]map[string]string
	pods       map[model.EndpointID]*pod
	policies   map[model.EndpointID]*networkingv1.NetworkPolicy
	next       byte

	k     *compiler.Compiler
	state *verdict.State
}

var (
	ports     = []int{80, 81}
	protocols = map[corev1.Protocol]model.Protocol{corev1.ProtocolTCP: model.TCP, corev1.ProtocolUDP: model.UDP, corev1.ProtocolSCTP: model.SCTP}
	convert   = map[corev1.Protocol]kubemodel.Protocol{corev1.ProtocolTCP: 0, corev1.ProtocolUDP: 1, corev1.ProtocolSCTP: 2}
)

func portName(port int, protocol corev1.Protocol) string {
	return fmt.Sprintf("serve-%d-%s", port, strings.ToLower(string(protocol)))
}

func newWorld(t *testing.T, v6 bool) *world {
	w := &world{t: t, v6: v6, namespaces: map[string]map[string]string{}, pods: map[model.EndpointID]*pod{},
		policies: map[model.EndpointID]*networkingv1.NetworkPolicy{}, k: compiler.New(), state: verdict.NewState()}
	for _, ns := range []string{"x", "y", "z"} {
		w.namespace(ns, map[string]string{"ns": ns})
		for _, name := range []string{"a", "b", "c"} {
			w.pod(ns, name, map[string]string{"pod": name})
		}
	}
	return w
}

func (w *world) namespace(name string, labels map[string]string) {
	if w.namespaces[name] = labels; labels == nil {
		delete(w.namespaces, name)
		w.k.SetNamespace(name, nil)
		return
	}
	w.k.SetNamespace(name, &kubemodel.Namespace{Name: name, Labels: labels})
}

// pod creates a pod or changes its labels; nil deletes it.
func (w *world) pod(ns, name string, labels map[string]string) {
	id := model.EndpointID{Namespace: ns, Name: name}
	p := w.pods[id]
	if labels == nil {
		delete(w.pods, id)
		w.k.SetPod(id, nil)
		w.k.DeleteEndpoint(id)
		return
	}
	if p == nil {
		w.next++
		p = &pod{id: id, ip: netip.AddrFrom4([4]byte{192, 168, 1, w.next})}
		if w.v6 {
			p.ip = netip.AddrFrom16([16]byte{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, w.next})
		}
		w.pods[id] = p
	}
	p.labels = labels
	obj := &kubemodel.Pod{Namespace: ns, Name: name, Labels: labels, Ips: []string{p.ip.String()}}
	for _, port := range ports {
		for protocol := range protocols {
			obj.Ports = append(obj.Ports, &kubemodel.ContainerPort{Name: portName(port, protocol), Protocol: convert[protocol], ContainerPort: uint32(port)})
		}
	}
	w.k.SetPod(id, obj)
	w.k.SetEndpoint(compiler.Local{ID: id})
}

func (w *world) policy(ns, name string, np *networkingv1.NetworkPolicy) {
	id := model.EndpointID{Namespace: ns, Name: name}
	if np == nil {
		delete(w.policies, id)
		w.k.SetPolicy(ns, name, nil)
		return
	}
	w.policies[id] = np
	w.k.SetPolicy(ns, name, kube.ConvertPolicy(np))
}

func (w *world) act(a *generator.Action) {
	switch {
	case a.CreatePolicy != nil:
		w.policy(a.CreatePolicy.Policy.Namespace, a.CreatePolicy.Policy.Name, a.CreatePolicy.Policy)
	case a.UpdatePolicy != nil:
		w.policy(a.UpdatePolicy.Policy.Namespace, a.UpdatePolicy.Policy.Name, a.UpdatePolicy.Policy)
	case a.DeletePolicy != nil:
		w.policy(a.DeletePolicy.Namespace, a.DeletePolicy.Name, nil)
	case a.CreateNamespace != nil:
		w.namespace(a.CreateNamespace.Namespace, a.CreateNamespace.Labels)
	case a.SetNamespaceLabels != nil:
		w.namespace(a.SetNamespaceLabels.Namespace, a.SetNamespaceLabels.Labels)
	case a.DeleteNamespace != nil: // Kubernetes deletes the pods first
		for id := range w.pods {
			if id.Namespace == a.DeleteNamespace.Namespace {
				w.pod(id.Namespace, id.Name, nil)
			}
		}
		w.namespace(a.DeleteNamespace.Namespace, nil)
	case a.CreatePod != nil:
		w.pod(a.CreatePod.Namespace, a.CreatePod.Pod, a.CreatePod.Labels)
	case a.SetPodLabels != nil:
		w.pod(a.SetPodLabels.Namespace, a.SetPodLabels.Pod, a.SetPodLabels.Labels)
	case a.DeletePod != nil:
		w.pod(a.DeletePod.Namespace, a.DeletePod.Pod, nil)
	}
}

// restore reverts the changes of a case.
func (w *world) restore() {
	for id := range w.policies {
		w.policy(id.Namespace, id.Name, nil)
	}
	for id := range w.pods {
		if !slices.Contains([]string{"x", "y", "z"}, id.Namespace) || !slices.Contains([]string{"a", "b", "c"}, id.Name) {
			w.pod(id.Namespace, id.Name, nil)
		}
	}
	for name := range w.namespaces {
		w.namespace(name, map[string]map[string]string{"x": {"ns": "x"}, "y": {"ns": "y"}, "z": {"ns": "z"}}[name])
	}
	for id := range w.pods {
		w.pod(id.Namespace, id.Name, map[string]string{"pod": id.Name})
	}
}

type target struct {
	number   int
	name     string
	protocol corev1.Protocol
}

// targets returns the ports that a step probes.
func targets(p *generator.ProbeConfig) (list []target) {
	if p.AllAvailable {
		for _, port := range ports {
			for protocol := range protocols {
				list = append(list, target{port, portName(port, protocol), protocol})
			}
		}
		return list
	}
	port := p.PortProtocol
	if port.Port.Type == intstr.Int {
		return []target{{port.Port.IntValue(), portName(port.Port.IntValue(), port.Protocol), port.Protocol}}
	}
	for _, n := range ports {
		if portName(n, port.Protocol) == port.Port.StrVal {
			return []target{{n, port.Port.StrVal, port.Protocol}}
		}
	}
	return nil
}

func (w *world) peer(p *pod) *matcher.TrafficPeer {
	return &matcher.TrafficPeer{IP: p.ip.String(), Internal: &matcher.InternalPeer{PodLabels: p.labels, Namespace: p.id.Namespace,
		NamespaceLabels: w.namespaces[p.id.Namespace]}}
}

// compare compares all verdicts of a step, and returns their number.
func (w *world) compare(what string, probe *generator.ProbeConfig) (verdicts int) {
	w.t.Helper()
	if err := w.state.Apply(w.k.Flush()); err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
	truth := matcher.BuildNetworkPolicies(false, slices.Collect(maps.Values(w.policies)))
	for _, from := range w.pods {
		for _, to := range w.pods {
			if from == to {
				continue // cyclonus does not model that a pod can reach itself
			}
			for _, port := range targets(probe) {
				want := truth.IsTrafficAllowed(&matcher.Traffic{Source: w.peer(from), Destination: w.peer(to), ResolvedPort: port.number,
					ResolvedPortName: port.name, Protocol: port.protocol})
				p := verdict.Packet{Source: from.ip, Dest: to.ip, Protocol: protocols[port.protocol], Port: uint16(port.number)}
				egress := verdict.Evaluate(w.state, w.state.Endpoints[from.id].Egress, false, p).Action == model.Allow
				ingress := verdict.Evaluate(w.state, w.state.Endpoints[to.id].Ingress, true, p).Action == model.Allow
				if egress != want.Egress.IsAllowed() || ingress != want.Ingress.IsAllowed() {
					w.t.Errorf("%s: %s to %s %v: egress %t, ingress %t; cyclonus has %t, %t", what, from.id, to.id, port, egress, ingress,
						want.Egress.IsAllowed(), want.Ingress.IsAllowed())
				}
				verdicts += 2
			}
		}
	}
	return verdicts
}

// TestCyclonus compares the verdicts of all of cyclonus' cases, in both address families.
func TestCyclonus(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		t.Run(map[bool]string{false: "IPv4", true: "IPv6"}[v6], func(t *testing.T) {
			w := newWorld(t, v6)
			blocked := w.pods[model.EndpointID{Namespace: "z", Name: "c"}].ip
			cases := generator.NewTestCaseGenerator(true, blocked.String(), []string{"x", "y", "z"}, nil, nil).GenerateAllTestCases()
			verdicts, steps := 0, 0
			for _, c := range cases {
				for i, step := range c.Steps {
					for _, a := range step.Actions {
						w.act(a)
					}
					verdicts += w.compare(fmt.Sprintf("%s, step %d", c.Description, i), step.Probe)
					steps++
				}
				w.restore()
			}
			t.Logf("%d cases, %d steps, %d verdicts", len(cases), steps, verdicts)
			if len(cases) < 200 || verdicts < 100000 {
				t.Errorf("only %d cases with %d verdicts", len(cases), verdicts)
			}
		})
	}
}
