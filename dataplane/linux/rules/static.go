package rules

import (
	"net/netip"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/ipaddr"
)

func (r *renderer) Hooks(l table.Layer) map[table.Hook][]table.Rule {
	to := func(chain string) []table.Rule { return []table.Rule{rule(table.Match{}, "", jump(chain))} }
	switch l {
	case table.Raw:
		return map[table.Hook][]table.Rule{table.Prerouting: to(r.Own(chainPrerouting)), table.Output: to(r.Own(chainOutput))}
	case table.Mangle:
		hooks := map[table.Hook][]table.Rule{table.Prerouting: to(r.Own(chainPrerouting))}
		if r.VXLANEnabled {
			hooks[table.Postrouting] = to(r.Own(chainPostrouting))
		}
		return hooks
	case table.NAT:
		return map[table.Hook][]table.Rule{
			table.Prerouting: to(r.Own(chainPrerouting)), table.Postrouting: to(r.Own(chainPostrouting)), table.Output: to(r.Own(chainOutput))}
	case table.Filter:
		return map[table.Hook][]table.Rule{
			table.Input: to(r.Own(chainInput)), table.Forward: to(r.Own(chainForward)), table.Output: to(r.Own(chainOutput))}
	}
	return nil
}

func (r *renderer) StaticChains(f table.Family, l table.Layer) []table.Chain {
	switch l {
	case table.Raw:
		return append(r.failsafeChains(f, l), r.rawPrerouting(f), r.rawOutput())
	case table.Mangle:
		chains := append(r.failsafeChains(f, l), r.manglePrerouting())
		if r.VXLANEnabled {
			chains = append(chains, r.manglePostrouting())
		}
		return chains
	case table.NAT:
		return []table.Chain{r.natPrerouting(f), r.natOutput(), r.natPostrouting(f)}
	case table.Filter:
		chains := append(r.failsafeChains(f, l), r.filterInput(f), r.filterForward(), r.filterOutput(f), r.workloadToHost(f))
		if len(r.TiersForNode) > 0 {
			chains = append(chains, r.nodeCut())
		}
		if r.KubeIPVSSupportEnabled {
			chains = append(chains, r.forwardCheck(), r.forwardEndpointMark())
		}
		return chains
	}
	return nil
}

func (r *renderer) rawPrerouting(f table.Family) table.Chain {
	fromWorkload := r.IptablesMarkScratch0
	list := []table.Rule{rule(table.Match{}, "", clearMark(r.markBits()))}
	for _, prefix := range r.WorkloadIfacePrefixes {
		list = append(list, rule(in(prefix), "", setMark(fromWorkload)))
	}
	list = append(list, r.workloadsNeverSend(f, marked(fromWorkload))...)
	list = append(list, rule(marked(fromWorkload), "", jump(r.Own(chainReversePath))))
	return table.Chain{Name: r.Own(chainPrerouting), Rules: append(list,
		rule(unmarked(fromWorkload), "", jump(r.Own(chainDispatchFromHostEndpoint))),
		rule(marked(r.IptablesMarkAccept), "Untracked policy accepted the packet", act(table.Accept)))}
}

func (r *renderer) rawOutput() table.Chain {
	return table.Chain{Name: r.Own(chainOutput), Rules: append(r.tunnelsOfProcesses(),
		rule(table.Match{}, "", clearMark(r.markBits())),
		rule(table.Match{}, "", jump(r.Own(chainDispatchToHostEndpoint))),
		rule(marked(r.IptablesMarkAccept), "Untracked policy accepted the packet", act(table.Accept)))}
}

func (r *renderer) manglePrerouting() table.Chain {
	return table.Chain{Name: r.Own(chainPrerouting), Rules: []table.Rule{
		rule(established(), "", act(r.mangleAllow)),
		rule(marked(r.IptablesMarkAccept), "Accepted before", act(r.mangleAllow)),
		rule(table.Match{}, "", jump(r.Own(chainDispatchFromHostEndpoint))),
		rule(marked(r.IptablesMarkAccept), "Host endpoint policy accepted the packet", act(r.mangleAllow))}}
}

func (r *renderer) filterForward() table.Chain {
	accept := r.IptablesMarkAccept
	list := append(r.translatedTunnels(),
		rule(table.Match{}, "", clearMark(r.markBits()&^accept)),
		rule(unmarked(accept), "", jump(r.Own(chainDispatchFromHostEndpointForward))),
	)
	for _, prefix := range r.WorkloadIfacePrefixes {
		list = append(list, r.throughWorkload(in(prefix), chainFromWorkloadDispatch, ChainFromWorkloadPolicies)...)
	}
	// In a separate loop: a packet must pass the policy of the sending workload, for all prefixes, before that of the receiving workload.
	for _, prefix := range r.WorkloadIfacePrefixes {
		list = append(list, r.throughWorkload(out(prefix), chainToWorkloadDispatch, ChainToWorkloadPolicies)...)
	}
	return table.Chain{Name: r.Own(chainForward), Rules: append(list,
		rule(table.Match{}, "", jump(r.Own(chainDispatchToHostEndpointForward))),
		rule(marked(accept), "Policy explicitly accepted the packet", act(r.filterAllow)))}
}

func (r *renderer) filterInput(f table.Family) table.Chain {
	list := r.tunnelInput(f)
	if r.KubeIPVSSupportEnabled {
		list = append(list, rule(table.Match{}, "", jump(r.Own(chainForwardCheck))),
			rule(table.Match{MarkMask: r.IptablesMarkEndpoint, MarkNot: true}, "kube-ipvs will forward it", act(table.Return)))
	}
	for _, prefix := range r.WorkloadIfacePrefixes {
		list = append(list, rule(in(prefix), "", goTo(r.Own(chainWorkloadToHost))))
	}
	return table.Chain{Name: r.Own(chainInput), Rules: append(list,
		rule(marked(r.IptablesMarkAccept), "", act(r.filterAllow)),
		rule(table.Match{}, "", clearMark(r.markBits())),
		rule(table.Match{}, "", jump(r.Own(chainDispatchFromHostEndpoint))),
		rule(marked(r.IptablesMarkAccept), "Host endpoint policy accepted the packet", act(r.filterAllow)))}
}

func (r *renderer) filterOutput(f table.Family) table.Chain {
	list := append(r.translatedTunnels(), rule(marked(r.IptablesMarkAccept), "", act(r.filterAllow)))
	if r.KubeIPVSSupportEnabled {
		list = append(list, rule(table.Match{MarkMask: r.IptablesMarkEndpoint, MarkNot: true}, "", goTo(r.Own(chainForwardEndpointMark))))
	}
	for _, prefix := range r.WorkloadIfacePrefixes {
		if len(r.TiersForNode) > 0 {
			m := out(prefix)
			m.Protocol, m.CT, m.MidStream = protoTCP, table.CTNew, true
			list = append(list, rule(m, "", jump(r.Own(chainNodeToWorkload))))
		}
		list = append(list, rule(out(prefix), "The node may always reach its workloads", act(table.Return)))
	}
	list = append(list, r.tunnelOutput(f)...)
	return table.Chain{Name: r.Own(chainOutput), Rules: append(list,
		rule(table.Match{}, "", clearMark(r.markBits())),
		rule(table.Match{}, "", jump(r.Own(chainDispatchToHostEndpoint))),
		rule(marked(r.IptablesMarkAccept), "Host endpoint policy accepted the packet", act(r.filterAllow)))}
}

// neighbourDiscovery returns the ICMPv6 types without which a workload cannot find its gateway: multicast listener query, report and done,
// router solicitation, neighbour solicitation and advertisement (RFC 2710, RFC 4861).
func neighbourDiscovery() []uint8 { return []uint8{130, 131, 132, 133, 135, 136} }

// routerAdvertisement is accepted for the node itself, never from a workload.
const routerAdvertisement = 134

func acceptNeighbours(kinds []uint8) []table.Rule {
	var list []table.Rule
	for _, kind := range kinds {
		m := table.Match{Protocol: protoICMPv6, ICMP: &table.ICMP{Type: kind, AnyCode: true}}
		list = append(list, rule(m, "", act(table.Accept)))
	}
	return list
}

// nodeCut returns the chain for workloads whose policies decide whether they may reach the node. Without it the node's next segment would
// open a connection that these policies have ended again, as a connection of the node.
func (r *renderer) nodeCut() table.Chain {
	return table.Chain{Name: r.Own(chainNodeCut), Rules: []table.Rule{rule(table.Match{}, "Of a connection that is not known", act(table.Drop))}}
}

func (r *renderer) workloadToHost(f table.Family) table.Chain {
	var list []table.Rule
	if f == table.IPv6 {
		list = acceptNeighbours(neighbourDiscovery())
	}
	list = append(list, r.openStack(f)...)
	list = append(list, r.throughWorkload(table.Match{}, chainFromWorkloadDispatch, ChainFromWorkloadPolicies)...)
	list = append(list, rule(table.Match{}, "EndpointToHostAction", act(verbOf(r.EndpointToHostAction))))
	return table.Chain{Name: r.Own(chainWorkloadToHost), Rules: list}
}

// openStack returns rules that accept packets to the services that an OpenStack compute node offers to its workloads regardless of policy.
func (r *renderer) openStack(f table.Family) []table.Rule {
	if !r.OpenStackSpecialCasesEnabled {
		return nil
	}
	var list []table.Rule
	client, server := uint16(68), uint16(67)
	if f == table.IPv6 {
		client, server = 546, 547
	} else if r.OpenStackMetadataIP.IsValid() {
		m := dport(protoTCP, r.OpenStackMetadataPort)
		m.DstNets = []netip.Prefix{ipaddr.HostPrefix(r.OpenStackMetadataIP)}
		list = append(list, rule(m, "OpenStack metadata", act(table.Accept)))
	}
	dhcp := dport(protoUDP, server)
	dhcp.SrcPorts = []table.PortRange{{First: client, Last: client}}
	return append(list, rule(dhcp, "DHCP", act(table.Accept)), rule(dport(protoUDP, 53), "DNS", act(table.Accept)))
}

func (r *renderer) failsafeChains(f table.Family, l table.Layer) []table.Chain {
	here := func(ports []ProtoPort, out bool) []table.Rule {
		var list []table.Rule
		for _, p := range ports {
			list = append(list, rule(p.match(out, false), "", act(table.Accept)))
		}
		return list
	}
	chainIn := table.Chain{Name: r.Own(chainFailsafeIn), Rules: here(r.FailsafeInboundHostPorts, false)}
	chainOut := table.Chain{Name: r.Own(chainFailsafeOut), Rules: here(r.FailsafeOutboundHostPorts, true)}
	if f == table.IPv6 {
		// An open port is not reachable for clients that cannot find the node.
		chainIn.Rules = append(chainIn.Rules, acceptNeighbours(append(neighbourDiscovery(), routerAdvertisement))...)
		chainOut.Rules = append(chainOut.Rules, acceptNeighbours(neighbourDiscovery())...)
	}
	if l == table.Mangle {
		return []table.Chain{chainIn}
	}
	if l == table.Raw {
		// Connections are not tracked yet: without rules for the replies, a do-not-track policy would apply to half of the connection.
		for _, p := range r.FailsafeOutboundHostPorts {
			chainIn.Rules = append(chainIn.Rules, rule(p.match(false, true), "answers", act(table.Accept)))
		}
		for _, p := range r.FailsafeInboundHostPorts {
			chainOut.Rules = append(chainOut.Rules, rule(p.match(true, true), "answers", act(table.Accept)))
		}
	}
	return []table.Chain{chainIn, chainOut}
}

// match returns the match of packets to the port, or with answer set, of replies from the port. Net applies to the remote side; out means
// that packets leave the node.
func (p ProtoPort) match(out, answer bool) table.Match {
	number, _ := protocolNumber(p.Protocol)
	m := dport(number, p.Port)
	if answer {
		m = sport(number, p.Port)
	}
	if p.Net != "" {
		nets := []netip.Prefix{netip.MustParsePrefix(p.Net).Masked()} // Validate has parsed it
		if out {
			m.DstNets = nets
		} else {
			m.SrcNets = nets
		}
	}
	return m
}
