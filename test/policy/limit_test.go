package policy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed"
)

// TestSetLimit checks that a set over the limit of members allows nothing and denies every packet that meets the other conditions of the rule, until
// it is small enough again; the agent reports it as a metric, and as an Event, and one agent in the condition of a ClusterNetworkPolicy. The pods
// with app=cli have four addresses, others two.
func TestSetLimit(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		w := newWorldWith(t, backend, func(o *testbed.ClusterOptions) {
			o.Node.AgentArgs = append(o.Node.AgentArgs, "--policy-set-limit=3")
		})
		reported := func(want int) {
			t.Helper()
			w.within("reported", time.Minute, func() error {
				body, err := w.Nodes[0].Get(w.ctx, "/metrics")
				if err != nil {
					return err
				}
				got := 0
				for line := range strings.Lines(body) {
					var n int
					if strings.HasPrefix(line, "contiv_object_problems{") && strings.Contains(line, `reason="SetTooLarge"`) {
						if _, err := fmt.Sscan(line[strings.LastIndex(line, " "):], &n); err != nil {
							return err
						}
						got += n
					}
				}
				if got != want {
					return fmt.Errorf("%d policies, want %d", got, want)
				}
				return nil
			})
		}
		const cli = `{pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: cli}}}}`
		w.policy("allow", `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: cli}}}]}, {from: [{podSelector: {matchLabels: {app: oth}}}]}]}`)
		w.expect("- cli1 web1 tcp 8080\n- cli2 web1 tcp 8080\n- cli1 web2 udp 8080\n- cli1 web1 icmp\n+ oth1 web1 tcp 8080\n+ oth1 web2 icmp\n+ h1 web1 tcp 8080\n")
		reported(1)
		w.policy("deny", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny, from: [`+cli+`], protocols: [{tcp: {destinationPort: {number: 8080}}}]}]}`)
		w.expect("- oth1 web1 tcp 8080\n+ oth1 web1 tcp 8081\n- web2 cli1 tcp 8080\n+ web2 cli1 udp 8080\n- out oth1 tcp 8080\n+ h1 web1 tcp 8080\n- cli1 web1 tcp 8081\n")
		reported(2)
		w.condition("deny", "SetTooLarge")
		w.policy("deny", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Pass, from: [`+cli+`], protocols: [{tcp: {destinationPort: {number: 8081}}}]}]}`)
		w.expect("- oth1 web1 tcp 8081\n+ oth1 web1 tcp 8080\n- out oth1 tcp 8081\n+ out oth1 tcp 8080\n")
		w.policy("deny", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Accept, from: [`+cli+`]}, {action: Deny,
			from: [{pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: oth}}}}], protocols: [{udp: {destinationPort: {number: 8080}}}]}]}`)
		w.expect("- oth1 web1 udp 8080\n+ oth1 web1 tcp 8080\n- cli1 web1 tcp 8080\n+ cli1 oth1 udp 8080\n")

		n := w.Nodes[1]
		w.must(w.api.Delete(w.object(n.Name, "cli2")))
		w.expect("+ cli1 web1 tcp 8080\n+ cli1 web2 udp 8080\n+ cli1 web1 icmp\n- cli2 web1 tcp 8080\n+ oth1 web1 tcp 8080\n- oth1 web1 udp 8080\n")
		reported(0)
		w.condition("deny", "Accepted")
		w.must(w.api.Put(w.object(n.Name, "cli2")))
		w.expect("- cli1 web1 tcp 8080\n- cli2 web1 tcp 8080\n+ oth1 web1 tcp 8080\n")
		reported(2)
		w.policy("deny", ``)
		w.policy("allow", ``)
		w.expect("+ cli1 web1 tcp 8080\n")
		reported(0)
		if strings.Contains(w.Nodes[0].LogTail(5000), "level=ERROR") {
			t.Errorf("errors in the log of %s", w.Nodes[0].Name)
		}
	}, onVPP)
}

// condition waits until the condition that was last written into a ClusterNetworkPolicy has a reason.
func (w *world) condition(policy, reason string) {
	w.t.Helper()
	w.within("condition "+reason, time.Minute, func() error {
		last := "nothing"
		for _, write := range w.api.Written() {
			if write.Method == http.MethodPut && strings.HasSuffix(write.Path, "/clusternetworkpolicies/"+policy+"/status") {
				last = write.Body
			}
		}
		if !strings.Contains(last, `"type":"contiv.dev/Accepted"`) || !strings.Contains(last, `"reason":"`+reason+`"`) {
			return fmt.Errorf("written was %s", last)
		}
		return nil
	})
}

// TestHugePolicyHidesNoDeny checks that a tenant's policy that is too large for the dataplane does not prevent an administrator's policy from being
// applied to the pod.
func TestHugePolicyHidesNoDeny(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		w := newWorld(t, backend)
		var huge strings.Builder
		huge.WriteString("{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {}}], ports: [{port: 8080}]}")
		for port := 10_000; port < 26_500; port++ {
			fmt.Fprintf(&huge, ", {ports: [{port: %d}]}", port)
		}
		huge.WriteString("]}")
		w.policy("huge", huge.String())
		w.expect("- cli1 web1 tcp 8081\n+ oth1 web1 tcp 8080")
		w.policy("guard", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{pods: {namespaceSelector: {},
			podSelector: {matchLabels: {app: oth}}}}]}]}`)
		w.expect("- oth1 web1 tcp 8080\n+ cli1 web1 tcp 8080\n- cli1 web1 tcp 8081")
	})
}
