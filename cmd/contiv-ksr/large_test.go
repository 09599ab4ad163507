package main

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	npapi "sigs.k8s.io/network-policy-api/apis/v1alpha2"
	"sigs.k8s.io/yaml"

	"contiv.dev/vswitch/test/testbed/kubeapi"
)

// TestLargeSets: the leader writes a condition into a ClusterNetworkPolicy when one of its sets is over the limit, and removes it when the set
// is small enough, also after a change of the leader.
func TestLargeSets(t *testing.T) {
	w := newWorld(t, "large", "--policy-set-limit=3", "--policy-status-interval=1s")
	pod := func(i int) kubeapi.Object {
		return kubeapi.Pod(w.node.Name, fmt.Sprint("p", i), []netip.Addr{netip.AddrFrom4([4]byte{10, 1, 1, byte(i)})})
	}
	policy := &npapi.ClusterNetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "deny"}}
	w.must(yaml.UnmarshalStrict([]byte(`{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{namespaces: {}}]}]}`), &policy.Spec))
	w.must(w.api.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, policy, pod(2), pod(3), pod(4)))
	condition := func(reason string) {
		t.Helper()
		w.eventually("condition "+reason, func() error {
			last := "nothing"
			for _, write := range w.api.Written() {
				if write.Method == http.MethodPut && strings.HasSuffix(write.Path, "/clusternetworkpolicies/deny/status") {
					last = write.Body
				}
			}
			if !strings.Contains(last, `"type":"contiv.dev/Accepted"`) || !strings.Contains(last, `"reason":"`+reason+`"`) ||
				strings.Contains(last, "more than 3 members") != (reason == "SetTooLarge") {
				return fmt.Errorf("written was %s", last)
			}
			return nil
		})
	}
	condition("Accepted")
	w.must(w.api.Put(pod(5)))
	condition("SetTooLarge")
	w.must(w.replicas[w.leader()].Kill())
	w.leader()
	w.must(w.api.Delete(pod(5)))
	condition("Accepted")
}
