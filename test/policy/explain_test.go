package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// explained is the agents' explanation of a connection: the deciding rule in each direction, "" if no queried agent has the pod.
type explained struct{ egress, ingress string }

func (w *world) explain(query string) (e explained) {
	w.t.Helper()
	type decision struct{ Pod, Action, Policy, Rule string }
	text := func(d decision) string {
		return strings.TrimSpace(d.Action + " " + strings.TrimSpace(d.Policy+" "+d.Rule))
	}
	for _, n := range w.Nodes {
		var rows []struct{ Egress, Ingress decision }
		w.must(n.GetJSON(w.ctx, "/contiv/v1/policies/why?"+query, &rows))
		for _, r := range rows {
			if r.Egress.Pod != "" {
				e.egress = text(r.Egress)
			}
			if r.Ingress.Pod != "" {
				e.ingress = text(r.Ingress)
			}
		}
	}
	return e
}

// TestClusterPolicyIsExplained checks that the reports of `policy why`, `policy drops` and `policy try` about ClusterNetworkPolicies match the
// packets: which policy and rule decide, by tiers, Pass and named ports, and which connections a policy would end.
func TestClusterPolicyIsExplained(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		w := newWorld(t, backend)
		w.policy("guard", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [
			{name: others, action: Accept, from: [{pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: oth}}}}]},
			{action: Pass, from: [{namespaces: {}}], protocols: [{tcp: {destinationPort: {number: 8081}}}]},
			{name: http, action: Deny, from: [{namespaces: {matchLabels: {team: red}}}], protocols: [{destinationNamedPort: http}]}],
			egress: [{name: out, action: Deny, to: [{networks: [192.168.16.250/32]}]}]}`)
		w.policy("web", `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: cli}}}]}]}`)
		w.policy("last", `{tier: Baseline, priority: 1, subject: {namespaces: {}}, ingress: [{name: base, action: Deny, from: [{namespaces: {}}],
			protocols: [{udp: {destinationPort: {number: 8081}}}]}]}`)
		w.expect("- cli1 web1 tcp 8080\n- cli2 web1 tcp 8080\n+ cli1 web1 tcp 8081\n+ oth1 web1 tcp 8080\n- web2 web1 tcp 8081\n- web1 cli1 udp 8081\n+ cli1 web1 udp 8081")
		w.within("cli1 does not reach the outside", time.Minute, func() error {
			if w.query("cli1", "icmp", w.addrs["out"][0], 0) == nil {
				return fmt.Errorf("it was answered")
			}
			return nil
		})
		out := w.addrs["out"][0].String()
		for query, want := range map[string]explained{
			"from=cli1&to=web1&protocol=TCP&port=8080": {"allow", "deny guard ingress[2] http"},
			"from=cli2&to=web1&protocol=TCP&port=8080": {"allow", "deny guard ingress[2] http"},
			"from=cli1&to=web1&protocol=TCP&port=8081": {"allow", "allow default/web ingress[0]"},
			"from=oth1&to=web1&protocol=TCP&port=8080": {"allow", "allow guard ingress[0] others"},
			"from=web2&to=web1&protocol=TCP&port=8081": {"allow", "deny"},
			"from=web1&to=cli1&protocol=UDP&port=8081": {"allow", "deny last ingress[0] base"},
			"from=cli1&to=web1&protocol=UDP&port=8081": {"allow", "allow default/web ingress[0]"},
			"from=cli1&to=" + out + "&protocol=ICMP":   {"deny guard egress[0] out", ""},
		} {
			if got := w.explain(query); got != want {
				t.Errorf("%s: %+v, want %+v", query, got, want)
			}
		}
		w.deniedBy("ingress cli1 web1 TCP 8080", "guard", "ingress[2] http")
		w.deniedBy("ingress web1 cli1 UDP 8081", "last", "ingress[0] base")
		w.deniedBy("egress cli1 "+out+" ICMP 0", "guard", "egress[0] out")

		for f, a := range w.addrs["web1"] {
			w.stream("cli1", "web1", a, dbPort+1000+f)
		}
		pods, cut := w.tried("cut", `{tier: Admin, priority: 0, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{pods: {namespaceSelector: {},
			podSelector: {matchLabels: {app: cli}}}}]}]}`)
		if !slices.Contains(pods, "default/web1") {
			t.Errorf("the policy would close %v", pods)
		}
		for f := range w.addrs["web1"] {
			port := fmt.Sprint(":", dbPort+1000+f)
			if !slices.ContainsFunc(cut, func(c triedConnection) bool { return strings.HasSuffix(c.Server, port) && c.From == "default/cli1" }) {
				t.Errorf("the connection to port %s would end and is not among %v", port, cut)
			}
		}
	})
}

// deniedBy waits until node 1 reports a denied flow, "direction from to protocol port", with the policy and the rule that denied it.
func (w *world) deniedBy(flow, policy, rule string) {
	w.t.Helper()
	w.within(flow+" is reported", time.Minute, func() error {
		var rows []drop
		if err := w.Nodes[0].GetJSON(w.ctx, "/contiv/v1/policy/drops", &rows); err != nil {
			return err
		}
		for _, r := range rows {
			from, to := strings.TrimPrefix(r.SourcePod, "default/"), strings.TrimPrefix(r.DestPod, "default/")
			if to == "" {
				to = r.Dest
			}
			if fmt.Sprintf("%s %s %s %s %d", r.Direction, from, to, r.Protocol, r.Port) == flow {
				if r.Policy != policy || r.Rule != rule {
					return fmt.Errorf("by policy %q, rule %q, want %q, %q", r.Policy, r.Rule, policy, rule)
				}
				return nil
			}
		}
		return fmt.Errorf("it is not among %+v", rows)
	})
}
