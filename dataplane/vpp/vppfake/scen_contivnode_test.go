package vppfake_test

import (
	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// forNode returns a tier whose policies also apply to packets from the pod to its node.
func forNode(end contiv.ContivRuleAction, policies ...uint64) []contiv.ContivTierItem {
	items := tier(end, policies...)
	for i := range items[:len(items)-1] {
		items[i].Action = polPass
	}
	return items
}

// contivPolicyNode sends packets from pod B to its own node. Policy 1 passes TCP 81 and denies all other TCP and echoes; 2 is a NetworkPolicy
// without rules.
func contivPolicyNode(ps *packetScript) {
	policedNode(ps)
	echo, echo6 := rule(polDeny, 0, 0, 1), rule(polDeny, 0, 0, 58)
	ps.policy(1, nil, []contiv.ContivRule{rule(polPass, 0, 0, 6, 81), rule(polDeny, 0, 0, 6), echo, echo6})
	ps.policy(2, nil, nil)
	stages := []struct {
		note  string
		tiers []contiv.ContivTierItem
	}{
		{"one tier holds for the node, the next does not", append(forNode(polPass, 1), tier(polDeny, 2)...)},
		{"the first tier does not: it allows the node", append(tier(polDeny, 2), forNode(polDeny, 1)...)},
		{"the end of a tier that holds", forNode(polDeny, 2)},
		{"all tiers pass", forNode(polPass, 2)},
	}
	for n, stage := range stages {
		ps.note(stage.note)
		ps.police(podB+1, nil, stage.tiers)
		ps.bothFamilies(func(a, b, host, far string) {
			port := uint16(41000 + n)
			ps.note("TCP 80, TCP 81 and UDP to the node, TCP 81 to another pod")
			ps.l4(podB, vppfake.ProtoTCP, end2(b, port), end2(host, 80))
			ps.l4(podB, vppfake.ProtoTCP, end2(b, port), end2(host, 81))
			ps.l4(hostPort, vppfake.ProtoTCP, end2(host, 81), end2(b, port), syn, ack)
			ps.l4(podB, vppfake.ProtoUDP, end2(b, port), end2(host, 53))
			ps.l4(hostPort, vppfake.ProtoUDP, end2(host, 53), end2(b, port))
			ps.l4(podB, vppfake.ProtoTCP, end2(b, port), end2(a, 81))
			ps.note("the node asks, the pod answers, but opens nothing backwards")
			ps.l4(hostPort, vppfake.ProtoTCP, end2(host, port), end2(b, 9000))
			ps.l4(podB, vppfake.ProtoTCP, end2(b, 9000), end2(host, port), syn, ack)
			ps.l4(podB, vppfake.ProtoTCP, end2(b, 9000), end2(host, port))
			ps.l4(hostPort, vppfake.ProtoUDP, end2(host, port), end2(b, 9000))
			ps.l4(podB, vppfake.ProtoUDP, end2(b, 9000), end2(host, port))
		})
	}
	ps.verdicts()
	ps.note("what is refused: on ingress, and other actions")
	ps.police(podB+1, forNode(polDeny, 2), nil)
	wrong := forNode(polDeny, 2)
	wrong[0].Action = polDeny
	ps.police(podB+1, nil, wrong)
}
