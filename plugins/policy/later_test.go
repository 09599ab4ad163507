package policy

import (
	"reflect"
	"strings"
	"testing"

	kube "contiv.dev/vswitch/internal/kube/model"
)

// TestLaterVersion checks that each agent that does not understand a part of a stored policy writes an Event: agents of later versions do not
// have the problem. The list of policies has it, too.
func TestLaterVersion(t *testing.T) {
	for _, name := range []string{"n1", "n2", "n3"} {
		events, h := &lastEvent{}, handlers{}
		b := newBench(t, func(d *Deps) { d.Problems, d.HTTPHandlers = events, h })
		for _, n := range []string{"n1", "n2", "n3"} {
			b.set(kube.NodeKeyword, "", n, &kube.Node{Name: n})
		}
		rules := []*kube.PolicyRule{{Peers: []*kube.PolicyPeer{{}}}}
		for _, set := range []func(){
			func() {
				b.set(kube.PolicyKeyword, "ns", name, &kube.Policy{Namespace: "ns", Name: name, Uid: name, Ingress: true, IngressRules: rules})
			},
			func() {
				b.set(kube.ClusterPolicyKeyword, "", name, &kube.ClusterPolicy{Name: name, Uid: name, IngressRules: rules})
			},
		} {
			events.written = false
			if set(); !events.written {
				t.Errorf("%s: this node does not write the Event", name)
			}
		}
		var rows []policyRow
		h.get(t, policiesPath, 200, &rows)
		for _, row := range rows {
			if len(row.Problems) != 1 || !strings.HasPrefix(row.Problems[0], "spec.ingress[0]: 1 of its 1 peers are of a kind") {
				t.Errorf("%s %s: %q", row.Kind, row.Name, row.Problems)
			}
		}
		if len(rows) != 2 {
			t.Errorf("%d policies", len(rows))
		}
	}
}

// TestTryOfLaterVersion checks that a tried policy lists the parts that the agent does not understand.
func TestTryOfLaterVersion(t *testing.T) {
	rules := []*kube.PolicyRule{{Peers: []*kube.PolicyPeer{{}}}}
	_, h := tryBench(t, nil, map[string]any{
		"np":  &kube.Policy{Namespace: "ns", Name: "p", Pods: &kube.LabelSelector{}, Ingress: true, IngressRules: rules},
		"cnp": &kube.ClusterPolicy{Name: "p", Pods: &kube.LabelSelector{}, Namespaces: &kube.LabelSelector{}, IngressRules: rules},
	})
	for name, changes := range map[string]int{"np": 1, "cnp": 0} {
		var got tried
		h.post(t, name, 200, &got)
		if len(got.Problems) != 1 || !strings.HasPrefix(got.Problems[0], "spec.ingress[0]: 1 of its 1 peers") || len(got.Changes) != changes {
			t.Errorf("%s: %+v", name, got)
		}
		if changes == 1 && !reflect.DeepEqual(got.Changes[0].Ports, []string{"all"}) {
			t.Errorf("%s: %+v", name, got.Changes)
		}
	}
}
