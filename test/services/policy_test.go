package services

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"contiv.dev/vswitch/dataplane/vpp/traffic"
	vpppolicy "contiv.dev/vswitch/plugins/policy/renderer/vpp"
	"contiv.dev/vswitch/test/testbed/kubeapi"
	"contiv.dev/vswitch/test/testbed/whoami"
)

// policies are in force in all cases of TestServicesUnderPolicy. a and c accept connections to port 8080 only from p1 and from out's own address; b
// and d accept all; p2 may send only to b and d. A pod is reachable from its own node, and it can reach itself and its own node.
var policies = map[string]string{
	"guarded": `{podSelector: {matchExpressions: [{key: name, operator: In, values: [a, c]}]}, ingress: [{
		from: [{podSelector: {matchLabels: {name: p1}}}, {ipBlock: {cidr: 192.168.16.250/32}}, {ipBlock: {cidr: "fd00:16::fa/128"}}],
		ports: [{port: 8080}, {port: 8080, protocol: UDP}, {port: 8080, protocol: SCTP}]}]}`,
	"restricted": `{podSelector: {matchLabels: {name: p2}}, policyTypes: [Egress],
		egress: [{to: [{podSelector: {matchExpressions: [{key: name, operator: In, values: [b, d]}]}}]}]}`,
}

// podObject returns a pod's object, with its name as a label.
func podObject(node, name string, ips []netip.Addr) *corev1.Pod {
	p := kubeapi.Pod(node, name, ips)
	p.Labels = map[string]string{"name": name}
	return p
}

// policyCases are services of all kinds, with clients that policies allow and clients that they deny. If another node replaces the client's address,
// policies are applied to the new address, and deny it.
func policyCases() []scenario {
	return []scenario{
		{name: "cluster IP", endpoints: []string{"a", "c"}, expect: []string{"p1 any cluster -> a,c as client", "p2,b,d any cluster -> dropped"}},
		{name: "cluster IP, own node", endpoints: []string{"a"}, expect: []string{"p1 any cluster -> a as client", "h1 any cluster -> a", "h2,p2,b,d any cluster -> dropped"}},
		{name: "cluster IP, another node", endpoints: []string{"c"}, expect: []string{"p1 any cluster -> c as client", "h2 any cluster -> c", "h1,p2,b,d any cluster -> dropped"}},
		{name: "cluster IP, egress", endpoints: []string{"b", "d"}, expect: []string{"p2,p1,a any cluster -> b,d as client", "h1,h2 any cluster -> b,d"}},
		{name: "hairpin", endpoints: []string{"a"}, expect: []string{"a any cluster -> a as node", "b any cluster -> dropped"}},
		{name: "another port of the backend", endpoints: []string{"a:other", "c:other"}, expect: []string{"p1,p2,b any cluster -> dropped"}},
		{name: "session affinity", change: affinity, endpoints: []string{"a", "c"}, expect: []string{"p1 any cluster -> one of a,c", "p2,d any cluster -> dropped"}},
		{name: "internalTrafficPolicy Local", change: internalLocal, endpoints: []string{"a", "c"}, expect: []string{
			"p1 any cluster -> a as client", "h1 any cluster -> a", "h2 any cluster -> c", "b,p2 any cluster -> dropped"}},
		{name: "host network backend", endpoints: []string{"h1"}, expect: []string{"p1,a,h2 any cluster -> h1", "p2 any cluster -> dropped"}},
		{name: "host network backend of the own node", endpoints: []string{"h2"}, expect: []string{"p1,p2,c any cluster -> h2"}},
		{name: "node port", change: nodePort, endpoints: []string{"a"}, expect: []string{
			"out,p1,h1 any node1 -> a", "out any node2 -> dropped", "b,d,p2 any node1 -> dropped"}},
		{name: "node port, open backends", change: nodePort, endpoints: []string{"b"}, expect: []string{"out,p1,h1 any node1 -> b", "out any node2 -> b", "p2 any node1 -> dropped"}},
		{name: "node port Local", change: nodePortLocal, endpoints: []string{"a", "c"}, expect: []string{
			"out any node1 -> a as client", "out any node2 -> c as client", "b any node1 -> dropped"}},
		{name: "node port at the host's address", change: nodePort, endpoints: []string{"a"}, expect: []string{"p1,h1 any host1 -> a", "b any host1 -> dropped"}},
		{name: "external IP", change: externalIPs, endpoints: []string{"a"}, expect: []string{"out,p1,h1 any external -> a", "b,d,p2 any external -> dropped"}},
		{name: "external IP, egress", change: externalIPs, endpoints: []string{"b", "d"}, expect: []string{"out,p1,p2 any external -> b,d"}},
		{name: "load balancer", change: loadBalancer(), endpoints: []string{"a"}, expect: []string{"out,p1,h1 any lb -> a", "b,d,p2 any lb -> dropped"}},
		{name: "load balancer, egress", change: loadBalancer(), endpoints: []string{"b", "d"}, expect: []string{"out,p1,p2 any lb -> b,d"}},
		{name: "load balancer Local", change: loadBalancerLocal(), endpoints: []string{"a"}, expect: []string{
			"out any lb -> a as client", "p1 any lb -> a as client", "h1 any lb -> a", "b,d,p2 any lb -> dropped"}},
		{name: "load balancer with a source range", change: loadBalancer("10.1.0.0/16", "fd10:1::/48"), endpoints: []string{"a"},
			expect: []string{"p1 any lb -> a", "out,h1,b any lb -> dropped"}},
	}
}

// TestServicesUnderPolicy checks services of all kinds while policies are in force: allowed and denied clients, TCP, UDP and SCTP, both families;
// vppfake with the plugin's model, VPP with the plugin, nft and iptables.
func TestServicesUnderPolicy(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		if m == kubeProxy || m.isVPP() && !m.hasPlugin() {
			t.Skip("skipped: policies are not enforced")
		}
		mainly(t, fakePlugin, linuxNFT)
		w := newWorld(t, m)
		all := policyCases()
		for i := range all {
			all[i].change = andSCTP(all[i].change)
		}
		w.serveSCTP()
		services := w.putAll(all)
		for name, spec := range policies {
			p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
			w.must(yaml.UnmarshalStrict([]byte(spec), &p.Spec))
			w.must(w.api.Put(p))
		}
		t.Run("case", func(t *testing.T) {
			for i, sc := range all {
				for f, family := range m.families() {
					t.Run(sc.name+"/"+family, func(t *testing.T) {
						t.Parallel()
						w.checkSoon(t, services[i], sc, f)
					})
				}
			}
		})
		if m == fakePlugin {
			w.countedByFake()
		}
	})
}

// countedByFake checks that vppfake counts the rules that have decided; test/policy does so for the other dataplanes with the agents' metrics.
func (w *world) countedByFake() {
	w.t.Helper()
	for i, want := range []string{"default/guarded", "default/restricted"} {
		agent := w.fakes.nodes[i].agent
		counts, err := traffic.NewRuleCounts(agent.vpp).Read(w.ctx)
		w.must(err)
		decided := map[string]uint64{}
		for _, p := range agent.policies.Policies() {
			of := counts[vpppolicy.ID(p.ID)]
			for _, c := range append(vpppolicy.Counts(p.Ingress, of.Ingress), vpppolicy.Counts(p.Egress, of.Egress)...) {
				decided[p.ID.Path()+" "+c.Rule] += c.Decided
			}
		}
		if rule := want + map[int]string{0: " ingress[0]", 1: " egress[0]"}[i]; decided[rule] == 0 {
			w.t.Errorf("%s: %s has decided nothing: %v", agent.node.name, rule, decided)
		}
	}
}

// andSCTP returns a change that also adds a port of SCTP, with the number of the port of TCP.
func andSCTP(change func(*corev1.Service, int)) func(*corev1.Service, int) {
	return func(s *corev1.Service, number int) {
		withSCTP(s, number)
		if change != nil {
			change(s, number)
		}
	}
}

// serveSCTP starts SCTP servers at all sites. The servers of the fake always support SCTP.
func (w *world) serveSCTP() {
	w.t.Helper()
	for name := range w.spaces {
		if name == "out" {
			continue
		}
		s, err := whoami.ServeSCTP(w.spaces[name], name, targetPort, otherPort)
		w.must(err)
		w.t.Cleanup(s.Close)
	}
}

// checkSoon checks a scenario whose policies may not be applied yet.
func (w *world) checkSoon(t *testing.T, svc *corev1.Service, sc scenario, family int) {
	for _, text := range sc.expect {
		e, err := parseExpectation(text)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(e.networks, "udp") {
			e.networks = append(e.networks, "sctp")
		}
		for deadline := time.Now().Add(30 * time.Second); ; {
			if err = w.meets(svc, e, family); err == nil || time.Now().After(deadline) {
				break
			}
		}
		if err != nil {
			t.Error(fmt.Errorf("under policy: %w", err))
		}
	}
}
