package rules_test

import (
	"testing"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// TestNodeAndSelfExempt: what a workload sends to its node and to itself passes whatever the policies are, if it sends with its own
// address; and a TCP connection that is not known does not go on.
func TestNodeAndSelfExempt(t *testing.T) {
	for _, f := range families {
		n := newNode(t, rules.Config{NodeAndSelfExempt: true, EndpointToHostAction: "ACCEPT"})
		open := n.openProfile()
		open.Profiles = append(open.Profiles, n.policy(rules.ProfileOutboundPfx, "open"))
		none := n.policy(rules.PolicyInboundPfx, "none")
		n.policy(rules.PolicyOutboundPfx, "none")
		closed := rules.Direction{Tiers: []rules.Tier{tier("default", none)}, Profiles: open.Profiles}
		n.workload("caliweb", webAddr, closed, closed)
		n.workload("calidb", dbAddr, open, open)
		n.apply()

		web, db := webAddr[f], dbAddr[f]
		n.expect("to itself", tcp("caliweb", "caliweb", web, web, 80), "accept")
		n.expect("to its node", tcp("caliweb", "", web, nodeAddr[f], 80), "accept")
		n.expect("of its node", tcp("", "caliweb", nodeAddr[f], web, 80), "pass")
		n.expect("to its node, as another", tcp("caliweb", "", db, nodeAddr[f], 80), "drop")
		n.expect("of another with its address", tcp("eth0", "caliweb", web, web, 80), "drop")
		n.expect("to others", tcp("caliweb", "eth0", web, farAddr[f], 80), "drop")
		n.expect("of others", tcp("eth0", "caliweb", farAddr[f], web, 80), "drop")

		begins := tcp("eth0", "calidb", farAddr[f], db, 80)
		begins.CT = table.CTNew
		n.expect("without policies, a connection begins", begins, "accept")
		begins.MidStream = true
		n.expect("without policies, it is picked up", begins, "accept")

		n = newNode(t, rules.Config{NodeAndSelfExempt: true})
		open = n.openProfile()
		all := n.policy(rules.PolicyInboundPfx, "all", allowTCP(80))
		n.workload("caliweb", webAddr, open, rules.Direction{Tiers: []rules.Tier{tier("default", all)}, Profiles: open.Profiles})
		n.apply()
		begins = tcp("eth0", "caliweb", farAddr[f], web, 80)
		begins.CT = table.CTNew
		n.expect("with a policy of the other direction, a connection begins", begins, "accept")
		begins.MidStream = true
		n.expect("it is not picked up", begins, "drop")
		begins.CT = table.CTEstablished
		n.expect("it goes on", begins, "accept")
	}
}
