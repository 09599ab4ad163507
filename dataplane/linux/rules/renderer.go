package rules

import (
	"net/netip"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// RuleRenderer renders what the managers know to chains. Config.RuleRendererOverride replaces the default one. Its methods
// have no side effects; they never fail, since what cannot be rendered as asked is rendered closed (see Problem).
type RuleRenderer interface {
	// StaticChains are the chains of a layer that depend on the configuration only.
	StaticChains(f table.Family, l table.Layer) []table.Chain
	// Hooks are the layer's rules at the kernel's hooks.
	Hooks(l table.Layer) map[table.Hook][]table.Rule

	// WorkloadChains are the filter chains of a workload's interface, to and from it.
	WorkloadChains(f table.Family, ep Workload) []table.Chain
	// ReversePath is the raw chain that drops packets whose source is not routed back to the workload that sent them, except for what the
	// workloads given may spoof.
	ReversePath(f table.Family, workloads []Workload) table.Chain
	// WorkloadDispatch sends packets to the chains of WorkloadChains, for the interfaces named.
	// nodeJudged are the interfaces of workloads for which Config.JudgesNode is true.
	WorkloadDispatch(ifaces, nodeJudged []string) []table.Dispatch
	// SharedChains are the filter chains of a workload's policies, with Config.SharePolicies. Their names stand for what they hold: of those that are
	// known there is the name only.
	SharedChains(ep Workload, known func(name string) bool) (to, from table.Chain)
	// SharedDispatch sends packets to the chains of SharedChains, by interface.
	SharedDispatch(to, from map[string]string) []table.Dispatch

	// HostChains are the chains of a host endpoint's interface (or of AllInterfaces) in a layer.
	HostChains(l table.Layer, ep Host) []table.Chain
	// HostDispatch sends packets to the chains of HostChains, for the interfaces named, which may include AllInterfaces.
	HostDispatch(l table.Layer, ifaces []string) []table.Dispatch

	// MarkChains are the filter chains that carry, by mark, the interface through kube-ipvs; marks are by interface, hosts are
	// those of them that host endpoints have. Nothing unless KubeIPVSSupportEnabled.
	MarkChains(marks map[string]uint32, hosts map[string]bool) LayerChains

	// PolicyChain renders the rules of a policy in one direction.
	PolicyChain(f table.Family, name string, rules []*proto.Rule, env Env) (table.Chain, []Problem)

	// NATOutgoing is the chain that masquerades; it is empty unless some pool wants it.
	NATOutgoing(active bool) table.Chain
	// FloatingIPs are the chains of floating IPs. Both lists are sorted, without repeats.
	FloatingIPs(dnat, snat []NATPair) []table.Chain
}

// NATPair is a floating IP and the address that it stands for.
type NATPair struct{ External, Internal netip.Addr }

// renderer is the default RuleRenderer.
type renderer struct {
	Config
	filterAllow, mangleAllow table.Verb
}

// NewRenderer returns the default renderer for a configuration, to which defaults are added. The error names the fields
// that are wrong.
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
