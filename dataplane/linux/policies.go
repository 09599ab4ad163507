package intdataplane

import (
	"log/slog"
	"slices"

	"contiv.dev/vswitch/dataplane/driver/policyname"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// policyKey identifies a policy as endpoints refer to it: by tier and name.
type policyKey = policyname.Key

// ruleList identifies one direction of a policy, or of a profile (which has no tier).
type ruleList struct {
	Profile bool
	Policy  policyKey // of a profile: Name only
	Inbound bool
}

// chain returns the name of the list's chain; own maps Felix's chain names to those of this driver.
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
	Chain string // Rules.chain
}

// policyList is the state of one list of rules.
type policyList struct {
	ruleList
	name     string // of its chain, once it is in use
	known    bool
	rules    []*proto.Rule
	users    [table.Filter + 1]int // by layer
	dirty    bool
	needs    []string // the IDs of the sets that its rules use
	problems []rules.Problem
}

func (l *policyList) used() bool { return l.users != [table.Filter + 1]int{} }

// policyManager maintains one family's chains of policies and profiles: those that an endpoint refers to, in the layers in which it does.
// The chain of a policy that is referred to but unknown drops everything.
type policyManager struct {
	family table.Family
	render rules.RuleRenderer
	out    chainSink
	log    *slog.Logger
	lookup func(id string) (table.SetType, bool)

	lists    map[ruleList]*policyList
	dirty    []*policyList
	names    *policyname.Names
	uses     map[string][]chainRef               // by owner
	setUsers map[string]map[*policyList]struct{} // lists of rules that need a set
}

func newPolicyManager(f table.Family, render rules.RuleRenderer, out chainSink, lookup func(string) (table.SetType, bool),
	log *slog.Logger) *policyManager {
	return &policyManager{family: f, render: render, out: out, log: log, lookup: lookup,
		lists: map[ruleList]*policyList{}, names: policyname.New(), uses: map[string][]chainRef{},
		setUsers: map[string]map[*policyList]struct{}{}}
}

// list returns the list with this key and creates it if it does not exist. A list that is neither known nor used is removed by the next
// CompleteDeferredWork.
func (m *policyManager) list(key ruleList) *policyList {
	l := m.lists[key]
	if l == nil {
		l = &policyList{ruleList: key}
		m.lists[key] = l
	}
	return l
}

func (m *policyManager) touch(l *policyList) {
	if !l.dirty {
		l.dirty = true
		m.dirty = append(m.dirty, l)
	}
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
		m.setRules(true, key, msg.GetProfile().GetInboundRules(), msg.GetProfile().GetOutboundRules())
	case *proto.ActiveProfileRemove:
		m.removeRules(true, policyKey{Name: msg.GetId().GetName()})
	}
}

// named sets the policy that a tier and a name stand for. It is nil if several policies have them: endpoints that refer to it then block.
func (m *policyManager) named(key policyKey, policy *proto.Policy) {
	if policy == nil {
		m.removeRules(false, key)
		return
	}
	m.setRules(false, key, policy.GetInboundRules(), policy.GetOutboundRules())
}

func (m *policyManager) setRules(profile bool, key policyKey, inbound, outbound []*proto.Rule) {
	m.setList(ruleList{profile, key, true}, true, inbound)
	m.setList(ruleList{profile, key, false}, true, outbound)
}

func (m *policyManager) removeRules(profile bool, key policyKey) {
	m.setList(ruleList{profile, key, true}, false, nil)
	m.setList(ruleList{profile, key, false}, false, nil)
}

func (m *policyManager) setList(key ruleList, known bool, rules []*proto.Rule) {
	l := m.list(key)
	l.known, l.rules = known, rules
	m.touch(l)
}

// setChanged marks the lists that use a set for rendering.
func (m *policyManager) setChanged(id string) {
	for l := range m.setUsers[id] {
		m.touch(l)
	}
}

// use replaces the chains that an owner refers to; refs is nil if the owner was removed. The chains exist after the next
// CompleteDeferredWork.
func (m *policyManager) use(owner string, refs []chainRef) {
	before := m.uses[owner]
	for _, ref := range refs {
		l := m.list(ref.Rules)
		if l.users[ref.Layer]++; l.users[ref.Layer] == 1 {
			l.name = ref.Chain
			m.touch(l)
		}
	}
	for _, ref := range before {
		l := m.list(ref.Rules)
		if l.users[ref.Layer]--; l.users[ref.Layer] == 0 {
			m.out.DeleteChains(m.family, ref.Layer, ref.Chain)
			m.touch(l)
		}
	}
	if m.uses[owner] = refs; len(refs) == 0 {
		delete(m.uses, owner)
	}
}

// CompleteDeferredWork renders the chains that have changed and are in use.
func (m *policyManager) CompleteDeferredWork() error {
	for _, l := range m.dirty {
		l.dirty = false
		m.program(l)
	}
	m.dirty = nil
	return nil
}

func (m *policyManager) program(l *policyList) {
	if !l.used() {
		m.noteSets(l, nil)
		if l.problems = nil; !l.known {
			delete(m.lists, l.ruleList)
		}
		return
	}
	chain := table.Chain{Name: l.name}
	var problems []rules.Problem
	if l.known {
		chain, problems = m.render.PolicyChain(m.family, l.name, l.rules, rules.Env{Set: m.lookup})
	} else {
		chain.Rules = []table.Rule{{Actions: []table.Action{{Verb: table.Drop}}, Comment: "Not known yet"}}
	}
	m.noteSets(l, l.rules)
	for layer, users := range l.users {
		if users > 0 {
			m.out.SetChains(m.family, table.Layer(layer), chain)
		}
	}
	m.noteProblems(l, problems)
}

func (m *policyManager) noteProblems(l *policyList, problems []rules.Problem) {
	same := func(a, b rules.Problem) bool { return a.String() == b.String() }
	if !slices.EqualFunc(problems, l.problems, same) {
		for _, p := range problems {
			m.log.Error("policy rule blocks more than its policy requires", "policy", l.Policy.Name, "tier", l.Policy.Tier,
				"profile", l.Profile, "inbound", l.Inbound, "family", int(m.family), "reason", p.String())
		}
	}
	l.problems = problems
}

// noteSets records which list of rules needs which set.
func (m *policyManager) noteSets(l *policyList, ruleset []*proto.Rule) {
	for _, id := range l.needs {
		if delete(m.setUsers[id], l); len(m.setUsers[id]) == 0 {
			delete(m.setUsers, id)
		}
	}
	l.needs = nil
	for _, r := range ruleset {
		for _, group := range [...][]string{r.GetSrcIpSetIds(), r.GetDstIpSetIds(), r.GetNotSrcIpSetIds(), r.GetNotDstIpSetIds(),
			r.GetSrcNamedPortIpSetIds(), r.GetDstNamedPortIpSetIds(), r.GetNotSrcNamedPortIpSetIds(),
			r.GetNotDstNamedPortIpSetIds(), r.GetDstIpPortSetIds()} {
			for _, id := range group {
				m.noteSet(l, id)
			}
		}
	}
}

func (m *policyManager) noteSet(l *policyList, id string) {
	users := m.setUsers[id]
	if users == nil {
		users = map[*policyList]struct{}{}
		m.setUsers[id] = users
	}
	if _, noted := users[l]; !noted {
		users[l] = struct{}{}
		l.needs = append(l.needs, id)
	}
}

// missing returns the names of the policies and profiles that an owner refers to and that are unknown, or ambiguous because several
// policies have the name.
func (m *policyManager) missing(owner string) []string {
	var names []string
	for _, ref := range m.uses[owner] {
		if m.lists[ref.Rules].known {
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
