package services

import (
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	npapi "sigs.k8s.io/network-policy-api/apis/v1alpha2"
	"sigs.k8s.io/yaml"
)

// TestSetLimitOnFake is test/policy's TestSetLimit on vppfake with the plugin: a set over the limit of members allows nothing and denies every
// packet that meets the other conditions of the rule, until it is small enough again. p1 and p2 have four addresses, b has two.
func TestSetLimitOnFake(t *testing.T) {
	turn(t, fakeWorlds)
	w := newFakeWorldWith(t, fakePlugin, func(n *fakeNode) { n.setLimit = 3 })
	svc := w.putAll([]scenario{{endpoints: []string{"a", "c"}}})[0]
	meets := func(when string, texts ...string) {
		t.Helper()
		for _, text := range texts {
			e, err := parseExpectation(text)
			w.must(err)
			for f := range w.mode.families() {
				w.within(20*time.Second, when+": "+text, func() error { return w.meets(svc, e, f) })
			}
		}
	}
	const clients = `{matchExpressions: [{key: name, operator: In, values: [p1, p2]}]}`
	np := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "allow"}}
	w.must(yaml.UnmarshalStrict([]byte(`{podSelector: {matchExpressions: [{key: name, operator: In, values: [a, c]}]},
		ingress: [{from: [{podSelector: `+clients+`}]}, {from: [{podSelector: {matchLabels: {name: b}}}]}]}`), &np.Spec))
	w.must(w.api.Put(np))
	meets("allow by a large set", "p1,p2,d any cluster -> dropped", "b any cluster -> a,c as client")

	cnp := &npapi.ClusterNetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "deny"}}
	w.must(yaml.UnmarshalStrict([]byte(`{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny,
		from: [{pods: {namespaceSelector: {}, podSelector: `+clients+`}}], protocols: [{tcp: {destinationPort: {number: 8080}}}]}]}`), &cnp.Spec))
	w.must(w.api.Put(cnp))
	meets("deny by a large set", "b tcp cluster -> dropped", "b udp cluster -> a,c", "p1 any cluster -> dropped")

	w.must(w.api.Delete(podObject("n2", "p2", w.addrsOf("p2"))))
	meets("the set is small again", "b any cluster -> a,c", "p1 udp cluster -> a,c", "p1 tcp cluster -> dropped", "d any cluster -> dropped")
	w.must(w.api.Put(podObject("n2", "p2", w.addrsOf("p2"))))
	meets("the set is large again", "b tcp cluster -> dropped", "b udp cluster -> a,c", "p1 any cluster -> dropped")
	w.must(w.api.Delete(cnp, np))
	meets("without policies", "p1,p2,b,d any cluster -> a,c")
}
