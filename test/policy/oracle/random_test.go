package oracle

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
	npapi "sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/verdict"
)

// There are few values of each kind, so that random objects match each other.
var (
	someNamespaces = []string{"x", "y", "z"}
	someKeys       = []string{"app", "team"}
	someValues     = []string{"a", "b"}
	someNames      = []string{"http", "dns", "none"}
	somePorts      = []int32{80, 81, 8080}
	someNets       = []string{"10.0.0.0/24", "10.0.0.0/30", "10.0.0.2/32", "0.0.0.0/0", "fd00::/64", "fd00::2/127", "::/0", "192.0.2.0/24"}
	outside        = []string{"198.51.100.7", "2001:db8::7"}
)

func pick[T any](t *rapid.T, what string, list ...T) T { return rapid.SampledFrom(list).Draw(t, what) }

func number(t *rapid.T, what string, low, high int) int {
	return rapid.IntRange(low, high).Draw(t, what)
}

// several draws between low and high elements.
func several[T any](t *rapid.T, what string, low, high int, draw func(*rapid.T) T) (out []T) {
	for range number(t, "number of "+what, low, high) {
		out = append(out, draw(t))
	}
	return out
}

func drawLabels(t *rapid.T) map[string]string {
	out := map[string]string{}
	for _, k := range someKeys {
		if v := pick(t, k, append([]string{""}, someValues...)...); v != "" {
			out[k] = v
		}
	}
	return out
}

func drawSelector(t *rapid.T) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	switch number(t, "selector", 0, 3) {
	case 1:
		s.MatchLabels = map[string]string{pick(t, "key", someKeys...): pick(t, "value", someValues...)}
	case 2, 3:
		s.MatchExpressions = several(t, "expressions", 1, 2, func(t *rapid.T) metav1.LabelSelectorRequirement {
			r := metav1.LabelSelectorRequirement{Key: pick(t, "key", someKeys...), Operator: pick(t, "operator", metav1.LabelSelectorOpIn,
				metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}
			if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
				r.Values = several(t, "values", 1, 2, func(t *rapid.T) string { return pick(t, "value", someValues...) })
			}
			return r
		})
	}
	return s
}

func drawProtocol(t *rapid.T) corev1.Protocol {
	return pick(t, "protocol", corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
}

func drawPod(t *rapid.T, namespace string, i int) *corev1.Pod {
	ports := several(t, "container ports", 0, 2, func(t *rapid.T) corev1.ContainerPort {
		return corev1.ContainerPort{Name: pick(t, "name", someNames[:2]...), ContainerPort: pick(t, "port", somePorts...), Protocol: drawProtocol(t)}
	})
	return newPod(namespace, fmt.Sprint("pod", i), drawLabels(t), []string{fmt.Sprint("10.0.0.", i), fmt.Sprint("fd00::", i)}, ports...)
}

func drawPorts(t *rapid.T) []networkingv1.NetworkPolicyPort {
	return several(t, "ports", 0, 2, func(t *rapid.T) networkingv1.NetworkPolicyPort {
		p, protocol := networkingv1.NetworkPolicyPort{}, drawProtocol(t)
		if number(t, "has a protocol", 0, 3) > 0 {
			p.Protocol = &protocol
		}
		port := intstr.FromInt32(pick(t, "port", somePorts...))
		switch number(t, "kind of port", 0, 3) {
		case 0:
			port = intstr.FromString(pick(t, "name", someNames...))
			p.Port = &port
		case 1:
			p.Port = &port
		case 2:
			end := port.IntVal + int32(number(t, "end", 0, 1))
			p.Port, p.EndPort = &port, &end
		}
		return p
	})
}

func drawPeer(t *rapid.T) networkingv1.NetworkPolicyPeer {
	switch number(t, "peer", 0, 3) {
	case 0:
		return networkingv1.NetworkPolicyPeer{PodSelector: drawSelector(t)}
	case 1:
		return networkingv1.NetworkPolicyPeer{NamespaceSelector: drawSelector(t)}
	case 2:
		return networkingv1.NetworkPolicyPeer{PodSelector: drawSelector(t), NamespaceSelector: drawSelector(t)}
	}
	return networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: pick(t, "network", someNets...),
		Except: several(t, "exceptions", 0, 2, func(t *rapid.T) string { return pick(t, "exception", someNets...) })}}
}

func drawPolicy(t *rapid.T, name string) *networkingv1.NetworkPolicy {
	p := &networkingv1.NetworkPolicy{ObjectMeta: meta(pick(t, "namespace", someNamespaces...), name, nil)}
	p.Spec.PodSelector = *drawSelector(t)
	const in, out = networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress
	p.Spec.PolicyTypes = pick(t, "types", nil, []networkingv1.PolicyType{in}, []networkingv1.PolicyType{out}, []networkingv1.PolicyType{in, out})
	p.Spec.Ingress = several(t, "ingress rules", 0, 2, func(t *rapid.T) networkingv1.NetworkPolicyIngressRule {
		return networkingv1.NetworkPolicyIngressRule{From: several(t, "peers", 0, 2, drawPeer), Ports: drawPorts(t)}
	})
	p.Spec.Egress = several(t, "egress rules", 0, 2, func(t *rapid.T) networkingv1.NetworkPolicyEgressRule {
		return networkingv1.NetworkPolicyEgressRule{To: several(t, "peers", 0, 2, drawPeer), Ports: drawPorts(t)}
	})
	return defaulted(t, p)
}

func drawClusterProtocols(t *rapid.T) []npapi.ClusterNetworkPolicyProtocol {
	return several(t, "protocols", 0, 2, func(t *rapid.T) npapi.ClusterNetworkPolicyProtocol {
		if number(t, "by name", 0, 3) == 0 {
			return npapi.ClusterNetworkPolicyProtocol{DestinationNamedPort: pick(t, "name", someNames...)}
		}
		var port *npapi.Port
		switch start := pick(t, "port", somePorts...); number(t, "kind of port", 0, 2) {
		case 0:
			port = &npapi.Port{Number: start}
		case 1:
			port = &npapi.Port{Range: &npapi.PortRange{Start: start, End: start + 1}}
		}
		switch drawProtocol(t) {
		case corev1.ProtocolTCP:
			return npapi.ClusterNetworkPolicyProtocol{TCP: &npapi.ClusterNetworkPolicyProtocolTCP{DestinationPort: port}}
		case corev1.ProtocolUDP:
			return npapi.ClusterNetworkPolicyProtocol{UDP: &npapi.ClusterNetworkPolicyProtocolUDP{DestinationPort: port}}
		}
		return npapi.ClusterNetworkPolicyProtocol{SCTP: &npapi.ClusterNetworkPolicyProtocolSCTP{DestinationPort: port}}
	})
}

// drawPods draws one of the two ways to select pods.
func drawPods(t *rapid.T) (*metav1.LabelSelector, *npapi.NamespacedPod) {
	if number(t, "by pods", 0, 1) == 0 {
		return drawSelector(t), nil
	}
	return nil, &npapi.NamespacedPod{NamespaceSelector: *drawSelector(t), PodSelector: *drawSelector(t)}
}

func drawClusterPolicy(t *rapid.T, name string) *npapi.ClusterNetworkPolicy {
	p := &npapi.ClusterNetworkPolicy{ObjectMeta: meta("", name, nil)}
	p.Spec.Tier, p.Spec.Priority = pick(t, "tier", npapi.AdminTier, npapi.BaselineTier), int32(number(t, "priority", 0, 2))
	p.Spec.Subject.Namespaces, p.Spec.Subject.Pods = drawPods(t)
	action := func(t *rapid.T) npapi.ClusterNetworkPolicyRuleAction {
		return pick(t, "action", npapi.ClusterNetworkPolicyRuleActionAccept, npapi.ClusterNetworkPolicyRuleActionDeny, npapi.ClusterNetworkPolicyRuleActionPass)
	}
	p.Spec.Ingress = several(t, "ingress rules", 0, 2, func(t *rapid.T) npapi.ClusterNetworkPolicyIngressRule {
		return npapi.ClusterNetworkPolicyIngressRule{Action: action(t), Protocols: drawClusterProtocols(t),
			From: several(t, "peers", 1, 2, func(t *rapid.T) (peer npapi.ClusterNetworkPolicyIngressPeer) {
				peer.Namespaces, peer.Pods = drawPods(t)
				return peer
			})}
	})
	p.Spec.Egress = several(t, "egress rules", 0, 2, func(t *rapid.T) npapi.ClusterNetworkPolicyEgressRule {
		r := npapi.ClusterNetworkPolicyEgressRule{Action: action(t), Protocols: drawClusterProtocols(t)}
		accepts := r.Action == npapi.ClusterNetworkPolicyRuleActionAccept
		r.To = several(t, "peers", 1, 2, func(t *rapid.T) npapi.ClusterNetworkPolicyEgressPeer { return drawEgressPeer(t, accepts) })
		return r
	})
	return asServed(t, p)
}

// drawEgressPeer draws a peer: the API allows domain names only in rules that accept.
func drawEgressPeer(t *rapid.T, accepts bool) (peer npapi.ClusterNetworkPolicyEgressPeer) {
	switch kind := number(t, "peer", 0, 4); {
	case kind == 0:
		peer.Nodes = drawSelector(t)
	case kind == 1:
		peer.Networks = several(t, "networks", 1, 2, func(t *rapid.T) npapi.CIDR { return npapi.CIDR(pick(t, "network", someNets...)) })
	case kind == 2 && accepts:
		peer.DomainNames = []npapi.DomainName{"example.com"}
	default:
		peer.Namespaces, peer.Pods = drawPods(t)
	}
	return peer
}

func drawObjects(t *rapid.T) *objects {
	o := &objects{nodes: []*corev1.Node{newNode("n2", drawLabels(t), "192.0.2.2", "fd02::2"), newNode("n3", drawLabels(t), "192.0.2.3")}}
	for i, ns := range someNamespaces {
		o.namespaces = append(o.namespaces, &corev1.Namespace{ObjectMeta: meta("", ns, drawLabels(t))})
		o.pods = append(o.pods, drawPod(t, ns, 2*i+1), drawPod(t, ns, 2*i+2))
	}
	for i := range number(t, "policies", 0, 3) {
		o.policies = append(o.policies, drawPolicy(t, fmt.Sprint("np", i)))
	}
	for i := range number(t, "cluster policies", 0, 3) {
		o.cluster = append(o.cluster, drawClusterPolicy(t, fmt.Sprint("cnp", i)))
	}
	return o
}

// change changes one object, in both implementations.
func (o *objects) change(t *rapid.T, u *ours) {
	switch what := number(t, "what changes", 0, 3); {
	case what == 0:
		n := pick(t, "namespace", o.namespaces...)
		n.Labels = drawLabels(t)
		u.namespace(n)
	case what == 1 && len(o.policies) > 0:
		i := number(t, "policy", 0, len(o.policies)-1)
		old := o.policies[i]
		o.policies[i] = drawPolicy(t, old.Name)
		u.k.SetPolicy(old.Namespace, old.Name, nil)
		u.k.SetPolicy(o.policies[i].Namespace, old.Name, kube.ConvertPolicy(o.policies[i]))
	case what == 2 && len(o.cluster) > 0:
		i := number(t, "cluster policy", 0, len(o.cluster)-1)
		o.cluster[i] = drawClusterPolicy(t, o.cluster[i].Name)
		u.k.SetClusterPolicy(o.cluster[i].Name, kube.ConvertClusterPolicy(o.cluster[i]))
	default:
		i := number(t, "pod", 0, len(o.pods)-1)
		o.pods[i] = drawPod(t, o.pods[i].Namespace, i+1)
		u.pod(o.pods[i])
	}
	u.apply(t)
}

// compare compares the verdicts about packets between all addresses, and returns how many passed and how many did not.
func compare(t fataler, o *objects, u *ours) (passed, denied int) {
	r := newReference(t, o)
	addrs := append([]string{"192.0.2.2", "fd02::2", "192.0.2.3"}, outside...)
	for _, p := range o.pods {
		addrs = append(addrs, p.Status.PodIPs[0].IP, p.Status.PodIPs[1].IP)
	}
	probes := []struct {
		protocol model.Protocol
		port     uint16
	}{{model.TCP, 80}, {model.TCP, 81}, {model.UDP, 81}, {model.UDP, 8080}, {model.SCTP, 80}, {1, 0}}
	for _, from := range addrs {
		for _, to := range addrs {
			p := verdict.Packet{Source: netip.MustParseAddr(from), Dest: netip.MustParseAddr(to)}
			if from == to || p.Source.Is4() != p.Dest.Is4() {
				continue // kube-network-policies does not model that a pod can reach itself
			}
			for _, probe := range probes {
				p.Protocol, p.Port = probe.protocol, probe.port
				want, got := r.allowed(t, p), u.allowed(p)
				if want != got {
					t.Fatalf("%v: allowed %t, kube-network-policies says %t, of\n%s", p, got, want, o.print(t))
				}
				if want {
					passed++
				} else {
					denied++
				}
			}
		}
	}
	return passed, denied
}

// TestKubeNetworkPolicies compares verdicts about random clusters with those of kube-network-policies, before and after changes that the
// same compiler processes. A difference shrinks to few objects.
func TestKubeNetworkPolicies(t *testing.T) {
	passed, denied := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		o := drawObjects(t)
		u := newOurs(t, o)
		for i := range number(t, "changes", 0, 2) + 1 {
			if i > 0 {
				o.change(t, u)
			}
			p, d := compare(t, o, u)
			passed, denied = passed+p, denied+d
		}
	})
	t.Logf("%d verdicts: %d packets pass, %d do not", passed+denied, passed, denied)
	if passed < 10000 || denied < 10000 {
		t.Error("what was drawn does not tell much")
	}
}
