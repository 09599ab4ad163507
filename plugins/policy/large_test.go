package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/problem"
)

// TestLargeSets checks that a set over its limit is a problem of the policies that refer to it, in addition to other problems, until it is
// small enough. A resync, which update runs after each event, changes nothing.
func TestLargeSets(t *testing.T) {
	b := newBench(t, func(d *Deps) { d.SetLimit = 2 })
	want := func(key, reasons string) {
		t.Helper()
		var got []string
		for _, p := range b.users.now[key] {
			got = append(got, p.Reason)
			if p.Reason == reasonLarge && !strings.Contains(p.Message, "more than 2 members") {
				t.Errorf("%s: %s", key, p.Message)
			}
		}
		if text := strings.Join(got, " "); text != reasons {
			t.Errorf("%s: %q, want %q", key, text, reasons)
		}
	}
	b.pod("web", "1", "10.0.0.1")
	b.add("c1", "web", "1")
	bad := fromPods("from")
	bad.Problems = []string{"spec.ingress[0].ports[0]: not understood"}
	b.set(kube.PolicyKeyword, "ns", "from", bad)
	b.set(kube.ClusterPolicyKeyword, "", "all", &kube.ClusterPolicy{Name: "all", Uid: "all", Namespaces: &kube.LabelSelector{}, Pods: &kube.LabelSelector{},
		IngressRules: []*kube.PolicyRule{{Peers: []*kube.PolicyPeer{{Pods: &kube.LabelSelector{}, Namespaces: &kube.LabelSelector{}}}}}})
	b.pod("two", "2", "10.0.0.2")
	const namespaced, clusterwide = "NetworkPolicy ns/from from", "ClusterNetworkPolicy /all all"
	want(namespaced, "NotUnderstood")
	want(clusterwide, "")
	b.pod("three", "3", "10.0.0.3")
	want(namespaced, "NotUnderstood "+reasonLarge)
	want(clusterwide, reasonLarge)
	b.set(kube.PolicyKeyword, "ns", "from", fromPods("from"))
	want(namespaced, reasonLarge)
	b.set(kube.PodKeyword, "ns", "two", nil)
	want(namespaced, "")
	want(clusterwide, "")
	b.pod("two", "2", "10.0.0.2")
	want(clusterwide, reasonLarge)
	b.set(kube.ClusterPolicyKeyword, "", "all", nil)
	want(clusterwide, "")
	want(namespaced, reasonLarge)
}

// TestLargeClusterPolicies checks that the node that writes conditions reports policies with large sets, also those that select none of its
// own pods. A set that was too large counts as small again at a sixteenth below its limit, as in the dataplane.
func TestLargeClusterPolicies(t *testing.T) {
	reported := 0
	b := newBench(t, func(d *Deps) { d.SetLimit, d.Statuses = 32, func(bool) { reported++ } })
	want := func(names string) {
		t.Helper()
		got := b.p.LargeClusterPolicies()
		if text := strings.Join(slices.Sorted(maps.Keys(got)), " "); text != names {
			t.Errorf("reported are %q, want %q", text, names)
		}
		for name, text := range got {
			if !strings.HasPrefix(text, "a set has more than 32 members: ") || !strings.Contains(text, "--policy-set-limit") {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
	policy := func(name, namespace string) {
		b.set(kube.ClusterPolicyKeyword, "", name, &kube.ClusterPolicy{Name: name, Uid: name, Namespaces: &kube.LabelSelector{}, Pods: selector("app", "elsewhere"),
			EgressRules: []*kube.PolicyRule{{Peers: []*kube.PolicyPeer{{Pods: &kube.LabelSelector{}, Namespaces: selector("of", namespace)}}}}})
	}
	b.set(kube.NamespaceKeyword, "", "ns", &kube.Namespace{Name: "ns", Labels: map[string]string{"of": "many"}})
	policy("many", "many")
	policy("few", "few")
	pod := func(i int) string { return fmt.Sprint("p", i) }
	for i := range 31 {
		b.pod(pod(i), pod(i), fmt.Sprint("10.0.0.", i+1))
	}
	want("")
	b.pod(pod(31), pod(31), "10.0.0.32")
	want("")
	b.pod(pod(32), pod(32), "10.0.0.33")
	want("many")
	for i := 32; i > 30; i-- {
		b.set(kube.PodKeyword, "ns", pod(i), nil)
	}
	want("many")
	b.set(kube.PodKeyword, "ns", pod(30), nil)
	want("")
	b.pod(pod(30), pod(30), "10.0.0.31")
	want("")
	before := reported
	b.set(kube.PodKeyword, "ns", pod(0), &kube.Pod{Namespace: "ns", Name: pod(0), Uid: pod(0), Ips: []string{"10.0.0.1"}, Labels: map[string]string{"app": "elsewhere"}})
	b.add("c1", pod(0), pod(0))
	for i := 31; i < 33; i++ {
		b.pod(pod(i), pod(i), fmt.Sprint("10.0.0.", i+1))
	}
	if reported == before {
		t.Error("conditions are not looked at when a set of this node has become too large")
	}
	want("many")
	b.set(kube.ClusterPolicyKeyword, "", "many", nil)
	want("")
}

// TestLargeSetsOfTwoNodes checks that each node that has such a set writes the Event, independent of the node that writes those of the
// policy's own problems.
func TestLargeSetsOfTwoNodes(t *testing.T) {
	for _, name := range []string{"n1", "n2", "n3"} {
		events := &lastEvent{}
		b := newBench(t, func(d *Deps) { d.SetLimit, d.Problems = 1, events })
		for _, n := range []string{"n1", "n2", "n3"} {
			b.set(kube.NodeKeyword, "", n, &kube.Node{Name: n})
		}
		b.pod("web", "1", "10.0.0.1")
		b.add("c1", "web", "1")
		b.pod("two", "2", "10.0.0.2")
		b.set(kube.PolicyKeyword, "ns", name, fromPods(name))
		if !events.written {
			t.Errorf("%s: this node does not write the Event", name)
		}
	}
}

// lastEvent stores whether this node writes the Event about the last problem.
type lastEvent struct{ written bool }

func (t *lastEvent) Set(_ problem.Object, list []problem.Problem, report bool) {
	t.written = report && len(list) > 0
}
