//go:build linux

package main

import (
	"fmt"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	npapi "sigs.k8s.io/network-policy-api/apis/v1alpha2"
	"sigs.k8s.io/yaml"

	"contiv.dev/vswitch/test/testbed/kubeapi"
	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/whoami"
)

// TestTracePolicy: trace names the policy and the rule that allow or deny a packet, at the sender and at the receiver, for both kinds of
// policies, and for the backend of a service.
func TestTracePolicy(t *testing.T) {
	t.Parallel()
	for _, dataplane := range []string{"linux", iptables, "vpp"} {
		t.Run(dataplane, func(t *testing.T) {
			matrix.Only(t, "linux", "vpp")
			t.Parallel()
			w, api := withAPI(t, dataplane)
			w.putAddresses(api)
			server, err := whoami.Serve(w.c.Namespace, "c", 8080, 8081)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Close)
			w.endpoints(api, w.service("far", 11, nil), w.c)
			w.until(true, []string{"ping", "a", "svc/far", "-c", "1"}, "1 sent, 1 answered")
			w.tracedPolicies(api)
			w.deniedServices(api)
		})
	}
}

func (w *world) put(api *kubeapi.Server, object kubeapi.Object, spec any, text string) {
	w.t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
		w.t.Fatal(err)
	}
	if err := api.Put(object); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) tracedPolicies(api *kubeapi.Server) {
	w.t.Helper()
	tcp := func(port int, more ...string) []string {
		return append([]string{"trace", "a", "c", "--proto", "tcp", "--port", fmt.Sprint(port)}, more...)
	}
	w.until(true, tcp(8080), "policy, egress of default/a: allow, because no policy selects the pod",
		"policy, ingress of default/c: allow, because no policy selects the pod", "delivered, reply received")
	np := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "eighty"}}
	w.put(api, np, &np.Spec, `{podSelector: {}, ingress: [{ports: [{port: 8080}]}]}`)
	w.until(false, tcp(8081), "policy, ingress of default/c: deny, because policies select the pod", "default/eighty",
		"result: network policy denies it: ingress of default/c")
	for _, family := range [][]string{nil, {"-6"}} {
		w.until(true, tcp(8080, family...), "policy, ingress of default/c: allow, by", "default/eighty ingress[0]", "delivered, reply received")
		w.until(true, append([]string{"trace", "a", "svc/far"}, family...), "default/eighty ingress[0]", "reply received")
	}
	cnp := &npapi.ClusterNetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "shut"}}
	w.put(api, cnp, &cnp.Spec, `{tier: Admin, priority: 1, subject: {namespaces: {}}, egress: [{action: Accept, to: [{networks: [192.0.2.0/24]}]},
		{action: Deny, to: [{namespaces: {}}], protocols: [{tcp: {destinationPort: {number: 8080}}}]}]}`)
	w.until(false, tcp(8080), "policy, egress of default/a: deny, by", "shut egress[1]",
		"result: network policy denies it: egress of default/a: deny, by")
}

// deniedServices tests a service whose backends a policy denies. The trace has the backend that was chosen, and names the policy and the rule,
// whatever the number of backends, on the node of the client and on another one.
func (w *world) deniedServices(api *kubeapi.Server) {
	w.t.Helper()
	w.endpoints(api, w.service("near", 12, nil), w.b)
	w.endpoints(api, w.service("both", 15, nil), w.b, w.c)
	for _, family := range [][]string{nil, {"-6"}} { // tracedPolicies leaves a policy that denies all
		w.until(false, append([]string{"trace", "a", "svc/both"}, family...), "chose the backend pod default/",
			"result: network policy denies it: egress of default/a: deny, by", "shut egress[1]")
	}
	if err := api.Delete(&npapi.ClusterNetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "shut"}}); err != nil {
		w.t.Fatal(err)
	}
	np := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "eighty"}}
	w.put(api, np, &np.Spec, `{podSelector: {}, ingress: [{ports: [{port: 80}]}]}`) // the service's port, not the backends' port
	for _, family := range [][]string{nil, {"-6"}} {
		for service, pods := range map[string]string{"near": "b", "far": "c", "both": ""} {
			w.until(false, append([]string{"trace", "a", "svc/" + service}, family...), "chose the backend pod default/"+pods,
				"result: network policy denies it: ingress of default/"+pods, "default/eighty")
		}
	}
	cnp := &npapi.ClusterNetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "no"}}
	w.put(api, cnp, &cnp.Spec, `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Accept, from: [{namespaces: {matchLabels: {no: pods}}}]},
		{action: Deny, from: [{namespaces: {}}], protocols: [{tcp: {destinationPort: {number: 8080}}}]}]}`)
	for _, service := range []string{"near", "far", "both"} {
		w.until(false, []string{"trace", "a", "svc/" + service}, "result: network policy denies it: ingress of default/", "no ingress[1]")
	}
}
