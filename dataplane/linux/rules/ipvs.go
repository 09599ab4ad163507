package rules

import (
	"maps"
	"slices"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// With kube-ipvs, packets to a service arrive in INPUT and leave by OUTPUT, where their incoming interface is no longer available. The
// endpoint mark stores it in between.

// forwardCheck returns the chain that detects packets that kube-ipvs will forward, and sends them to the chain that marks them.
func (r *renderer) forwardCheck() table.Chain {
	list := []table.Rule{rule(established(), "", act(table.Return))}
	for _, protocol := range []uint8{protoTCP, protoUDP} {
		if len(r.KubeNodePortRanges) == 0 {
			break
		}
		m := table.Match{Protocol: protocol, DstPorts: r.KubeNodePortRanges, DstSets: []string{SetThisHost}}
		list = append(list, rule(m, "To a node port", goTo(r.Own(chainDispatchSetEndpointMark))))
	}
	return table.Chain{Name: r.Own(chainForwardCheck), Rules: append(list,
		rule(table.Match{NotDstSets: []string{SetThisHost}}, "To a service", goTo(r.Own(chainDispatchSetEndpointMark))))}
}

// forwardEndpointMark returns the chain that applies the rules of FORWARD by the mark.
func (r *renderer) forwardEndpointMark() table.Chain {
	foreign := table.Match{Mark: r.IptablesMarkNonCaliEndpoint, MarkMask: r.IptablesMarkEndpoint, MarkNot: true}
	list := []table.Rule{rule(foreign, "", jump(r.Own(chainDispatchFromEndpointMark)))}
	for _, prefix := range r.WorkloadIfacePrefixes {
		list = append(list, rule(out(prefix), "", jump(r.Own(chainToWorkloadDispatch))))
	}
	return table.Chain{Name: r.Own(chainForwardEndpointMark), Rules: append(list,
		rule(table.Match{}, "", jump(r.Own(chainDispatchToHostEndpointForward))),
		rule(table.Match{}, "", clearMark(r.IptablesMarkEndpoint)),
		rule(marked(r.IptablesMarkAccept), "Policy explicitly accepted the packet", act(r.filterAllow)))}
}

func (r *renderer) MarkChains(marks map[string]uint32, hosts map[string]bool) LayerChains {
	if !r.KubeIPVSSupportEnabled {
		return LayerChains{Layer: table.Filter}
	}
	mask := r.IptablesMarkEndpoint
	set := table.Dispatch{Name: r.Own(chainDispatchSetEndpointMark), Chains: map[string]string{}}
	from := table.Chain{Name: r.Own(chainDispatchFromEndpointMark)}
	var chains []table.Chain
	for _, iface := range slices.Sorted(maps.Keys(marks)) {
		name := IfaceChain(r.Own(SetEndpointMarkPfx), iface)
		chains = append(chains, table.Chain{Name: name, Rules: []table.Rule{
			rule(table.Match{}, "", table.Action{Verb: table.SetMark, Mark: marks[iface], Mask: mask})}})
		set.Chains[iface] = name
		prefix := r.Own(WorkloadFromEndpointPfx)
		if hosts[iface] {
			prefix = r.Own(HostFromEndpointForwardPfx)
		}
		from.Rules = append(from.Rules, rule(table.Match{Mark: marks[iface], MarkMask: mask}, "", goTo(IfaceChain(prefix, iface))))
	}
	for _, prefix := range r.WorkloadIfacePrefixes {
		set.Default = append(set.Default, rule(in(prefix), "Unknown endpoint", act(table.Drop)))
	}
	set.Default = append(set.Default, rule(table.Match{}, "No endpoint",
		table.Action{Verb: table.SetMark, Mark: r.IptablesMarkNonCaliEndpoint, Mask: mask}))
	from.Rules = append(from.Rules, rule(table.Match{}, "Unknown endpoint", act(table.Drop)))
	return LayerChains{Layer: table.Filter, Chains: append(chains, from), Dispatches: []table.Dispatch{set}}
}
