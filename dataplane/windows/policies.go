package windataplane

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"contiv.dev/vswitch/dataplane/driver/policyname"
	"contiv.dev/vswitch/dataplane/proto"
)

// listKey identifies one direction of a policy, or of a profile (which has no tier).
type listKey struct {
	Profile    bool
	Tier, Name string
	Inbound    bool
}

func (k listKey) String() string {
	if k.Profile {
		return "profile " + k.Name
	}
	return "policy " + k.Tier + "/" + k.Name
}

// compiled is a list of rules in a form that HNS supports.
type compiled struct {
	rules    []rule
	problems []string
}

// policyManager caches policies and profiles, and their compiled lists. A list is compiled when an endpoint needs it.
type policyManager struct {
	families []family
	sets     setLookup
	log      *slog.Logger
	changed  func(listKey) // called for lists whose users must be rendered again

	known    map[listKey][]*proto.Rule
	names    *policyname.Names
	ready    map[listKey]*compiled
	setUsers map[string]map[listKey]bool
}

func newPolicyManager(families []family, sets setLookup, log *slog.Logger) *policyManager {
	return &policyManager{families: families, sets: sets, log: log, changed: func(listKey) {},
		known: map[listKey][]*proto.Rule{}, names: policyname.New(), ready: map[listKey]*compiled{},
		setUsers: map[string]map[listKey]bool{}}
}

// OnUpdate handles *proto.ActivePolicyUpdate, *proto.ActivePolicyRemove, *proto.ActiveProfileUpdate, *proto.ActiveProfileRemove.
func (m *policyManager) OnUpdate(msg any) {
	switch msg := msg.(type) {
	case *proto.ActivePolicyUpdate:
		m.names.Update(msg.GetId(), msg.GetPolicy(), m.named)
	case *proto.ActivePolicyRemove:
		if !m.names.Remove(msg.GetId(), m.named) {
			m.log.Warn("removal of a policy that is not known is ignored", "policy", msg.GetId().GetName())
		}
	case *proto.ActiveProfileUpdate:
		m.setRules(listKey{Profile: true, Name: msg.GetId().GetName()}, msg.GetProfile().GetInboundRules(),
			msg.GetProfile().GetOutboundRules())
	case *proto.ActiveProfileRemove:
		m.removeRules(listKey{Profile: true, Name: msg.GetId().GetName()})
	}
}

// named stores the policy of a tier and a name; nil if several policies have them. An endpoint that refers to it is closed then.
func (m *policyManager) named(name policyname.Key, policy *proto.Policy) {
	key := listKey{Tier: name.Tier, Name: name.Name}
	if policy == nil {
		m.removeRules(key)
		return
	}
	m.setRules(key, policy.GetInboundRules(), policy.GetOutboundRules())
}

// missing describes why a list is not known.
func (m *policyManager) missing(key listKey) string {
	if why := m.names.Ambiguous(policyname.Key{Tier: key.Tier, Name: key.Name}); why != "" && !key.Profile {
		return fmt.Sprintf("%s (%s)", key, why)
	}
	return key.String()
}

// CompleteDeferredWork does nothing: lists are compiled when an endpoint needs them.
func (m *policyManager) CompleteDeferredWork() error { return nil }

func (m *policyManager) setRules(key listKey, inbound, outbound []*proto.Rule) {
	for dir, list := range map[bool][]*proto.Rule{true: inbound, false: outbound} {
		key.Inbound = dir
		m.stale(key)
		m.known[key] = list
	}
}

func (m *policyManager) removeRules(key listKey) {
	for _, key.Inbound = range []bool{true, false} {
		m.stale(key)
		delete(m.known, key)
	}
}

// stale drops the compiled form of a list.
func (m *policyManager) stale(key listKey) {
	for _, id := range setsOf(m.known[key]) {
		if delete(m.setUsers[id], key); len(m.setUsers[id]) == 0 {
			delete(m.setUsers, id)
		}
	}
	delete(m.ready, key)
	m.changed(key)
}

// setChanged drops the compiled lists that need a set.
func (m *policyManager) setChanged(id string) {
	for key := range maps.Clone(m.setUsers[id]) {
		m.stale(key)
	}
}

// list returns the compiled form of a list; false: the list is not known.
func (m *policyManager) list(key listKey) (*compiled, bool) {
	if c := m.ready[key]; c != nil {
		return c, true
	}
	list, known := m.known[key]
	if !known {
		return nil, false
	}
	c := &compiled{}
	c.rules, c.problems = compileRules(list, key.Inbound, m.families, m.sets)
	for _, p := range c.problems {
		m.log.Error("policy rule blocks more than its policy requires", "list", key.String(), "inbound", key.Inbound, "reason", p)
	}
	for _, id := range setsOf(list) {
		if m.setUsers[id] == nil {
			m.setUsers[id] = map[listKey]bool{}
		}
		m.setUsers[id][key] = true
	}
	m.ready[key] = c
	return c, true
}

// setsOf returns the IDs of the sets that rules need.
func setsOf(list []*proto.Rule) []string {
	ids := map[string]bool{}
	for _, r := range list {
		for _, group := range [][]string{r.GetSrcIpSetIds(), r.GetDstIpSetIds(), r.GetNotSrcIpSetIds(), r.GetNotDstIpSetIds(),
			r.GetSrcNamedPortIpSetIds(), r.GetDstNamedPortIpSetIds(), r.GetNotSrcNamedPortIpSetIds(),
			r.GetNotDstNamedPortIpSetIds(), r.GetDstIpPortSetIds()} {
			for _, id := range group {
				ids[id] = true
			}
		}
	}
	return slices.Collect(maps.Keys(ids))
}
