package kube

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// setLimit is the limit of members of a set of a policy on the cluster with contiv-ksr. No other test and no suite has sets as large as that.
const setLimit = 40

// testLargeSets checks that a NetworkPolicy and a ClusterNetworkPolicy whose sets are over the limit fail closed and that this is reported to the
// user: the agents write an Event on the former, contiv-ksr writes a condition into the latter. Smaller sets open what they allow.
func testLargeSets(w *world) {
	w.clusterPolicies()
	clients, servers := w.webPods("near", 1), w.webPods("guarded", 1)
	reach := func(when string, want bool) {
		w.t.Helper()
		for _, from := range clients {
			for _, to := range servers {
				for _, ip := range to.ips() {
					w.within(30*time.Second, fmt.Sprintf("%s: %s reaches %s: %t", when, from.Metadata.Name, ip, want), func() error {
						_, err := queryFrom(from.ns, hostPort(ip, webPort), "/hostname")
						if want {
							return err
						}
						if err == nil {
							return errors.New("it answers")
						}
						return nil
					})
				}
			}
		}
	}
	allow := func(members int) {
		w.t.Helper()
		w.apply("{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: large}, spec: {podSelector: {matchLabels: {app: guarded}}, ingress: [{from: [\n" +
			"  {ipBlock: {cidr: " + strings.Join(networks(members, "10.244.0.0/16", "fd00:244::/56"), "}}, {ipBlock: {cidr: ") + "}}]}]}}")
	}
	deny := func(members int) {
		w.t.Helper()
		all := networks(members, "203.0.113.0/24")
		half := len(all) / 2 // the API allows 25 networks for one peer
		w.apply("{apiVersion: policy.networking.k8s.io/v1alpha2, kind: ClusterNetworkPolicy, metadata: {name: large}, spec: {tier: Admin, priority: 1,\n" +
			"  subject: {pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: guarded}}}}, egress: [{action: Deny,\n" +
			"  to: [{networks: [" + strings.Join(all[:half], ", ") + "]}, {networks: [" + strings.Join(all[half:], ", ") + "]}]}]}}")
	}
	w.t.Cleanup(func() { w.kubectl("delete", "networkpolicy,clusternetworkpolicy", "large", "--ignore-not-found") })

	reach("without a policy", true)
	allow(setLimit + 1)
	reach("a set over the limit", false)
	w.within(time.Minute, "an Event on the NetworkPolicy", func() error {
		events := w.kubectl("get", "events", "--field-selector", "reason=SetTooLarge,type=Warning,involvedObject.kind=NetworkPolicy,involvedObject.name=large",
			"-o", "jsonpath={.items[*].message}")
		if !strings.Contains(events, fmt.Sprintf("more than %d members", setLimit)) {
			return fmt.Errorf("the Events are %q", events)
		}
		return nil
	})
	allow(4)
	reach("a small set", true)

	condition := func(when, want string) {
		w.t.Helper()
		w.within(90*time.Second, "the condition "+when, func() error {
			got := w.kubectl("get", "clusternetworkpolicy", "large", "-o",
				`jsonpath={range .status.conditions[?(@.type=="contiv.dev/Accepted")]}{.status} {.reason} {.observedGeneration}/{end}{.metadata.generation}`)
			reason, generations, _ := strings.Cut(got, want+" ")
			if seen, now, _ := strings.Cut(generations, "/"); reason != "" || seen == "" || seen != now {
				return fmt.Errorf("it is %q instead of %s", got, want)
			}
			return nil
		})
	}
	deny(setLimit + 1)
	condition("of a set over the limit", "False SetTooLarge")
	answers := func() error {
		_, err := queryFrom(servers[0].ns, hostPort(clients[1].v4(), webPort), "/hostname")
		return err
	}
	w.within(30*time.Second, "a deny with such a set denies everything", func() error {
		if answers() == nil {
			return errors.New("it answers")
		}
		return nil
	})
	deny(4)
	condition("of a small set", "True Accepted")
	w.within(30*time.Second, "a deny with a small set leaves other traffic alone", answers)
}

// networks returns the given networks and as many others as are needed for a count.
func networks(count int, some ...string) []string {
	for i := len(some); i < count; i++ {
		some = append(some, fmt.Sprintf("192.168.%d.0/30", i))
	}
	return some
}

// clusterPolicies installs the CRD of ClusterNetworkPolicy, in the version for which the product is built, until the test has ended.
func (w *world) clusterPolicies() {
	w.t.Helper()
	out, err := exec.CommandContext(w.ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/network-policy-api").Output()
	w.must(err)
	crd := filepath.Join(strings.TrimSpace(string(out)), "config/crd/experimental/policy.networking.k8s.io_clusternetworkpolicies.yaml")
	w.kubectl("apply", "--server-side", "-f", crd)
	w.t.Cleanup(func() { w.kubectl("delete", "-f", crd) })
	w.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", crd)
}
