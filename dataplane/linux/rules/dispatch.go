package rules

import (
	"slices"

	"contiv.dev/vswitch/dataplane/linux/table"
)

func (r *renderer) WorkloadDispatch(ifaces, nodeJudged []string) []table.Dispatch {
	// The end of the chain is for interfaces that have the name of a workload's interface but no endpoint.
	unknown := []table.Rule{rule(table.Match{}, "Unknown interface", act(table.Drop))}
	list := []table.Dispatch{
		dispatch(r.Own(chainFromWorkloadDispatch), r.Own(WorkloadFromEndpointPfx), false, ifaces, unknown),
		dispatch(r.Own(chainToWorkloadDispatch), r.Own(WorkloadToEndpointPfx), true, ifaces, unknown),
	}
	if len(r.TiersForNode) == 0 {
		return list
	}
	node := table.Dispatch{Name: r.Own(chainNodeToWorkload), ByOut: true, Chains: map[string]string{}}
	for _, iface := range nodeJudged {
		node.Chains[iface] = r.Own(chainNodeCut)
	}
	return append(list, node)
}

func (r *renderer) HostDispatch(l table.Layer, ifaces []string) []table.Dispatch {
	chain := func(name, prefix string, byOut bool) table.Dispatch {
		var others []table.Rule
		if slices.Contains(ifaces, AllInterfaces) {
			others = []table.Rule{rule(table.Match{}, "", goTo(IfaceChain(prefix, AllInterfaces)))}
		}
		return dispatch(name, prefix, byOut, ifaces, others)
	}
	from := chain(r.Own(chainDispatchFromHostEndpoint), r.Own(HostFromEndpointPfx), false)
	if l == table.Mangle {
		return []table.Dispatch{from}
	}
	both := []table.Dispatch{from, chain(r.Own(chainDispatchToHostEndpoint), r.Own(HostToEndpointPfx), true)}
	if l == table.Filter {
		both = append(both,
			chain(r.Own(chainDispatchFromHostEndpointForward), r.Own(HostFromEndpointForwardPfx), false),
			chain(r.Own(chainDispatchToHostEndpointForward), r.Own(HostToEndpointForwardPfx), true))
	}
	return both
}

func dispatch(name, prefix string, byOut bool, ifaces []string, others []table.Rule) table.Dispatch {
	d := table.Dispatch{Name: name, ByOut: byOut, Chains: map[string]string{}, Default: others}
	for _, iface := range ifaces {
		if iface != AllInterfaces {
			d.Chains[iface] = IfaceChain(prefix, iface)
		}
	}
	return d
}
