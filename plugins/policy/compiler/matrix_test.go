package compiler

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	npapi "sigs.k8s.io/network-policy-api/apis/v1alpha2"
	"sigs.k8s.io/yaml"

	"contiv.dev/vswitch/internal/kube"
	kubemodel "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/verdict"
)

// matrixCluster returns the pods to which the matrix refers. All are endpoints of this node except far.
//
//	a/web   app=web   10.0.0.1 fd00::1   ports http TCP 80, dns UDP 53, sig SCTP 7
//	a/api   app=api   10.0.0.2 fd00::2   port http TCP 8080
//	a/end   app=web   10.0.0.3           terminating
//	b/web   app=web   10.0.0.4           (namespace b: team=blue)
//	c/far   app=far   10.0.1.1           of another node; port http TCP 81; (namespace c: no labels)
//	a/host  app=web   192.0.2.1          in the node's network
//	node   (n1)       192.0.2.1          their node; role=worker
//	edge   (n2)       192.0.2.2          another node; role=edge
//	world             198.51.100.7
func matrixCluster() *cluster {
	c := newCluster()
	c.namespaces["a"] = &kubemodel.Namespace{Name: "a", Labels: map[string]string{"kubernetes.io/metadata.name": "a", "team": "red"}}
	c.namespaces["b"] = &kubemodel.Namespace{Name: "b", Labels: map[string]string{"kubernetes.io/metadata.name": "b", "team": "blue"}}
	c.namespaces["c"] = &kubemodel.Namespace{Name: "c"}
	c.nodes["n1"] = &kubemodel.Node{Name: "n1", Labels: map[string]string{"role": "worker"}, Addresses: []string{"192.0.2.1"}}
	c.nodes["n2"] = &kubemodel.Node{Name: "n2", Labels: map[string]string{"role": "edge"}, Addresses: []string{"192.0.2.2"}}
	port := func(name string, p kubemodel.Protocol, n uint32) *kubemodel.ContainerPort {
		return &kubemodel.ContainerPort{Name: name, Protocol: p, ContainerPort: n}
	}
	c.pod("a/web", "app=web", "10.0.0.1", "fd00::1").Ports = []*kubemodel.ContainerPort{port("http", kubemodel.Protocol_TCP, 80),
		port("dns", kubemodel.Protocol_UDP, 53), port("sig", kubemodel.Protocol_SCTP, 7)}
	c.pod("a/api", "app=api", "10.0.0.2", "fd00::2").Ports = []*kubemodel.ContainerPort{port("http", kubemodel.Protocol_TCP, 8080)}
	c.pod("a/end", "app=web", "10.0.0.3").Terminating = true
	c.pod("b/web", "app=web", "10.0.0.4")
	c.pod("c/far", "app=far", "10.0.1.1").Ports = []*kubemodel.ContainerPort{port("http", kubemodel.Protocol_TCP, 81)}
	c.pod("a/host", "app=web", "192.0.2.1").HostNetwork = true
	for id := range c.pods {
		if id.Name != "far" && id.Name != "host" {
			c.locals[id] = Local{ID: id}
		}
	}
	return c
}

func (c *cluster) pod(name, label string, ips ...string) *kubemodel.Pod {
	id := endpointID(name)
	key, value, _ := strings.Cut(label, "=")
	p := &kubemodel.Pod{Namespace: id.Namespace, Name: id.Name, Ips: ips, Labels: map[string]string{key: value}}
	c.pods[id] = p
	return p
}

func endpointID(name string) model.EndpointID {
	ns, pod, _ := strings.Cut(name, "/")
	return model.EndpointID{Namespace: ns, Name: pod}
}

// probes compiles the cluster and checks one probe per line.
func (c *cluster) probes(t *testing.T, lines string) *verdict.State {
	t.Helper()
	s, err := c.compile()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line != "" {
			c.probe(t, s, line)
		}
	}
	return s
}

// probe parses "+ a/api a/web tcp 80" and checks the connection: "+" means allowed, "-" denied. Names may end in "6" for the IPv6 address.
func (c *cluster) probe(t *testing.T, s *verdict.State, line string) {
	t.Helper()
	f := strings.Fields(line)
	if len(f) < 4 {
		t.Fatalf("%q is no probe", line)
	}
	from, src := c.place(t, f[1])
	to, dst := c.place(t, f[2])
	p := verdict.Packet{Source: src, Dest: dst, Protocol: map[string]model.Protocol{"tcp": 6, "udp": 17, "sctp": 132, "icmp": 1}[f[3]]}
	if len(f) > 4 {
		n, err := strconv.ParseUint(f[4], 10, 16)
		if err != nil {
			t.Fatal(err)
		}
		p.Port = uint16(n)
	}
	p.OwnNode = f[1] == "node" || f[2] == "node"
	if got := s.Allowed(from, to, p); got != (f[0] == "+") {
		t.Errorf("%s: allowed %t", line, got)
	}
	if got := c.allowed(from, to, p); got != (f[0] == "+") {
		t.Errorf("%s: the oracle allows %t", line, got)
	}
}

func (c *cluster) place(t *testing.T, name string) (model.EndpointID, netip.Addr) {
	t.Helper()
	if a, is := map[string]string{"world": "198.51.100.7", "node": "192.0.2.1", "edge": "192.0.2.2"}[name]; is {
		return model.EndpointID{}, netip.MustParseAddr(a)
	}
	name, v6 := strings.CutSuffix(name, "6")
	id := endpointID(name)
	for _, ip := range c.pods[id].GetIps() {
		if a := netip.MustParseAddr(ip); a.Is6() == v6 {
			return id, a
		}
	}
	t.Fatalf("no pod %s with such an address", name)
	return id, netip.Addr{}
}

// cell is one cell of the semantics matrix in plugins/policy/README.md, which uses the same names.
type cell struct {
	name   string
	spec   string // of a policy in namespace a, as YAML; several are separated by "---"
	probes string
}

// TestMatrix checks the semantics matrix.
func TestMatrix(t *testing.T) {
	for _, test := range slices.Concat(matrix, clusterMatrix) {
		t.Run(strings.ReplaceAll(test.name, " ", "_"), func(t *testing.T) {
			c := matrixCluster()
			for i, text := range strings.Split(test.spec, "---") {
				if strings.TrimSpace(text) == "" {
					continue
				}
				if strings.Contains(text, "tier:") {
					cnp := &npapi.ClusterNetworkPolicy{}
					cnp.Name = fmt.Sprint("p", i)
					if err := yaml.UnmarshalStrict([]byte(text), &cnp.Spec); err != nil {
						t.Fatal(err)
					}
					c.clusterwide[cnp.Name] = kube.ConvertClusterPolicy(cnp)
					continue
				}
				np := &networkingv1.NetworkPolicy{}
				np.Namespace, np.Name = "a", fmt.Sprint("p", i)
				if err := yaml.UnmarshalStrict([]byte(text), &np.Spec); err != nil {
					t.Fatal(err)
				}
				c.policies[model.PolicyID{Kind: model.KindNetworkPolicy, Namespace: "a", Name: np.Name}] = kube.ConvertPolicy(np)
			}
			c.probes(t, test.probes)
		})
	}
}

var matrix = []cell{
	{"no policy", "", "+ world a/web tcp 80\n+ a/web world tcp 80\n+ b/web a/web udp 1\n+ a/api6 a/web6 icmp"},
	{"isolated in ingress", `{podSelector: {}}`, "- world a/web tcp 80\n- a/api a/web tcp 80\n+ a/web world tcp 80\n- a/api6 a/web6 icmp\n+ a/api b/web tcp 1"},
	{"isolated in egress", `{podSelector: {}, policyTypes: [Egress]}`, "+ world a/web tcp 80\n- a/web world tcp 80\n- a/api a/web tcp 80"},
	{"isolated in both", `{podSelector: {}, policyTypes: [Ingress, Egress]}`, "- world a/web tcp 80\n- a/web world tcp 80"},
	{"egress rules imply the type Egress", `{podSelector: {}, egress: [{}]}`, "- world a/web tcp 80\n+ a/web world tcp 80"},
	{"no egress rules do not imply it", `{podSelector: {}, ingress: [{}]}`, "+ world a/web tcp 80\n+ a/web world tcp 80"},
	{"egress null is not isolated", `{podSelector: {}, egress: null, ingress: [{}]}`, "+ a/web world tcp 80"},
	{"egress empty with its type is isolated", `{podSelector: {}, policyTypes: [Egress], egress: []}`, "- a/web world tcp 80"},
	{"a rule without its type counts for nothing", `{podSelector: {}, policyTypes: [Egress], ingress: [{}], egress: [{}]}`,
		"+ world a/web tcp 80\n+ a/web world tcp 80"},
	{"a rule for everything", `{podSelector: {}, ingress: [{}]}`, "+ world a/web tcp 80\n+ a/api6 a/web6 icmp\n+ b/web a/web sctp 7"},
	{"from empty is everything", `{podSelector: {}, ingress: [{from: []}]}`, "+ world a/web tcp 80"},
	{"from null is everything", `{podSelector: {}, ingress: [{from: null, ports: [{port: 80}]}]}`, "+ world a/web tcp 80\n- world a/web tcp 81"},
	{"only the policy's namespace", `{podSelector: {matchLabels: {app: web}}}`, "- world a/web tcp 1\n+ world b/web tcp 1\n+ world a/api tcp 1"},
	{"policies add up", `{podSelector: {matchLabels: {app: web}}, ingress: [{ports: [{port: 80}]}]}
---
{podSelector: {}, ingress: [{ports: [{port: 81}]}]}`, "+ world a/web tcp 80\n+ world a/web tcp 81\n- world a/web tcp 82\n- world a/api tcp 80"},
	{"both ends decide", `{podSelector: {matchLabels: {app: web}}, ingress: [{}]}
---
{podSelector: {matchLabels: {app: api}}, policyTypes: [Egress]}`, "- a/api a/web tcp 80\n+ world a/web tcp 80"},
	{"pods of the own namespace", `{podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]}]}`,
		"+ a/web a/api tcp 1\n- b/web a/api tcp 1\n- a/api a/web tcp 1\n- world a/api tcp 1"},
	{"all pods of the own namespace", `{podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}`,
		"+ a/web a/api tcp 1\n- b/web a/api tcp 1\n- c/far a/api tcp 1"},
	{"pods of other namespaces", `{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {team: blue}}}]}]}`,
		"+ b/web a/api tcp 1\n- a/web a/api tcp 1\n- c/far a/api tcp 1"},
	{"all namespaces", `{podSelector: {}, ingress: [{from: [{namespaceSelector: {}}]}]}`,
		"+ b/web a/api tcp 1\n+ a/web a/api tcp 1\n+ c/far a/api tcp 1\n- world a/api tcp 1"},
	{"both selectors must select", `{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {team: blue}}, podSelector: {matchLabels: {app: web}}}]}]}`,
		"+ b/web a/api tcp 1\n- a/web a/api tcp 1"},
	{"two peers are either", `{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {team: blue}}}, {podSelector: {matchLabels: {app: web}}}]}]}`,
		"+ b/web a/api tcp 1\n+ a/web a/api tcp 1\n- c/far a/api tcp 1"},
	{"a namespace by name", `{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: b}}}]}]}`,
		"+ b/web a/api tcp 1\n- a/web a/api tcp 1"},
	{"In", `{podSelector: {matchExpressions: [{key: app, operator: In, values: [api, x]}]}}`, "- world a/api tcp 1\n+ world a/web tcp 1"},
	{"NotIn", `{podSelector: {matchExpressions: [{key: app, operator: NotIn, values: [api]}]}}`, "+ world a/api tcp 1\n- world a/web tcp 1"},
	{"NotIn selects what lacks the label", `{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: team, operator: NotIn, values: [blue]}]}}]}]}`,
		"+ c/far a/api tcp 1\n- b/web a/api tcp 1"},
	{"Exists", `{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: team, operator: Exists}]}}]}]}`,
		"- c/far a/api tcp 1\n+ b/web a/api tcp 1"},
	{"DoesNotExist", `{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: team, operator: DoesNotExist}]}}]}]}`,
		"+ c/far a/api tcp 1\n- b/web a/api tcp 1"},
	{"labels and expressions must both hold", `{podSelector: {matchLabels: {app: web}, matchExpressions: [{key: app, operator: NotIn, values: [web]}]}}`,
		"+ world a/web tcp 1"},
	{"ipBlock", `{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 198.51.100.0/24}}]}]}`, "+ world a/web tcp 1\n- b/web a/web tcp 1"},
	{"ipBlock holds for pods, too", `{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/30}}]}]}`, "+ a/api a/web tcp 1\n- b/web a/web tcp 1"},
	{"ipBlock of IPv6", `{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: "fd00::/16"}}]}]}`, "+ a/api6 a/web6 tcp 1\n- a/api a/web tcp 1"},
	{"0.0.0.0/0 is not IPv6", `{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 0.0.0.0/0}}]}]}`, "- a/api6 a/web6 tcp 1\n+ world a/web tcp 1"},
	{"except", `{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/24, except: [10.0.0.2/32, 10.0.0.4/31]}}]}]}`,
		"- a/api a/web tcp 1\n- b/web a/web tcp 1\n+ a/end a/web tcp 1"},
	{"except of everything", `{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/24, except: [10.0.0.0/16]}}]}]}`, "- a/api a/web tcp 1"},
	{"except does not bind other peers", `{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/24, except: [10.0.0.2/32]}}, {ipBlock: {cidr: 10.0.0.2/32}}]}]}`,
		"+ a/api a/web tcp 1"},
	{"a port", `{podSelector: {}, ingress: [{ports: [{port: 80}]}]}`, "+ world a/web tcp 80\n- world a/web tcp 81\n- world a/web udp 80\n- world a/web icmp"},
	{"a protocol", `{podSelector: {}, ingress: [{ports: [{protocol: UDP}]}]}`, "+ world a/web udp 1\n+ world a/web udp 65535\n- world a/web tcp 1\n- world a/web icmp"},
	{"a port's protocol is TCP", `{podSelector: {}, ingress: [{ports: [{}]}]}`, "+ world a/web tcp 1\n- world a/web udp 1"},
	{"SCTP", `{podSelector: {}, ingress: [{ports: [{protocol: SCTP, port: 7}]}]}`, "+ world a/web sctp 7\n- world a/web sctp 8\n- world a/web tcp 7"},
	{"endPort", `{podSelector: {}, ingress: [{ports: [{port: 80, endPort: 90}]}]}`, "- world a/web tcp 79\n+ world a/web tcp 80\n+ world a/web tcp 90\n- world a/web tcp 91"},
	{"ports are any of them", `{podSelector: {}, ingress: [{ports: [{port: 1}, {port: 2}, {protocol: UDP, port: 3}]}]}`, "+ world a/web tcp 1\n+ world a/web tcp 2\n+ world a/web udp 3\n- world a/web tcp 3"},
	{"peer and port of one rule", `{podSelector: {}, ingress: [{from: [{podSelector: {}}], ports: [{port: 80}]}]}`, "+ a/api a/web tcp 80\n- a/api a/web tcp 81\n- world a/web tcp 80"},
	{"peer and port of two rules", `{podSelector: {}, ingress: [{from: [{podSelector: {}}]}, {ports: [{port: 80}]}]}`, "+ a/api a/web tcp 81\n+ world a/web tcp 80\n- world a/web tcp 81"},
	{"a named port is each pod's own", `{podSelector: {}, ingress: [{ports: [{port: http}]}]}`,
		"+ world a/web tcp 80\n- world a/web tcp 8080\n+ world a/api tcp 8080\n- world a/api tcp 80\n- world a/end tcp 80"},
	{"a named port has a protocol", `{podSelector: {}, ingress: [{ports: [{port: dns}, {port: sig, protocol: SCTP}]}]}`,
		"- world a/web udp 53\n- world a/web tcp 53\n+ world a/web sctp 7"},
	{"a named port that no pod has", `{podSelector: {}, ingress: [{ports: [{port: none}]}]}`, "- world a/web tcp 80\n- world a/web icmp"},
	{"a named port in egress is the receiver's", `{podSelector: {}, policyTypes: [Egress], egress: [{to: [{namespaceSelector: {}}], ports: [{port: http}]}]}`,
		"+ a/api a/web tcp 80\n- a/api a/web tcp 8080\n+ a/web a/api tcp 8080\n+ a/web c/far tcp 81\n- a/web c/far tcp 80\n- a/web b/web tcp 80\n- a/web world tcp 80"},
	{"a named port in egress of chosen peers", `{podSelector: {}, policyTypes: [Egress], egress: [{to: [{podSelector: {matchLabels: {app: web}}}], ports: [{port: http}]}]}`,
		"+ a/api a/web tcp 80\n- a/web a/api tcp 8080\n- a/web c/far tcp 81"},
	{"a named port in egress to everything", `{podSelector: {}, policyTypes: [Egress], egress: [{ports: [{port: http}]}]}`,
		"+ a/api a/web tcp 80\n+ a/web c/far tcp 81\n- a/web world tcp 80"},
	{"a named port in egress to a block", `{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 10.0.1.0/24}}], ports: [{port: http}]}]}`,
		"+ a/web c/far tcp 81\n- a/web c/far tcp 80\n- a/api a/web tcp 80"},
	{"IPv6 as IPv4", `{podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: api}}}], ports: [{port: http}]}]}`,
		"+ a/api6 a/web6 tcp 80\n- a/api6 a/web6 tcp 81"},
	{"a terminating pod is a peer", `{podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]}]}`, "+ a/end a/api tcp 1"},
	{"a terminating pod is isolated", `{podSelector: {}}`, "- world a/end tcp 1"},
	{"a pod in the node's network is no peer", `{podSelector: {}, ingress: [{from: [{namespaceSelector: {}}]}]}`, "- a/host a/web tcp 1"},
	{"a pod in the node's network by ipBlock", `{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 192.0.2.1/32}}]}]}`, "+ a/host a/web tcp 1"},
	{"a pod reaches itself", `{podSelector: {}, policyTypes: [Ingress, Egress]}`, "+ a/web a/web tcp 80\n+ a/web6 a/web6 udp 1"},
}

// TestAddressOfTwo checks that an address that two pods claim belongs to neither, until one of them releases it.
func TestAddressOfTwo(t *testing.T) {
	c := matrixCluster()
	c.policies[model.PolicyID{Kind: model.KindNetworkPolicy, Namespace: "a", Name: "p"}] = &kubemodel.Policy{Namespace: "a", Name: "p",
		Pods: &kubemodel.LabelSelector{}, Ingress: true, IngressRules: []*kubemodel.PolicyRule{{Peers: []*kubemodel.PolicyPeer{
			{Namespaces: &kubemodel.LabelSelector{}}}}}}
	c.pod("c/late", "app=late", "10.0.1.1")
	check := func(want string) {
		t.Helper()
		s, err := c.compile()
		if err != nil {
			t.Fatal(err)
		}
		c.probe(t, s, want+" c/late a/api tcp 1")
	}
	check("-")
	delete(c.pods, endpointID("c/far"))
	check("+")
}

// TestUnknownPod checks that a pod without an object, with the object of another pod, or without the object of its namespace is closed.
func TestUnknownPod(t *testing.T) {
	k, s := New(), verdict.NewState()
	id := model.EndpointID{Namespace: "a", Name: "web"}
	apply := func(closed bool) {
		t.Helper()
		if err := s.Apply(k.Flush()); err != nil {
			t.Fatal(err)
		}
		e := s.Endpoints[id]
		if (e.Ingress.Default == model.Deny) != closed || (e.Egress.Default == model.Deny) != closed {
			t.Errorf("%+v, want closed %t", e, closed)
		}
	}
	k.SetEndpoint(Local{ID: id, UID: "2"})
	apply(true)
	k.SetPod(id, &kubemodel.Pod{Namespace: "a", Name: "web", Uid: "1"})
	apply(true)
	k.SetPod(id, &kubemodel.Pod{Namespace: "a", Name: "web", Uid: "2"})
	apply(true)
	k.SetNamespace("a", &kubemodel.Namespace{Name: "a"})
	apply(false)
	k.SetPod(id, nil)
	apply(true)
}

// TestBlockedNamespace checks that the pods of a namespace whose labels are not known are closed until they are: a policy that denies by the
// labels does not apply to them. Its copy has the same endpoints.
func TestBlockedNamespace(t *testing.T) {
	c, k, s := matrixCluster(), New(), verdict.NewState()
	blue := &kubemodel.LabelSelector{MatchLabels: map[string]string{"team": "blue"}}
	c.clusterwide["p"] = &kubemodel.ClusterPolicy{Name: "p", Namespaces: blue, Pods: &kubemodel.LabelSelector{},
		EgressRules: []*kubemodel.PolicyRule{{Action: kubemodel.PolicyRule_DENY}}}
	k.SetClusterPolicy("p", c.clusterwide["p"])
	for name, n := range c.namespaces {
		k.SetNamespace(name, n)
	}
	for id, p := range c.pods {
		k.SetPod(id, p)
	}
	for _, l := range c.locals {
		k.SetEndpoint(l)
	}
	check := func(problems []string, probes ...string) {
		t.Helper()
		if problems != nil {
			c.namespaces["b"] = &kubemodel.Namespace{Name: "b", Problems: problems}
		}
		k.SetNamespace("b", c.namespaces["b"]) // nil after the namespace was deleted
		if err := s.Apply(k.Flush()); err != nil {
			t.Fatal(err)
		}
		for _, probe := range probes {
			c.probe(t, s, probe)
		}
		copied := verdict.NewState()
		if err := copied.Apply(k.Copy().Flush()); err != nil {
			t.Fatal(err)
		}
		id := endpointID("b/web")
		if is, inCopy := s.Endpoints[id].Egress.Default, copied.Endpoints[id].Egress.Default; is != inCopy {
			t.Errorf("the default of b/web is %s, and %s in a copy", is, inCopy)
		}
		if got := k.Blocked("b"); !slices.Equal(got, problems) && (c.namespaces["b"] != nil || len(got) != 1) {
			t.Errorf("problems %q, want %q", got, problems)
		}
	}
	usable := c.namespaces["b"]
	check(nil, "- b/web a/api tcp 1", "+ a/api b/web tcp 1")
	check([]string{"too large"}, "- b/web a/api tcp 1", "- a/api b/web tcp 1", "- world b/web tcp 1", "+ a/web a/api tcp 1")
	check([]string{"still too large"}, "- a/api b/web tcp 1")
	c.namespaces["b"] = usable
	check(nil, "- b/web a/api tcp 1", "+ a/api b/web tcp 1")
	check([]string{"too large"}, "- a/api b/web tcp 1")
	delete(c.namespaces, "b")
	check(nil, "- b/web a/api tcp 1", "- a/api b/web tcp 1", "+ node b/web tcp 1", "+ a/web a/api tcp 1")
	c.namespaces["b"] = usable
	check(nil, "- b/web a/api tcp 1", "+ a/api b/web tcp 1")
}

// TestOnlyWhatTheNodeNeeds checks that policies that select no endpoint, and named ports of other nodes' pods in ingress, are not in the
// output.
func TestOnlyWhatTheNodeNeeds(t *testing.T) {
	c := matrixCluster()
	c.pod("a/other", "app=web", "10.0.1.9").Ports = []*kubemodel.ContainerPort{{Name: "http", ContainerPort: 80}}
	add := func(namespace string) {
		c.policies[model.PolicyID{Kind: model.KindNetworkPolicy, Namespace: namespace, Name: "p"}] = &kubemodel.Policy{
			Namespace: namespace, Name: "p", Pods: &kubemodel.LabelSelector{}, Ingress: true,
			IngressRules: []*kubemodel.PolicyRule{{Ports: []*kubemodel.PolicyPort{{Name: "http"}}}}}
	}
	add("a")
	add("c")
	s, err := c.compile()
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Policies) != 1 || len(s.Sets) != 1 {
		t.Errorf("%d policies, %d sets: %+v", len(s.Policies), len(s.Sets), s)
	}
	for _, set := range s.Sets {
		if len(set.Members) != 4 { // web and api have two addresses each
			t.Errorf("%s has %v", set.Meaning, set.Members)
		}
	}
}

// TestREADME checks that the README's matrices are those of the tests. CONTIV_UPDATE=1 writes them.
func TestREADME(t *testing.T) {
	matrixInREADME(t, "<!-- matrix -->\n", matrix)
	matrixInREADME(t, "<!-- cluster matrix -->\n", clusterMatrix)
}

func matrixInREADME(t *testing.T, begin string, matrix []cell) {
	t.Helper()
	const path, end = "../README.md", "<!-- end -->"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(data), begin)
	_, tail, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("%s has no place for the matrix", path)
	}
	var b strings.Builder
	b.WriteString(head + begin + "| cell | policy | packets |\n|---|---|---|\n")
	for _, c := range matrix {
		spec := "none"
		if c.spec != "" {
			spec = "`" + strings.ReplaceAll(strings.ReplaceAll(c.spec, "\n---\n", "` and `"), "|", "\\|") + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.name, spec, strings.ReplaceAll(c.probes, "\n", "; "))
	}
	b.WriteString(end + tail)
	if b.String() == string(data) {
		return
	}
	if os.Getenv("CONTIV_UPDATE") == "" {
		t.Fatalf("%s has another matrix: CONTIV_UPDATE=1 go test -run TestREADME writes it", path)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
