package rules

import (
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// Tier holds the policies of one tier in one direction, by the names of their chains, see PolicyChainName. Empty tiers are ignored.
type Tier struct {
	Name     string
	Policies []string
	// PassAtEnd passes packets that no policy has decided about to the next tier; otherwise they are dropped.
	PassAtEnd bool
}

// Direction holds the policies that apply to an endpoint's packets in one direction.
type Direction struct {
	Tiers    []Tier
	Profiles []string // names of chains
}

// Workload is an endpoint on a workload's interface.
type Workload struct {
	Iface string
	Up    bool // admin state; a workload that is down neither sends nor receives
	// Sources are the prefixes that the workload may send from, of any family.
	Sources []netip.Prefix
	Spoof   []netip.Prefix // those of Sources that need no route to the workload
	To      Direction
	From    Direction
}

// Host is a host endpoint on one interface of the node, or on AllInterfaces. In layer Raw its policies are the untracked ones, in layer
// Mangle the pre-DNAT ones.
type Host struct {
	Iface string
	To    Direction // packets that leave the node through the interface
	From  Direction
	// ForwardTo and ForwardFrom apply to packets that the node forwards. Layer Filter only.
	ForwardTo, ForwardFrom []Tier
}

// kind determines how the chain of an endpoint ends.
type kind uint8

const (
	normal    kind = iota // policies, then profiles, then drop
	forward               // policies; allow if there are none
	untracked             // policies; accepted packets are not tracked
	preDNAT               // policies
)

// endpointChain builds a chain of an endpoint.
type endpointChain struct {
	*renderer
	kind     kind
	allow    table.Verb
	exempted []table.Match  // packets to which policies do not apply
	report   string         // prefix of reports; "": no reports
	toNode   *table.Match   // matches packets to the node, until a tier or the end exempts them; nil: already exempted, or never exempted
	strict   bool           // TCP segments of unknown connections are dropped
	shared   bool           // denied packets return without the mark accept
	own      []netip.Prefix // the sender's addresses; ICMP errors pass only if they refer to connections of these addresses; nil: all errors pass
	rules    []table.Rule
}

func (c *endpointChain) add(m table.Match, comment string, actions ...table.Action) {
	c.rules = append(c.rules, rule(m, comment, actions...))
}

func (r *renderer) WorkloadChains(f table.Family, ep Workload) []table.Chain {
	to := &endpointChain{renderer: r, allow: r.filterAllow}
	from := &endpointChain{renderer: r, allow: r.filterAllow}
	if r.ReportDenied {
		to.report, from.report = ReportIngress, ReportEgress
	}
	if ep.Up {
		own := ofFamily(f, ep.Sources)
		toSelf, fromSelf := table.Match{DstNets: own}, table.Match{InIface: ep.Iface, SrcNets: own}
		from.checkSource(own)
		from.own = own
		sends := len(own) > 0 // otherwise all packets were dropped
		if sends {
			from.dropTunnelled(f)
		}
		if r.SharePolicies {
			to.alone(fromSelf)
		} else {
			to.kubernetes(ep, ep.To, nil, fromSelf)
			to.body(ep.To, "")
		}
		switch {
		case sends && r.SharePolicies:
			from.alone(toSelf)
		case sends:
			from.kubernetes(ep, ep.From, &table.Match{Dst: table.AddrLocal}, toSelf)
			from.body(ep.From, "")
		}
	} else {
		to.add(table.Match{}, "Endpoint admin state is down", act(table.Drop))
		from.add(table.Match{}, "Endpoint admin state is down", act(table.Drop))
	}
	return []table.Chain{
		{Name: IfaceChain(r.Own(WorkloadToEndpointPfx), ep.Iface), Rules: to.rules},
		{Name: IfaceChain(r.Own(WorkloadFromEndpointPfx), ep.Iface), Rules: from.rules},
	}
}

// checkSource drops packets whose source is not one of the workload's own addresses. The reverse path check alone does not suffice: it
// accepts any address that is routed to the workload, and it is ineffective if an administrator has set it to loose. Neighbour discovery,
// which has other sources, is accepted before (workloadToHost).
func (c *endpointChain) checkSource(own []netip.Prefix) {
	c.add(table.Match{NotSrcNets: own}, "Not the workload's address", act(table.Drop))
}

func ofFamily(f table.Family, nets []netip.Prefix) []netip.Prefix {
	var own []netip.Prefix
	for _, p := range nets {
		if p.Addr().Is4() == (f == table.IPv4) {
			own = append(own, p)
		}
	}
	return own
}

// governed reports whether policies apply to a direction: it has tiers with policies, or no profile.
func (d Direction) governed() bool {
	return len(d.Profiles) == 0 || slices.ContainsFunc(d.Tiers, func(t Tier) bool { return len(t.Policies) > 0 })
}

// kubernetes adds to the chain of an endpoint with policies what NodeAndSelfExempt requires: the packets that pass regardless of policies,
// and the rule that connections which policies have ended do not continue.
func (c *endpointChain) kubernetes(ep Workload, d Direction, toNode *table.Match, exempted ...table.Match) {
	if !c.NodeAndSelfExempt {
		return
	}
	c.strict = ep.To.governed() || ep.From.governed()
	switch {
	case !d.governed():
		return
	case toNode != nil && c.AppliesToNode(d):
		c.toNode = toNode
	case toNode != nil:
		exempted = append(exempted, *toNode)
	}
	c.exempted = exempted
}

// AppliesToNode reports whether policies decide what a workload may send to its node: the first tier that has policies is one of TiersForNode.
func (c Config) AppliesToNode(from Direction) bool {
	for _, tier := range from.Tiers {
		if len(tier.Policies) > 0 {
			return slices.Contains(c.TiersForNode, tier.Name)
		}
	}
	return false
}

// exemptNode accepts packets to the node, unless an earlier call has done so.
func (c *endpointChain) exemptNode() {
	if c.toNode != nil {
		c.add(*c.toNode, "The node", setMark(c.IptablesMarkAccept), act(table.Return))
		c.toNode = nil
	}
}

// dropTunnelled blocks packets of workloads to other nodes' tunnel endpoints through services. Packets that a workload sends there directly
// are dropped earlier (workloadsNeverSend).
func (c *endpointChain) dropTunnelled(f table.Family) {
	c.rules = append(c.rules, c.tunnelled(f, table.Match{}, "of a workload")...)
}

// body adds the part that all endpoint chains have, except those of workloads with SharePolicies.
func (c *endpointChain) body(d Direction, failsafe string) {
	c.head(failsafe)
	c.policies(d)
}

// head adds the rules before the policies.
func (c *endpointChain) head(failsafe string) {
	if c.kind != untracked {
		c.connections()
	}
	if failsafe != "" {
		c.add(table.Match{}, "", jump(failsafe))
	}
	c.exempt()
}

// exempt accepts the packets that pass regardless of policies.
func (c *endpointChain) exempt() {
	for _, m := range c.exempted {
		if m.Dst == table.AddrAny && len(m.SrcNets)+len(m.DstNets) == 0 {
			continue // it has no address of this family
		}
		c.add(m, "The node and the workload itself", setMark(c.IptablesMarkAccept), act(table.Return))
	}
}

// policies adds the rules that depend on policies.
func (c *endpointChain) policies(d Direction) {
	if c.strict {
		// Without this rule, the peer's next segment would open a connection that policy has ended again, if the peer may connect.
		c.add(table.Match{Protocol: protoTCP, CT: table.CTNew, MidStream: true}, "Of a connection that is not known", act(table.Drop))
	}
	c.add(table.Match{}, "", clearMark(c.IptablesMarkAccept))
	tiers := c.tiers(d.Tiers)
	c.exemptNode()
	switch {
	case c.kind == forward && tiers == 0:
		c.add(table.Match{}, "No policy applies to forwarded traffic", setMark(c.IptablesMarkAccept), act(table.Return))
	case c.kind == normal:
		for _, profile := range d.Profiles {
			c.add(table.Match{}, "", jump(profile))
			c.add(marked(c.IptablesMarkAccept), "Return if profile accepted", act(table.Return))
		}
		c.drop(table.Match{}, "Drop if no profile matched")
	}
}

// drop adds rules that report and drop the packets that m matches.
func (c *endpointChain) drop(m table.Match, comment string) {
	if c.shared {
		c.add(m, comment, act(table.Return))
		return
	}
	if c.report != "" {
		c.add(m, "", table.Action{Verb: table.Report, Prefix: c.report})
	}
	c.add(m, comment, act(table.Drop))
}

// connections accepts packets of connections that were accepted before, and drops invalid ones. A workload's ICMP errors pass only if they
// refer to one of its own connections, as client or as server, with or without translation. The receiver's chain accepts all errors, since
// it also gets errors from routers and any error is a reply to a packet that the receiver has sent.
func (c *endpointChain) connections() {
	pass := []table.Action{act(table.Accept)}
	if c.allow != table.Accept {
		pass = []table.Action{setMark(c.IptablesMarkAccept), act(c.allow)}
	}
	ends := table.CTState(0)
	if c.own == nil {
		c.add(established(), "", pass...)
	} else {
		c.add(table.Match{CT: table.CTEstablished}, "", pass...)
		c.add(table.Match{CT: table.CTRelated, CTOrigSrc: c.own}, "", pass...)
		c.add(table.Match{CT: table.CTRelated, CTReplSrc: c.own}, "", pass...)
		ends = table.CTRelated
	}
	if !c.DisableConntrackInvalid {
		ends |= table.CTInvalid
	}
	if ends != 0 {
		c.add(table.Match{CT: ends}, "", act(table.Drop))
	}
}

// tiers renders the tiers in order and returns how many have policies. A packet leaves a tier accepted, dropped, or passed to the next
// tier.
func (c *endpointChain) tiers(tiers []Tier) int {
	pass, n := c.IptablesMarkPass, 0
	for _, tier := range tiers {
		if len(tier.Policies) == 0 {
			continue
		}
		n++
		if !slices.Contains(c.TiersForNode, tier.Name) {
			c.exemptNode()
		}
		c.add(table.Match{}, "Start of tier "+tier.Name, clearMark(pass))
		c.jump(tier.Policies)
		if !tier.PassAtEnd && (c.kind == normal || c.kind == forward) {
			c.drop(unmarked(pass), "End of tier "+tier.Name+": drop if no policy passed the packet")
		}
	}
	return n
}

// jumpsAtOnce is the number of policies between two checks whether a policy has accepted the packet. After the acceptance, a packet still
// passes the jumps up to the next check, each at the cost of a mark comparison.
const jumpsAtOnce = 16

// jump adds jumps to the policies for packets that no earlier policy has decided about, and returns packets that a policy has accepted.
func (c *endpointChain) jump(policies []string) {
	accept, pass := c.IptablesMarkAccept, c.IptablesMarkPass
	c.rules = slices.Grow(c.rules, len(policies)+len(policies)/jumpsAtOnce+spareRules)
	for some := range slices.Chunk(policies, jumpsAtOnce) {
		for _, policy := range some {
			c.add(unmarked(accept|pass), "", jump(policy))
		}
		if c.kind == untracked {
			c.add(marked(accept), "", act(table.NoTrack))
		}
		c.add(marked(accept), "Return if policy accepted", act(table.Return))
	}
}

// spareRules is the capacity for rules other than those for policies.
const spareRules = 8

func (r *renderer) HostChains(l table.Layer, ep Host) []table.Chain {
	chain := func(prefix string, k kind, allow table.Verb, d Direction, failsafe string) table.Chain {
		c := &endpointChain{renderer: r, kind: k, allow: allow}
		c.body(d, failsafe)
		return table.Chain{Name: IfaceChain(prefix, ep.Iface), Rules: c.rules}
	}
	switch l {
	case table.Filter:
		return []table.Chain{
			chain(r.Own(HostToEndpointPfx), normal, r.filterAllow, ep.To, r.Own(chainFailsafeOut)),
			chain(r.Own(HostFromEndpointPfx), normal, r.filterAllow, ep.From, r.Own(chainFailsafeIn)),
			chain(r.Own(HostToEndpointForwardPfx), forward, r.filterAllow, Direction{Tiers: ep.ForwardTo}, ""),
			chain(r.Own(HostFromEndpointForwardPfx), forward, r.filterAllow, Direction{Tiers: ep.ForwardFrom}, ""),
		}
	case table.Raw:
		return []table.Chain{
			chain(r.Own(HostToEndpointPfx), untracked, table.Accept, ep.To, r.Own(chainFailsafeOut)),
			chain(r.Own(HostFromEndpointPfx), untracked, table.Accept, ep.From, r.Own(chainFailsafeIn)),
		}
	case table.Mangle:
		return []table.Chain{chain(r.Own(HostFromEndpointPfx), preDNAT, r.mangleAllow, ep.From, r.Own(chainFailsafeIn))}
	}
	return nil
}
