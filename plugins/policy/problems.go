package policy

import (
	"log/slog"
	"maps"
	"slices"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/problem"
	"contiv.dev/vswitch/internal/servicelabel"
	"contiv.dev/vswitch/plugins/policy/compiler"
	"contiv.dev/vswitch/plugins/policy/model"
)

// problems reports to users the parts of a policy that are not enforced as written, and the namespaces whose pods are blocked.
type problems struct {
	label       servicelabel.ReaderAPI
	to          Problems
	notEnforced string // the reason why policies have no effect; empty: they have an effect
	log         *slog.Logger

	nodes  map[string]bool
	known  map[string]notice // by key
	warned bool
	large  largeSets
}

// notice holds the problems of a policy that were reported to users.
type notice struct {
	object problem.Object
	list   []problem.Problem
}

func newProblems(label servicelabel.ReaderAPI, to Problems, notEnforced string, log *slog.Logger) problems {
	return problems{label: label, to: to, notEnforced: notEnforced, log: log, nodes: map[string]bool{}, known: map[string]notice{}}
}

// source holds the relevant properties of a policy of either kind.
type source struct {
	object   problem.Object
	problems []string
	// own are problems that agents of other versions may not have: each agent that has them reports them.
	own []string
}

// sourceOf returns the source of a NetworkPolicy; nil gives nil.
func sourceOf(p *kube.Policy) *source {
	if p == nil {
		return nil
	}
	return &source{problem.Object{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy", Namespace: p.GetNamespace(), Name: p.GetName(),
		UID: p.GetUid()}, p.GetProblems(), compiler.NotUnderstood(p)}
}

// sourceOfCluster returns the source of a ClusterNetworkPolicy; nil gives nil.
func sourceOfCluster(p *kube.ClusterPolicy) *source {
	if p == nil {
		return nil
	}
	return &source{problem.Object{APIVersion: "policy.networking.k8s.io/v1alpha2", Kind: clusterKind, Name: p.GetName(), UID: p.GetUid()},
		p.GetProblems(), compiler.NotUnderstoodCluster(p)}
}

// sourceOfNamespace returns the source of a namespace; nil gives nil.
func sourceOfNamespace(ns *kube.Namespace) *source {
	if ns == nil {
		return nil
	}
	return &source{problem.Object{APIVersion: "v1", Kind: namespaceKind, Name: ns.GetName()}, ns.GetProblems(), nil}
}

// Names of kinds: that of policies without a namespace, and that of namespaces.
const (
	clusterKind   = "ClusterNetworkPolicy"
	namespaceKind = "Namespace"
)

func (s *source) String() string {
	return model.PolicyID{Namespace: s.object.Namespace, Name: s.object.Name}.Path()
}

func (p *problems) resync(nodes map[string]bool, policies map[string]*source) {
	p.nodes = nodes
	for key := range p.known {
		if policies[key] == nil {
			p.set(key, nil)
		}
	}
	for key, policy := range policies {
		p.set(key, policy)
	}
}

// node applies a change of a node: its name before and after the change; empty if the node did not or does not exist.
func (p *problems) node(before, now string) {
	delete(p.nodes, before)
	if now != "" {
		p.nodes[now] = true
	}
}

// set updates the problems of a policy; nil removes it.
func (p *problems) set(key string, policy *source) {
	before := p.known[key]
	now := notice{list: p.of(key, policy)}
	if policy != nil {
		now.object = policy.object
	}
	if len(now.list) == 0 {
		if delete(p.known, key); len(before.list) > 0 {
			p.to.Set(before.object, nil, false)
		}
		return
	}
	if before.object == now.object && slices.Equal(before.list, now.list) {
		return
	}
	if len(before.list) > 0 && before.object != now.object { // another object with the same name has its own Event
		p.to.Set(before.object, nil, false)
	}
	p.known[key] = now
	own := p.label.GetAgentLabel()
	each := p.large.meaning[key] != nil || len(policy.own) > 0
	p.to.Set(now.object, now.list, each || problem.WritesEvents(own, slices.Collect(maps.Keys(p.nodes)), now.object))
	p.warn(policy, now.list)
}

// of returns the problems of a policy.
func (p *problems) of(key string, policy *source) []problem.Problem {
	switch {
	case policy == nil, policy.object.Kind == namespaceKind && p.notEnforced != "":
		return nil
	case p.notEnforced != "":
		return []problem.Problem{{Reason: "NotEnforced", Message: p.notEnforced}}
	}
	var list []problem.Problem
	for _, text := range slices.Concat(policy.problems, policy.own) {
		list = append(list, problem.Problem{Reason: "NotUnderstood", Message: text})
	}
	return append(list, p.large.of(key)...)
}

func (p *problems) warn(policy *source, list []problem.Problem) {
	if p.notEnforced == "" {
		var texts []string
		for _, one := range list {
			texts = append(texts, one.Message)
		}
		if policy.object.Kind == namespaceKind {
			p.log.Warn("the labels of a namespace are not known, so all traffic of its pods is blocked", "namespace", policy.object.Name, "problems", texts)
			return
		}
		p.log.Warn("a policy is not enforced as it was written; parts that are not supported allow nothing", "kind", policy.object.Kind,
			"policy", policy.String(), "problems", texts)
		return
	}
	if !p.warned {
		p.warned = true
		p.log.Warn("network policies are not enforced. More of them are not logged; the metric contiv_object_problems counts them",
			"kind", policy.object.Kind, "policy", policy.String(), "reason", p.notEnforced)
	}
}

// reportStatuses calls Statuses: one node of the cluster writes the conditions of all ClusterNetworkPolicies.
func (p *Plugin) reportStatuses() {
	if p.Statuses != nil {
		p.Statuses(problem.First(p.ServiceLabel.GetAgentLabel(), slices.Collect(maps.Keys(p.problems.nodes)), problem.Object{Kind: clusterKind}))
	}
}
