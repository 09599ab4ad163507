package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"contiv.dev/vswitch/test/testbed/kubeapi"
)

// service puts a service for the web pods, and returns its addresses.
func (w *world) service() []netip.Addr {
	w.t.Helper()
	vips := []netip.Addr{netip.MustParseAddr("10.96.0.80"), netip.MustParseAddr("fd10:96::80")}
	s := kubeapi.Service("web", vips, kubeapi.Port(corev1.ProtocolTCP, 80), kubeapi.Port(corev1.ProtocolUDP, 80))
	w.must(w.api.Put(s))
	for f, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		w.must(w.api.Put(kubeapi.Slice(s, family, httpPort, kubeapi.Endpoint(w.Nodes[0].Name, w.addrs["web1"][f]))))
	}
	return vips
}

// TestPolicies checks TCP, UDP, ICMP and SCTP, both families, both directions, on one node and between nodes, directly and by a
// service.
func TestPolicies(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		w := newWorld(t, backend)
		w.addrs["vip"] = w.service()
		for _, step := range steps {
			ok := t.Run(step.name, func(t *testing.T) {
				w.t = t
				for i, spec := range step.policies {
					w.policy(fmt.Sprint("p", i), spec)
				}
				w.expect(step.expect)
				for i := range step.policies {
					w.policy(fmt.Sprint("p", i), "")
				}
				w.expect("+ cli1 web1 tcp 8080\n+ web1 cli1 tcp 8081\n+ cli1 web2 tcp 8081")
			})
			w.t = t
			if !ok {
				return
			}
		}
		w.why()
	}, onVPP)
}

// why checks the agents' explanations of why packets pass or not.
func (w *world) why() {
	w.t.Helper()
	w.policy("why", `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: oth}}}], ports: [{port: http}]},
		{from: [{podSelector: {matchLabels: {app: oth}}}], ports: [{port: 9}]}]}`)
	w.expect("- cli1 web1 tcp 8080\n+ oth1 web1 tcp 8080")
	for query, want := range map[string]string{
		"from=cli1&to=web1&port=8080": "deny", "from=oth1&to=web1&port=8080": "allow", "from=oth1&to=web1&port=8081": "deny",
		"from=cli2&to=web1&port=8080": "deny", "from=h1&to=web1&port=1": "allow", "from=web1&to=web1&port=1": "allow",
	} {
		query = strings.ReplaceAll(query, "=h1", "="+w.addrs["h1"][0].String())
		var rows []struct{ Ingress struct{ Action, Rule string } }
		w.must(w.Nodes[0].GetJSON(w.ctx, "/contiv/v1/policies/why?"+query, &rows))
		if len(rows) == 0 || rows[0].Ingress.Action != want || (rows[0].Ingress.Rule == "ingress[0]") != strings.Contains(query, "oth1&to=web1&port=8080") {
			w.t.Errorf("%s: %+v, want %s", query, rows, want)
		}
	}
	w.counted()
	w.policy("why", "")
}

// counted checks that the rule by which oth1 reaches web1 has been counted, and that a rule that no packet has matched has not.
func (w *world) counted() {
	w.t.Helper()
	series := func(body, rule string) (n float64, err error) {
		_, rest, there := strings.Cut(body, `contiv_policy_rule_decisions_total{action="allow",direction="ingress",policy="NetworkPolicy default/why",rule="`+rule+`"} `)
		if !there {
			return 0, fmt.Errorf("%s has no series", rule)
		}
		_, err = fmt.Sscan(rest, &n)
		return n, err
	}
	w.within("counted", time.Minute, func() error {
		body, err := w.Nodes[0].Get(w.ctx, "/metrics")
		if err != nil {
			return err
		}
		used, err1 := series(body, "ingress[0]")
		unused, err2 := series(body, "ingress[1]")
		if err := errors.Join(err1, err2); err != nil || used < 1 || unused != 0 {
			return fmt.Errorf("the used rule has decided %v times, the other one %v times: %w", used, unused, orNone(err))
		}
		return nil
	})
}

var steps = []struct {
	name     string
	policies []string
	expect   string
}{
	{"none", nil, `
+ cli1 web1 tcp 8080
+ cli1 web1 udp 8080
+ cli1 web1 icmp
+ cli1 web1 sctp 7
+ cli2 web1 tcp 8080
+ cli2 web1 sctp 7
+ cli1 vip tcp 80
+ cli2 vip udp 80
+ web1 vip tcp 80
+ out web1 tcp 8080
+ h2 web1 tcp 8080
`},
	{"ingress closed", []string{`{podSelector: {matchLabels: {app: web}}}`}, `
- cli1 web1 tcp 8080
- cli1 web1 udp 8080
- cli1 web1 icmp
- cli1 web1 sctp 7
- cli2 web1 tcp 8080
- cli2 web1 icmp
- cli1 web2 tcp 8080
- out web1 tcp 8080
- h2 web1 tcp 8080
- cli1 vip tcp 80
- cli2 vip tcp 80
- cli2 vip udp 80
+ h1 web1 tcp 8080
+ h1 web1 udp 8080
+ h1 web1 icmp
+ h1 vip tcp 80
+ web1 web1 tcp 8080
+ web1 vip tcp 80
+ web1 vip udp 80
+ web1 cli1 tcp 8080
+ web1 cli2 udp 8080
+ web1 out icmp
+ web1 h1 tcp 8080
+ cli1 oth1 tcp 8080
`},
	{"egress closed", []string{`{podSelector: {matchLabels: {app: cli}}, policyTypes: [Egress]}`}, `
- cli1 web1 tcp 8080
- cli1 web1 udp 8080
- cli1 web1 icmp
- cli1 web1 sctp 7
- cli1 web2 tcp 8080
- cli1 vip tcp 80
- cli1 h2 tcp 8080
- cli1 out icmp
+ cli1 h1 tcp 8080
+ cli1 h1 icmp
+ cli1 cli1 tcp 8080
+ web1 cli1 tcp 8080
+ out cli1 udp 8080
+ h1 cli1 tcp 8080
`},
	{"peers and ports", []string{
		`{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: cli}}}], ports: [{port: http}, {protocol: SCTP, port: 5, endPort: 9}]}]}`,
		`{podSelector: {matchLabels: {app: cli}}, policyTypes: [Egress], egress: [{to: [{namespaceSelector: {matchLabels: {team: red}}}], ports: [{port: http}, {protocol: SCTP}]}]}`,
	}, `
+ cli1 web1 tcp 8080
+ cli2 web1 tcp 8080
+ cli1 web2 tcp 8080
+ cli1 vip tcp 80
+ cli1 web1 sctp 7
+ cli2 web1 sctp 9
- cli1 web1 sctp 10
- cli1 web1 tcp 8081
- cli1 web1 udp 8080
- cli1 web1 icmp
- cli1 vip udp 80
- oth1 web1 tcp 8080
- out web1 tcp 8080
- cli1 out icmp
+ cli1 oth1 tcp 8080
- cli1 oth1 tcp 8081
`},
	{"blocks", []string{`{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{ipBlock: {cidr: 192.168.16.0/24, except: [192.168.16.2/32]}}, {ipBlock: {cidr: "fd00:16::/64", except: ["fd00:16::2/128"]}}]}]}`}, `
+ out web1 tcp 8080
+ out web1 icmp
- cli1 web1 tcp 8080
- cli2 web1 tcp 8080
`},
	{"everything", []string{`{podSelector: {}, policyTypes: [Ingress, Egress], ingress: [{}], egress: [{}]}`}, `
+ cli1 web1 tcp 8081
+ cli2 web1 icmp
+ out web1 udp 8080
+ cli1 web1 sctp 7
`},
	{"cluster, tier Admin", []string{
		`{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [
			{action: Accept, from: [{pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: oth}}}}]},
			{action: Pass, from: [{namespaces: {}}], protocols: [{tcp: {destinationPort: {number: 8081}}}]},
			{action: Deny, from: [{namespaces: {matchLabels: {team: red}}}], protocols: [{destinationNamedPort: http}, {sctp: {destinationPort: {range: {start: 5, end: 9}}}}]}]}`,
		`{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: cli}}}]}]}`,
	}, `
- cli1 web1 tcp 8080
- cli2 web1 tcp 8080
- cli1 web2 tcp 8080
- cli1 vip tcp 80
- cli1 web1 sctp 7
- cli2 web1 sctp 9
+ cli1 web1 sctp 10
+ cli1 web1 tcp 8081
+ cli1 web1 udp 8080
+ cli1 vip udp 80
+ cli1 web1 icmp
+ oth1 web1 tcp 8080
+ oth1 web1 icmp
- out web1 tcp 8080
- web2 web1 tcp 8081
- web2 cli1 tcp 8080
+ h1 web1 tcp 8080
+ web1 web1 tcp 8080
+ cli1 oth1 udp 8080
`},
	{"cluster, tier Baseline", []string{
		`{tier: Baseline, priority: 1, subject: {namespaces: {}}, egress: [{action: Accept, to: [{namespaces: {}}]}, {action: Deny, to: [{networks: [192.168.16.250/32, "fd00:16::fa/128"]}]}]}`,
		`{podSelector: {matchLabels: {app: web}}, policyTypes: [Egress], egress: [{}]}`,
	}, `
- cli1 out icmp
- oth1 out icmp
+ web1 out icmp
+ cli1 web1 tcp 8080
+ cli1 vip tcp 80
+ cli1 h1 tcp 8080
+ out cli1 udp 8080
`},
	{"cluster, the own node", []string{
		`{tier: Admin, priority: 1, subject: {namespaces: {}}, egress: [
			{action: Deny, to: [{nodes: {}}, {networks: [10.199.0.0/24, "fd00:99::/64"]}], protocols: [{tcp: {destinationPort: {number: 8080}}}]}]}`,
		`{podSelector: {matchLabels: {app: cli}}, policyTypes: [Egress]}`,
	}, `
- cli1 h1 tcp 8080
- oth1 h1 tcp 8080
- oth1 h2 tcp 8080
+ cli1 h1 tcp 8081
+ cli1 h1 icmp
+ oth1 h2 tcp 8081
+ h1 cli1 tcp 8080
`},
}
