package rules

import (
	"net/netip"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// RuleRenderer renders the state of the managers to chains. Config.RuleRendererOverride replaces the default one. Its methods have no side
// effects and never fail: a rule that cannot be rendered exactly is rendered to block (see Problem).
type RuleRenderer interface {
	// StaticChains returns the chains of a layer that depend on the configuration only.
	StaticChains(f table.Family, l table.Layer) []table.Chain
	// Hooks returns the layer's rules at the kernel's hooks.
	Hooks(l table.Layer) map[table.Hook][]table.Rule

	// WorkloadChains returns the filter chains of a workload's interface, for packets to and from it.
	WorkloadChains(f table.Family, ep Workload) []table.Chain
	// ReversePath returns the raw chain that drops packets whose source is not routed back to the workload that sent them, except for
	// sources that the given workloads may spoof.
	ReversePath(f table.Family, workloads []Workload) table.Chain
	// WorkloadDispatch returns the dispatch to the chains of WorkloadChains, for the given interfaces. nodeJudged are the interfaces of
	// workloads for which Config.AppliesToNode returns true.
	WorkloadDispatch(ifaces, nodeJudged []string) []table.Dispatch
	// SharedChains returns the filter chains of a workload's policies, with Config.SharePolicies. A chain's name identifies its contents:
	// for chains for which known returns true, only the name is returned.
	SharedChains(ep Workload, known func(name string) bool) (to, from table.Chain)
	// SharedDispatch returns the dispatch to the chains of SharedChains, by interface.
	SharedDispatch(to, from map[string]string) []table.Dispatch

	// HostChains returns the chains of a host endpoint's interface (or of AllInterfaces) in a layer.
	HostChains(l table.Layer, ep Host) []table.Chain
	// HostDispatch returns the dispatch to the chains of HostChains, for the given interfaces, which may include AllInterfaces.
	HostDispatch(l table.Layer, ifaces []string) []table.Dispatch

	// MarkChains returns the filter chains that pass the incoming interface through kube-ipvs in the packet mark. marks is by interface;
	// hosts contains the interfaces of host endpoints. The result is empty unless KubeIPVSSupportEnabled is set.
	MarkChains(marks map[string]uint32, hosts map[string]bool) LayerChains

	// PolicyChain returns the chain of a policy in one direction.
	PolicyChain(f table.Family, name string, rules []*proto.Rule, env Env) (table.Chain, []Problem)

	// NATOutgoing returns the chain that masquerades; it is empty unless a pool needs it.
	NATOutgoing(active bool) table.Chain
	// FloatingIPs returns the chains of floating IPs. Both lists must be sorted, without duplicates.
	FloatingIPs(dnat, snat []NATPair) []table.Chain
}

// NATPair is a floating IP and the internal address that it is translated to.
type NATPair struct{ External, Internal netip.Addr }

// renderer is the default RuleRenderer.
type renderer struct {
	Config
	filterAllow, mangleAllow table.Verb
}

// NewRenderer returns the default renderer for a configuration, after adding defaults. The error names the fields that are wrong.
func NewRenderer(c Config) (RuleRenderer, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.SharePolicies = c.SharePolicies && !c.KubeIPVSSupportEnabled
	return &renderer{Config: c,
		filterAllow: verbOf(c.IptablesFilterAllowAction), mangleAllow: verbOf(c.IptablesMangleAllowAction)}, nil
}

func verbOf(action string) table.Verb {
	switch action {
	case "ACCEPT":
		return table.Accept
	case "RETURN":
		return table.Return
	}
	return table.Drop
}
