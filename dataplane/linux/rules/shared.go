package rules

import (
	"fmt"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// With Config.SharePolicies a packet of a workload passes up to three chains: the workload's own chain, which checks addresses and
// connections; the chain of its policies, which is shared by all workloads with the same policies; and, if the policies have not accepted
// the packet, its own chain again, with the mark pass, which reports and drops it. So each workload has its own limit of reports.

// throughWorkload returns rules that send packets matching m through a workload's chains.
func (r *renderer) throughWorkload(m table.Match, own, policies string) []table.Rule {
	if !r.SharePolicies {
		return []table.Rule{rule(m, "", jump(r.Own(own)))}
	}
	open := m
	open.MarkMask = r.IptablesMarkAccept
	return []table.Rule{
		rule(m, "", clearMark(r.IptablesMarkPass), jump(r.Own(own))),
		rule(open, "", jump(r.Own(policies))),
		rule(open, "", setMark(r.IptablesMarkPass), jump(r.Own(own))),
		rule(open, "Policies have not accepted it", act(table.Drop)),
	}
}

// alone builds the chain that a workload does not share. Packets that leave it without the mark accept are checked by its policies.
func (c *endpointChain) alone(self table.Match) {
	if c.NodeAndSelfExempt {
		c.exempted = []table.Match{self}
	}
	c.head("")
	c.drop(marked(c.IptablesMarkPass), "Policies have not accepted it")
	c.add(table.Match{}, "", clearMark(c.IptablesMarkAccept))
}

func (r *renderer) SharedChains(ep Workload, known func(name string) bool) (to, from table.Chain) {
	chain := func(prefix string, d Direction, toNode *table.Match) table.Chain {
		c := &endpointChain{renderer: r, shared: true}
		c.kubernetes(ep, d, toNode)
		name := ChainName(r.Own(prefix), fmt.Sprintf("%t\x00%#v", c.strict, d))
		if known(name) {
			return table.Chain{Name: name}
		}
		c.exempt()
		c.policies(d)
		return table.Chain{Name: name, Rules: c.rules}
	}
	return chain(sharedToPfx, ep.To, nil), chain(sharedFromPfx, ep.From, &table.Match{Dst: table.AddrLocal})
}

func (r *renderer) SharedDispatch(to, from map[string]string) []table.Dispatch {
	unknown := []table.Rule{rule(table.Match{}, "Unknown interface", act(table.Drop))}
	return []table.Dispatch{
		{Name: r.Own(ChainToWorkloadPolicies), ByOut: true, Chains: to, Default: unknown},
		{Name: r.Own(ChainFromWorkloadPolicies), Chains: from, Default: unknown},
	}
}
