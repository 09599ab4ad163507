package compiler

// clusterMatrix is the matrix of ClusterNetworkPolicy. The policies are p0, p1, ...; those without a tier are NetworkPolicies in namespace a.
var clusterMatrix = []cell{
	{"a cluster policy without rules", `{tier: Admin, priority: 1, subject: {namespaces: {}}}`, "+ world a/web tcp 80\n+ a/web world tcp 80"},
	{"Deny", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{namespaces: {}}]}]}`,
		"- a/api a/web tcp 80\n- a/api6 a/web6 icmp\n- c/far a/web udp 1\n+ world a/web tcp 80\n+ a/web world tcp 80"},
	{"what no rule matches goes on", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Accept, from: [{namespaces: {matchLabels: {team: blue}}}]}]}`,
		"+ b/web a/web tcp 1\n+ a/api a/web tcp 1"},
	{"Admin before NetworkPolicy", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Accept, from: [{namespaces: {}}]}]}
---
{podSelector: {}}`, "+ a/api a/web tcp 1\n- world a/web tcp 1"},
	{"Admin denies what NetworkPolicy allows", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{namespaces: {}}]}]}
---
{podSelector: {}, ingress: [{}]}`, "- a/api a/web tcp 1\n+ world a/web tcp 1"},
	{"Pass leaves it to NetworkPolicy", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Pass, from: [{namespaces: {matchLabels: {team: blue}}}]}, {action: Deny, from: [{namespaces: {}}]}]}
---
{podSelector: {matchLabels: {app: web}}, ingress: [{ports: [{port: 80}]}]}`, "+ b/web a/web tcp 80\n- b/web a/web tcp 81\n- a/api a/web tcp 80\n+ b/web a/api tcp 1"},
	{"Pass skips later policies of the tier", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Pass, from: [{namespaces: {matchLabels: {team: blue}}}]}]}
---
{tier: Admin, priority: 2, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{namespaces: {}}]}]}`, "+ b/web a/web tcp 1\n- a/api a/web tcp 1"},
	{"Pass in Admin does not skip Baseline", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Pass, from: [{namespaces: {}}]}]}
---
{tier: Baseline, priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{namespaces: {}}]}]}`, "- a/api a/web tcp 1"},
	{"Pass in Baseline allows", `{tier: Baseline, priority: 1, subject: {namespaces: {}}, ingress: [{action: Pass, from: [{namespaces: {matchLabels: {team: blue}}}]}, {action: Deny, from: [{namespaces: {}}]}]}`,
		"+ b/web a/web tcp 1\n- a/api a/web tcp 1"},
	{"Baseline holds where no NetworkPolicy isolates", `{tier: Baseline, priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{namespaces: {}}]}]}
---
{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {}}]}]}`, "+ a/api a/web tcp 1\n- a/web a/api tcp 1\n- a/api b/web tcp 1"},
	{"isolated in ingress, Baseline holds in egress", `{tier: Baseline, priority: 1, subject: {namespaces: {}}, egress: [{action: Deny, to: [{networks: [198.51.100.0/24]}]}]}
---
{podSelector: {}, ingress: [{}]}`, "- a/web world tcp 1\n+ world a/web tcp 1"},
	{"the lower priority number is first", `{tier: Admin, priority: 2, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{namespaces: {}}]}]}
---
{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Accept, from: [{namespaces: {}}]}]}`, "+ a/api a/web tcp 1"},
	{"of equal priorities the name is first", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{namespaces: {}}]}]}
---
{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Accept, from: [{namespaces: {}}]}]}`, "- a/api a/web tcp 1"},
	{"priorities count within their tier", `{tier: Baseline, priority: 0, subject: {namespaces: {}}, ingress: [{action: Accept, from: [{namespaces: {}}]}]}
---
{tier: Admin, priority: 1000, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{namespaces: {}}]}]}`, "- a/api a/web tcp 1"},
	{"the first rule decides", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Accept, from: [{namespaces: {}}]}, {action: Deny, from: [{namespaces: {}}]}]}`, "+ a/api a/web tcp 1"},
	{"subject namespaces", `{tier: Admin, priority: 1, subject: {namespaces: {matchLabels: {team: blue}}}, ingress: [{action: Deny, from: [{namespaces: {}}]}]}`,
		"- a/api b/web tcp 1\n+ b/web a/api tcp 1"},
	{"subject pods", `{tier: Admin, priority: 1, subject: {pods: {namespaceSelector: {matchLabels: {team: red}}, podSelector: {matchLabels: {app: web}}}}, ingress: [{action: Deny, from: [{namespaces: {}}]}]}`,
		"- a/api a/web tcp 1\n+ a/web a/api tcp 1\n+ a/api b/web tcp 1"},
	{"peer pods", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{pods: {namespaceSelector: {matchLabels: {team: red}}, podSelector: {matchLabels: {app: web}}}}]}]}`,
		"- a/web a/api tcp 1\n- a/end a/api tcp 1\n+ b/web a/api tcp 1\n+ a/api b/web tcp 1"},
	{"no pods of the node's network", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{namespaces: {}}]}], egress: [{action: Deny, to: [{namespaces: {}}]}]}`,
		"+ a/host a/web tcp 1\n+ a/web a/host tcp 1"},
	{"networks", `{tier: Admin, priority: 1, subject: {namespaces: {}}, egress: [{action: Deny, to: [{networks: [198.51.100.0/24, 10.0.0.2/32]}]}]}`,
		"- a/web world tcp 1\n- a/web a/api tcp 1\n+ a/web b/web tcp 1\n+ a/web6 a/api6 tcp 1"},
	{"nodes", `{tier: Admin, priority: 1, subject: {namespaces: {}}, egress: [{action: Deny, to: [{nodes: {matchLabels: {role: edge}}}]}]}`,
		"- a/web edge tcp 1\n+ a/web node tcp 1\n+ a/web world tcp 1"},
	{"Deny holds for the own node", `{tier: Admin, priority: 1, subject: {namespaces: {}}, egress: [{action: Deny, to: [{nodes: {}}]}]}`,
		"- a/web node tcp 1\n- a/web edge tcp 1\n+ node a/web tcp 1"},
	{"NetworkPolicy does not hold for the own node", `{tier: Admin, priority: 1, subject: {namespaces: {}}, egress: [{action: Pass, to: [{nodes: {}}]}]}
---
{podSelector: {}, policyTypes: [Egress]}
---
{tier: Baseline, priority: 1, subject: {namespaces: {}}, egress: [{action: Deny, to: [{nodes: {}}]}]}`, "+ a/web node tcp 1\n- a/web edge tcp 1\n- b/web node tcp 1"},
	{"ingress from the own node passes", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{}]}]}`, "+ node a/web tcp 1\n- edge a/web tcp 1"},
	{"domain names match nothing", `{tier: Admin, priority: 1, subject: {namespaces: {}}, egress: [{action: Accept, to: [{domainNames: [example.com]}]}, {action: Deny, to: [{networks: [0.0.0.0/0]}]}]}`,
		"- a/web world tcp 1"},
	{"port number", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{namespaces: {}}], protocols: [{tcp: {destinationPort: {number: 80}}}]}]}`,
		"- a/api a/web tcp 80\n+ a/api a/web tcp 81\n+ a/api a/web udp 80\n+ a/api a/web icmp"},
	{"port range", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{namespaces: {}}], protocols: [{udp: {destinationPort: {range: {start: 80, end: 90}}}}]}]}`,
		"+ a/api a/web udp 79\n- a/api a/web udp 80\n- a/api a/web udp 90\n+ a/api a/web udp 91"},
	{"all ports of a protocol", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{namespaces: {}}], protocols: [{sctp: {}}]}]}`,
		"- a/api a/web sctp 1\n+ a/api a/web tcp 1"},
	{"a named port has the pod's protocol", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{namespaces: {}}], protocols: [{destinationNamedPort: dns}, {destinationNamedPort: http}]}]}`,
		"- a/api a/web udp 53\n+ a/api a/web tcp 53\n- a/api a/web tcp 80\n- a/web a/api tcp 8080\n+ a/web a/api tcp 80"},
	{"a named port in cluster egress is the receiver's", `{tier: Admin, priority: 1, subject: {namespaces: {}}, egress: [{action: Deny, to: [{namespaces: {}}], protocols: [{destinationNamedPort: http}]}]}`,
		"- a/web c/far tcp 81\n+ a/web c/far tcp 80\n- a/web a/api tcp 8080\n+ a/web world tcp 80"},
	{"an unknown peer in Accept", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Accept, from: [{namespaces: {}}, {}]}, {action: Deny, from: [{namespaces: {}}]}]}`, "- a/api a/web tcp 1"},
	{"an unknown peer in Deny", `{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{}]}]}`, "- a/api a/web tcp 1\n- world a/web tcp 1\n+ a/web world tcp 1"},
	{"an unknown peer in Pass", `{tier: Admin, priority: 1, subject: {namespaces: {}}, egress: [{action: Pass, to: [{}]}]}`, "- a/web world tcp 1\n- a/web node tcp 1\n+ world a/web tcp 1"},
	{"a pod still reaches itself", `{tier: Admin, priority: 1, subject: {namespaces: {}}, egress: [{action: Deny, to: [{namespaces: {}}]}]}`, "+ a/web a/web tcp 80\n- a/web a/api tcp 80"},
}
