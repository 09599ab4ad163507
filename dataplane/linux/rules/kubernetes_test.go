package rules_test

import (
	"fmt"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// TestTiersForNode: policies of such tiers decide what a workload may send to its node, unless an earlier tier has policies. The node does
// not continue a connection that they have ended. All connections that the node opens pass.
func TestTiersForNode(t *testing.T) {
	for _, f := range families {
		n := newNode(t, rules.Config{NodeAndSelfExempt: true, EndpointToHostAction: "ACCEPT", TiersForNode: []string{"admin", "baseline"}})
		open := n.openProfile()
		open.Profiles = append(open.Profiles, n.policy(rules.ProfileOutboundPfx, "open"))
		none := n.policy(rules.PolicyInboundPfx, "none")
		deny := n.policy(rules.PolicyInboundPfx, "deny", &proto.Rule{Action: "deny", Protocol: protocol("tcp"), DstPorts: []*proto.PortRange{{First: 80, Last: 80}}})
		with := func(tiers ...rules.Tier) rules.Direction {
			return rules.Direction{Tiers: tiers, Profiles: open.Profiles}
		}
		passing := func(name string, policies ...string) rules.Tier {
			return rules.Tier{Name: name, Policies: policies, PassAtEnd: true}
		}
		for i, test := range []struct {
			name   string
			from   rules.Direction
			want   string // of a connection to port 80
			picked string // of the node's segments of an unknown connection
		}{
			{"denied first", with(passing("admin", deny), tier("networkpolicy", none)), "drop", "drop"},
			{"isolated before", with(tier("networkpolicy", none), passing("baseline", deny)), "accept", "pass"},
			{"denied at last", with(passing("baseline", deny)), "drop", "drop"},
			{"passed on to a tier that isolates", with(passing("admin", none), tier("networkpolicy", none)), "accept", "drop"},
			{"passed by all", with(passing("admin", none), passing("baseline", none)), "accept", "drop"},
			{"no policy", open, "accept", "pass"},
			{"only empty tiers", with(passing("admin"), tier("networkpolicy", none)), "accept", "pass"},
		} {
			iface := fmt.Sprint("cali", i)
			n.workload(iface, webAddr, open, test.from)
			n.apply()
			web, node := webAddr[f], nodeAddr[f]
			n.expect(test.name, tcp(iface, "", web, node, 80), test.want)
			n.expect(test.name+": another port", tcp(iface, "", web, node, 81), "accept")
			n.expect(test.name+": to itself", tcp(iface, iface, web, web, 80), "accept")
			segment := tcp("", iface, node, web, 80)
			segment.CT = table.CTNew
			n.expect(test.name+": the node begins", segment, "pass")
			segment.MidStream = true
			n.expect(test.name+": the node goes on", segment, test.picked)
			segment.CT = table.CTEstablished
			n.expect(test.name+": of a known connection", segment, "pass")
		}
	}
}

// TestNodeAndSelfExempt: packets of a workload to its node and to itself pass regardless of policies, if they have its own address as
// source; and an unknown TCP connection does not continue.
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
