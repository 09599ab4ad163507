package compiler

import (
	"cmp"
	"reflect"
	"slices"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/policy/model"
)

// policy is a NetworkPolicy or a ClusterNetworkPolicy.
type policy struct {
	id       model.PolicyID
	def      *definition // nil: deleted
	subject  *choice     // the endpoints that it selects
	always   bool        // its sets are compiled even if it selects no endpoint
	stale    bool        // made was not compiled from def
	changed  bool        // out may differ from made
	reported bool
	made     model.Policy // with all rules, whatever the size of its sets
	out      model.Policy
	sets     []*set
	large    []string // the meanings of those of its sets that are over their limit
}

// definition is the content of a policy object of either kind.
type definition struct {
	// The selector of the pods, and that of their namespaces; nil means the namespace of the policy.
	pods, namespaces *selector
	// Whether the policy applies to a direction at all.
	ingress, egress           bool
	ingressRules, egressRules []*kube.PolicyRule
	priority                  uint32 // within its tier; the lower number comes first
}

// SetPolicy adds or changes a NetworkPolicy; nil removes it.
func (c *Compiler) SetPolicy(namespace, name string, obj *kube.Policy) {
	id := model.PolicyID{Kind: model.KindNetworkPolicy, Namespace: namespace, Name: name}
	if obj == nil {
		c.setPolicy(id, nil)
		return
	}
	var r reader
	c.setPolicy(id, r.policy(obj))
}

// SetClusterPolicy adds or changes a ClusterNetworkPolicy; nil removes it. When an object changes its tier, it becomes another policy.
func (c *Compiler) SetClusterPolicy(name string, obj *kube.ClusterPolicy) {
	r := reader{cluster: true}
	is, def := r.clusterPolicy(obj)
	for tier, kind := range map[kube.ClusterPolicy_Tier]string{
		kube.ClusterPolicy_ADMIN: model.KindAdminPolicy, kube.ClusterPolicy_BASELINE: model.KindBaselinePolicy,
	} {
		id := model.PolicyID{Kind: kind, Name: name}
		if obj == nil || is != tier {
			c.setPolicy(id, nil)
			continue
		}
		c.setPolicy(id, def)
	}
}

func (c *Compiler) setPolicy(id model.PolicyID, def *definition) {
	p := c.policies[id]
	if p == nil {
		if def == nil {
			return
		}
		p = &policy{id: id, always: c.all}
		c.policies[id] = p
	}
	c.touchSubject(p)
	if p.subject != nil {
		p.subject.policies = without(p.subject.policies, p)
	}
	before := p.subject
	p.def, p.stale, p.subject = def, true, nil
	if def != nil {
		p.subject = c.locals.choose(id.Namespace, def.namespaces, def.pods)
		p.subject.policies = append(p.subject.policies, p)
	}
	if before != nil {
		c.locals.release(before)
	}
	c.touchSubject(p)
	c.dirtyPolicies[p] = struct{}{}
}

func (c *Compiler) touchSubject(p *policy) {
	if p.subject == nil {
		return
	}
	for q := range p.subject.pods.all() {
		if e := c.endpoints[q.id]; e != nil {
			c.dirtyEndpoints[e] = struct{}{}
		}
	}
}

// direction returns the policies that select a pod and apply to a direction; applies reports whether a policy applies to the direction.
func direction(p *pod, applies func(*definition) bool) model.Direction {
	var list []*policy
	for _, ch := range p.locals {
		for _, pol := range ch.policies {
			if applies(pol.def) {
				list = append(list, pol)
			}
		}
	}
	d := model.Direction{Default: model.Allow}
	if len(list) == 0 {
		return d
	}
	slices.SortFunc(list, func(a, b *policy) int { return cmp.Or(cmp.Compare(a.def.priority, b.def.priority), a.id.Compare(b.id)) })
	for _, t := range model.Tiers() {
		for _, pol := range list {
			if model.TierOf(pol.id.Kind) == t.Name {
				t.Policies = append(t.Policies, pol.id)
			}
		}
		if len(t.Policies) > 0 {
			d.Tiers = append(d.Tiers, t)
		}
	}
	return d
}

func (c *Compiler) endpoint(e *endpoint) model.Endpoint {
	p := c.pods[e.ID]
	if p == nil || !p.local || !c.hasLabels(e.ID.Namespace) {
		return model.Closed(e.ID)
	}
	return model.Endpoint{ID: e.ID, Ingress: direction(p, func(d *definition) bool { return d.ingress }),
		Egress: direction(p, func(d *definition) bool { return d.egress })}
}

func (c *Compiler) flushPolicy(p *policy, out *model.Change) {
	if !p.renders() {
		if p.reported {
			out.PoliciesGone = append(out.PoliciesGone, p.id)
		}
		p.out, p.reported = model.Policy{}, false
		if p.def == nil && c.policies[p.id] == p {
			delete(c.policies, p.id)
		}
	} else if p.changed {
		closed := closeLarge(p)
		if !p.reported || !reflect.DeepEqual(closed, p.out) {
			out.Policies = append(out.Policies, closed)
		}
		p.out, p.reported = closed, true
	}
	p.changed = false
	c.reportLarge(p)
}

// renders reports whether the policy is in the output: it selects a pod of this node, or all policies are compiled.
func (p *policy) renders() bool { return p.def != nil && (p.always || p.subject.pods.len() > 0) }

// rebuild compiles the rules of a policy and the sets to which they refer.
func (c *Compiler) rebuild(p *policy) {
	before := p.sets
	switch {
	case !p.renders():
		p.sets, p.made, p.stale = nil, model.Policy{}, true
	case p.stale:
		b := builder{Compiler: c, namespace: p.id.Namespace, subject: p.def}
		p.made = b.policy(p.id)
		p.sets, p.stale, p.changed = b.sets, false, true
	default:
		return
	}
	for _, s := range before {
		c.drop(s)
	}
}
