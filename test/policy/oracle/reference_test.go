package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/kube-network-policies/pkg/api"
	"sigs.k8s.io/kube-network-policies/pkg/network"
	knp "sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
	knpcluster "sigs.k8s.io/kube-network-policies/plugins/npa-v1alpha2"
	npapi "sigs.k8s.io/network-policy-api/apis/v1alpha2"
	npinformers "sigs.k8s.io/network-policy-api/pkg/client/informers/externalversions"
	"sigs.k8s.io/yaml"

	"contiv.dev/vswitch/internal/kube"
	kubemodel "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/policy/compiler"
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/verdict"
)

// objects are a cluster's objects in the form in which the API server returns them.
type objects struct {
	namespaces []*corev1.Namespace
	nodes      []*corev1.Node
	pods       []*corev1.Pod
	policies   []*networkingv1.NetworkPolicy
	cluster    []*npapi.ClusterNetworkPolicy
}

// print prints the policies for a failed test.
func (o *objects) print(t fataler) string {
	var b strings.Builder
	show := func(what string, spec any) {
		text, err := yaml.Marshal(spec)
		if err != nil {
			t.Fatalf("print %s: %v", what, err)
		}
		fmt.Fprintf(&b, "%s:\n%s", what, text)
	}
	for _, n := range o.namespaces {
		fmt.Fprintf(&b, "namespace %s %v\n", n.Name, n.Labels)
	}
	for _, p := range o.pods {
		fmt.Fprintf(&b, "pod %s/%s %v %v %v\n", p.Namespace, p.Name, p.Labels, p.Status.PodIPs, p.Spec.Containers[0].Ports)
	}
	for _, p := range o.policies {
		show("NetworkPolicy "+p.Namespace+"/"+p.Name, p.Spec)
	}
	for _, p := range o.cluster {
		show("ClusterNetworkPolicy "+p.Name, p.Spec)
	}
	return b.String()
}

// fataler has the common methods of *testing.T and *rapid.T.
type fataler interface {
	Fatalf(format string, args ...any)
}

// asServed returns an object in the form in which the API server returns it: empty lists are absent.
func asServed[T any](t fataler, in *T) *T {
	data, err := json.Marshal(in)
	out := new(T)
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		t.Fatalf("as the API server hands it out: %v", err)
	}
	return out
}

// defaulted fills in the defaults of the API server.
func defaulted(t fataler, in *networkingv1.NetworkPolicy) *networkingv1.NetworkPolicy {
	p := asServed(t, in)
	if len(p.Spec.PolicyTypes) == 0 {
		p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(p.Spec.Egress) > 0 {
			p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
	tcp := corev1.ProtocolTCP
	fill := func(ports []networkingv1.NetworkPolicyPort) {
		for i := range ports {
			if ports[i].Protocol == nil {
				ports[i].Protocol = &tcp
			}
		}
	}
	for i := range p.Spec.Ingress {
		fill(p.Spec.Ingress[i].Ports)
	}
	for i := range p.Spec.Egress {
		fill(p.Spec.Egress[i].Ports)
	}
	return p
}

// reference determines verdicts with kube-network-policies. It is the pod provider of that engine.
type reference struct {
	pods   map[string]*api.PodInfo
	engine *knp.PolicyEngine
}

// GetPodInfoByIP implements api.PodInfoProvider.
func (r *reference) GetPodInfoByIP(ip string) (*api.PodInfo, bool) {
	p, known := r.pods[ip]
	return p, known
}

// newReference fills the stores of informers that never run.
func newReference(t fataler, o *objects) *reference {
	r := &reference{pods: map[string]*api.PodInfo{}}
	labels := map[string]map[string]string{}
	for _, n := range o.namespaces {
		labels[n.Name] = n.Labels
	}
	for _, p := range o.pods {
		for _, ip := range p.Status.PodIPs {
			if !p.Spec.HostNetwork {
				r.pods[ip.IP] = api.NewPodInfo(p, labels[p.Namespace], nil, "")
			}
		}
	}
	nodes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, n := range o.nodes {
		add(t, nodes, n)
	}
	cnps := npinformers.NewSharedInformerFactory(nil, 0).Policy().V1alpha2().ClusterNetworkPolicies()
	for _, p := range o.cluster {
		add(t, cnps.Informer().GetIndexer(), p)
	}
	lister := corelisters.NewNodeLister(nodes)
	r.engine = knp.NewPolicyEngine(r, []api.PolicyEvaluator{
		knpcluster.NewClusterNetworkPolicy(npapi.AdminTier, cnps, nil, lister),
		directions{
			PolicyEvaluator: standard(t, o, networkingv1.PolicyTypeEgress),
			ingress:         standard(t, o, networkingv1.PolicyTypeIngress),
		},
		knpcluster.NewClusterNetworkPolicy(npapi.BaselineTier, cnps, nil, lister),
	})
	return r
}

// directions has a store of NetworkPolicies for each direction. kube-network-policies skips the tier Baseline in both directions for
// a pod that a NetworkPolicy isolates in one. This is an error of kube-network-policies, because the API isolates each direction
// separately.
type directions struct {
	api.PolicyEvaluator // for egress
	ingress             api.PolicyEvaluator
}

func (d directions) EvaluateIngress(ctx context.Context, p *network.Packet, from, to *api.PodInfo) (api.Verdict, error) {
	return d.ingress.EvaluateIngress(ctx, p, from, to)
}

func standard(t fataler, o *objects, direction networkingv1.PolicyType) api.PolicyEvaluator {
	core := informers.NewSharedInformerFactory(nil, 0)
	policies := core.Networking().V1().NetworkPolicies()
	e := knp.NewStandardNetworkPolicy("node", core.Core().V1().Namespaces(), core.Core().V1().Pods(), policies)
	for _, p := range o.policies {
		if slices.Contains(p.Spec.PolicyTypes, direction) {
			add(t, policies.Informer().GetIndexer(), p)
		}
	}
	return e
}

func add(t fataler, to cache.Indexer, object any) {
	if err := to.Add(object); err != nil {
		t.Fatalf("add %T: %v", object, err)
	}
}

var coreProtocols = map[model.Protocol]corev1.Protocol{model.TCP: corev1.ProtocolTCP, model.UDP: corev1.ProtocolUDP, model.SCTP: corev1.ProtocolSCTP}

// allowed returns kube-network-policies' verdict about a packet.
func (r *reference) allowed(t fataler, p verdict.Packet) bool {
	allowed, err := r.engine.EvaluatePacket(context.Background(), &network.Packet{SrcIP: net.IP(p.Source.AsSlice()),
		DstIP: net.IP(p.Dest.AsSlice()), Proto: coreProtocols[p.Protocol], SrcPort: 40000, DstPort: int(p.Port)})
	if err != nil {
		t.Fatalf("%v: %v", p, err)
	}
	return allowed
}

// ours is our compiler and its output so far.
type ours struct {
	k     *compiler.Compiler
	state *verdict.State
	at    map[netip.Addr]model.EndpointID
}

func newOurs(t fataler, o *objects) *ours {
	u := &ours{compiler.New(), verdict.NewState(), map[netip.Addr]model.EndpointID{}}
	for _, n := range o.namespaces {
		u.namespace(n)
	}
	for _, n := range o.nodes {
		node := &kubemodel.Node{Name: n.Name, Labels: n.Labels}
		for _, a := range n.Status.Addresses {
			node.Addresses = append(node.Addresses, a.Address)
		}
		u.k.SetNode(n.Name, node)
	}
	for _, p := range o.pods {
		u.pod(p)
	}
	for _, p := range o.policies {
		u.k.SetPolicy(p.Namespace, p.Name, kube.ConvertPolicy(p))
	}
	for _, p := range o.cluster {
		u.k.SetClusterPolicy(p.Name, kube.ConvertClusterPolicy(p))
	}
	u.apply(t)
	return u
}

func (u *ours) namespace(n *corev1.Namespace) {
	u.k.SetNamespace(n.Name, &kubemodel.Namespace{Name: n.Name, Labels: n.Labels})
}

// pod adds a pod; a pod of another node is not an endpoint.
func (u *ours) pod(p *corev1.Pod) {
	id := model.EndpointID{Namespace: p.Namespace, Name: p.Name}
	obj := &kubemodel.Pod{Namespace: p.Namespace, Name: p.Name, Labels: p.Labels, HostNetwork: p.Spec.HostNetwork,
		Terminating: p.DeletionTimestamp != nil}
	for _, ip := range p.Status.PodIPs {
		obj.Ips = append(obj.Ips, ip.IP)
		if !p.Spec.HostNetwork {
			u.at[netip.MustParseAddr(ip.IP)] = id
		}
	}
	for _, port := range p.Spec.Containers[0].Ports {
		obj.Ports = append(obj.Ports, &kubemodel.ContainerPort{Name: port.Name, Protocol: convert[port.Protocol],
			ContainerPort: uint32(port.ContainerPort)})
	}
	u.k.SetPod(id, obj)
	if !p.Spec.HostNetwork {
		u.k.SetEndpoint(compiler.Local{ID: id})
	}
}

func (u *ours) apply(t fataler) {
	if err := u.state.Apply(u.k.Flush()); err != nil {
		t.Fatalf("%v", err)
	}
}

func (u *ours) allowed(p verdict.Packet) bool {
	return u.state.Allowed(u.at[p.Source], u.at[p.Dest], p)
}

func meta(namespace, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
}

func newPod(namespace, name string, labels map[string]string, ips []string, ports ...corev1.ContainerPort) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: meta(namespace, name, labels), Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: ports}}}}
	for _, ip := range ips {
		p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: ip})
	}
	return p
}

func newNode(name string, labels map[string]string, ips ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: meta("", name, labels)}
	for _, ip := range ips {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	return n
}
