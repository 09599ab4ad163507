package intdataplane

import (
	"log/slog"
	"maps"
	"slices"

	"contiv.dev/vswitch/dataplane/driver/policyname"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// policyKey names a policy as endpoints refer to it: by tier and name.
type policyKey = policyname.Key

// ruleList is one direction of a policy, or of a profile (which has no tier).
type ruleList struct {
	Profile bool
	Policy  policyKey // of a profile: Name only
	Inbound bool
}

// chain is the list's chain; own says what the chains of Felix's names are called.
func (r ruleList) chain(own func(felix string) string) string {
	switch {
	case r.Profile && r.Inbound:
		return rules.ProfileChainName(own(rules.ProfileInboundPfx), r.Policy.Name)
	case r.Profile:
		return rules.ProfileChainName(own(rules.ProfileOutboundPfx), r.Policy.Name)
	case r.Inbound:
		return rules.PolicyChainName(own(rules.PolicyInboundPfx), r.Policy.Tier, r.Policy.Name)
	}
	return rules.PolicyChainName(own(rules.PolicyOutboundPfx), r.Policy.Tier, r.Policy.Name)
}

// chainRef is a chain that an endpoint's chain jumps to.
type chainRef struct {
	Layer table.Layer
	Rules ruleList
}

// policyManager keeps one family's chains of policies and profiles: those that some endpoint refers to, in the layers in
// which it does. What is referred to and not known is a chain that drops.
type policyManager struct {
	family table.Family
	own    func(felix string) string // rules.Config.Own
	render rules.RuleRenderer
	out    chainSink
	log    *slog.Logger
	lookup func(id string) (table.SetType, bool)

	known map[ruleList][]*proto.Rule
	names *policyname.Names

	uses  map[string][]chainRef // by owner
	count map[chainRef]int
	// layers of each list that is in use
	layers map[ruleList]map[table.Layer]bool

	setUsers map[string]map[ruleList]bool // lists of rules that need a set
	needs    map[ruleList][]string        // which sets a list that is in use needs
	problems map[ruleList][]rules.Problem
	dirty    map[ruleList]bool
}

func newPolicyManager(f table.Family, own func(string) string, render rules.RuleRenderer, out chainSink, lookup func(string) (table.SetType, bool),
	log *slog.Logger) *policyManager {
	return &policyManager{family: f, own: own, render: render, out: out, log: log, lookup: lookup,
		known: map[ruleList][]*proto.Rule{}, names: policyname.New(),
		uses: map[string][]chainRef{}, count: map[chainRef]int{}, layers: map[ruleList]map[table.Layer]bool{},
		setUsers: map[string]map[ruleList]bool{}, needs: map[ruleList][]string{},
		problems: map[ruleList][]rules.Problem{}, dirty: map[ruleList]bool{}}
}

// OnUpdate takes *proto.ActivePolicyUpdate, *proto.ActivePolicyRemove, *proto.ActiveProfileUpdate, *proto.ActiveProfileRemove.
func (m *policyManager) OnUpdate(msg any) {
	switch msg := msg.(type) {
	case *proto.ActivePolicyUpdate:
		m.names.Update(msg.GetId(), msg.GetPolicy(), m.named)
	case *proto.ActivePolicyRemove:
		if !m.names.Remove(msg.GetId(), m.named) {
			m.log.Warn("removal of a policy that is not known is ignored", "policy", msg.GetId().GetName())
		}
	case *proto.ActiveProfileUpdate:
		key := policyKey{Name: msg.GetId().GetName()}
		m.learn(true, key, msg.GetProfile().GetInboundRules(), msg.GetProfile().GetOutboundRules())
	case *proto.ActiveProfileRemove:
		m.forget(true, policyKey{Name: msg.GetId().GetName()})
	}
}

// named takes what a tier and a name stand for: nothing, if several policies have them. Endpoints that refer to it are then closed.
func (m *policyManager) named(key policyKey, policy *proto.Policy) {
	if policy == nil {
		m.forget(false, key)
		return
	}
	m.learn(false, key, policy.GetInboundRules(), policy.GetOutboundRules())
}

func (m *policyManager) learn(profile bool, key policyKey, inbound, outbound []*proto.Rule) {
	in, out := ruleList{profile, key, true}, ruleList{profile, key, false}
	m.known[in], m.known[out] = inbound, outbound
	m.dirty[in], m.dirty[out] = true, true
}

func (m *policyManager) forget(profile bool, key policyKey) {
	for _, inbound := range []bool{true, false} {
		list := ruleList{profile, key, inbound}
		delete(m.known, list)
		m.dirty[list] = true
	}
}

// setChanged re-renders what needs a set.
func (m *policyManager) setChanged(id string) {
	for list := range m.setUsers[id] {
		m.dirty[list] = true
	}
}

// use reports which chains an owner refers to; nil when it is gone. The chains are there after the next CompleteDeferredWork.
func (m *policyManager) use(owner string, refs []chainRef) {
	before := m.uses[owner]
	for _, ref := range refs {
		if m.count[ref]++; m.count[ref] > 1 {
			continue
		}
		if m.layers[ref.Rules] == nil {
			m.layers[ref.Rules] = map[table.Layer]bool{}
		}
		m.layers[ref.Rules][ref.Layer] = true
		m.dirty[ref.Rules] = true
	}
	for _, ref := range before {
		if m.count[ref]--; m.count[ref] > 0 {
			continue
		}
		delete(m.count, ref)
		delete(m.layers[ref.Rules], ref.Layer)
		m.out.DeleteChains(m.family, ref.Layer, ref.Rules.chain(m.own))
		m.dirty[ref.Rules] = true
	}
	if m.uses[owner] = refs; len(refs) == 0 {
		delete(m.uses, owner)
	}
}

// CompleteDeferredWork renders the chains that have changed and are in use.
func (m *policyManager) CompleteDeferredWork() error {
	for list := range m.dirty {
		m.program(list)
	}
	clear(m.dirty)
	return nil
}

func (m *policyManager) program(list ruleList) {
	layers := m.layers[list]
	if len(layers) == 0 {
		delete(m.layers, list)
		delete(m.problems, list)
		m.noteSets(list, nil)
		return
	}
	ruleset, known := m.known[list]
	chain := table.Chain{Name: list.chain(m.own), Rules: []table.Rule{
		{Actions: []table.Action{{Verb: table.Drop}}, Comment: "Not known yet"}}}
	var problems []rules.Problem
	if known {
		chain, problems = m.render.PolicyChain(m.family, list.chain(m.own), ruleset, rules.Env{Set: m.lookup})
	}
	m.noteSets(list, ruleset)
	for layer := range layers {
		m.out.SetChains(m.family, layer, chain)
	}
	m.noteProblems(list, problems)
}

func (m *policyManager) noteProblems(list ruleList, problems []rules.Problem) {
	same := func(a, b rules.Problem) bool { return a.String() == b.String() }
	if !slices.EqualFunc(problems, m.problems[list], same) {
		for _, p := range problems {
			m.log.Error("policy rule blocks more than it was asked to", "policy", list.Policy.Name, "tier", list.Policy.Tier,
				"profile", list.Profile, "inbound", list.Inbound, "family", int(m.family), "problem", p.String())
		}
	}
	if m.problems[list] = problems; len(problems) == 0 {
		delete(m.problems, list)
	}
}

// noteSets records which list of rules needs which set.
func (m *policyManager) noteSets(list ruleList, ruleset []*proto.Rule) {
	for _, id := range m.needs[list] {
		if delete(m.setUsers[id], list); len(m.setUsers[id]) == 0 {
			delete(m.setUsers, id)
		}
	}
	delete(m.needs, list)
	ids := map[string]bool{}
	for _, r := range ruleset {
		for _, group := range [][]string{r.GetSrcIpSetIds(), r.GetDstIpSetIds(), r.GetNotSrcIpSetIds(), r.GetNotDstIpSetIds(),
			r.GetSrcNamedPortIpSetIds(), r.GetDstNamedPortIpSetIds(), r.GetNotSrcNamedPortIpSetIds(),
			r.GetNotDstNamedPortIpSetIds(), r.GetDstIpPortSetIds()} {
			for _, id := range group {
				ids[id] = true
			}
		}
	}
	for id := range ids {
		if m.setUsers[id] == nil {
			m.setUsers[id] = map[ruleList]bool{}
		}
		m.setUsers[id][list] = true
	}
	if len(ids) > 0 {
		m.needs[list] = slices.Collect(maps.Keys(ids))
	}
}

// missing returns the names of the chains that an owner refers to and nothing has announced, or several policies have.
func (m *policyManager) missing(owner string) []string {
	var names []string
	for _, ref := range m.uses[owner] {
		if _, known := m.known[ref.Rules]; known {
			continue
		}
		name := ref.Rules.Policy.Name
		if why := m.names.Ambiguous(ref.Rules.Policy); why != "" && !ref.Rules.Profile {
			name += " (" + why + ")"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// chainsOf returns the chains that an owner refers to, by layer.
func (m *policyManager) chainsOf(owner string) []chainRef { return m.uses[owner] }
