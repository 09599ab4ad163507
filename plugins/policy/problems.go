package policy

import (
	"log/slog"
	"maps"
	"slices"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/problem"
	"contiv.dev/vswitch/internal/servicelabel"
)

// problems tells users what of a policy is not enforced as it was written.
type problems struct {
	label    servicelabel.ReaderAPI
	to       Problems
	enforced bool // there is a renderer
	log      *slog.Logger

	nodes  map[string]bool
	known  map[string]notice // by key
	warned bool
}

// notice is what users were told of a policy.
type notice struct {
	object problem.Object
	list   []problem.Problem
}

func newProblems(label servicelabel.ReaderAPI, to Problems, enforced bool, log *slog.Logger) problems {
	return problems{label: label, to: to, enforced: enforced, log: log, nodes: map[string]bool{}, known: map[string]notice{}}
}

func (p *problems) resync(nodes map[string]bool, policies map[string]*kube.Policy) {
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

// node takes a change of a node: its name before and after; empty where the node did not or does not exist.
func (p *problems) node(before, now string) {
	delete(p.nodes, before)
	if now != "" {
		p.nodes[now] = true
	}
}

// set takes a policy; nil removes it.
func (p *problems) set(key string, policy *kube.Policy) {
	before := p.known[key]
	now := notice{list: p.of(policy)}
	if policy != nil {
		now.object = problem.Object{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy", Namespace: policy.GetNamespace(),
			Name: policy.GetName(), UID: policy.GetUid()}
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
	if len(before.list) > 0 && before.object != now.object { // another object of the name: its Event is another one
		p.to.Set(before.object, nil, false)
	}
	p.known[key] = now
	own := p.label.GetAgentLabel()
	p.to.Set(now.object, now.list, problem.Tells(own, slices.Collect(maps.Keys(p.nodes)), now.object))
	p.warn(policy)
}

// of lists the problems of a policy.
func (p *problems) of(policy *kube.Policy) []problem.Problem {
	switch {
	case policy == nil:
		return nil
	case !p.enforced:
		return []problem.Problem{{Reason: "NotEnforced", Message: "contiv does not enforce NetworkPolicy: the pods that " +
			"this policy selects accept and send what it forbids"}}
	}
	var list []problem.Problem
	for _, text := range policy.GetProblems() {
		list = append(list, problem.Problem{Reason: "NotUnderstood", Message: text})
	}
	return list
}

func (p *problems) warn(policy *kube.Policy) {
	name := policy.GetNamespace() + "/" + policy.GetName()
	if p.enforced {
		p.log.Warn("a NetworkPolicy is not understood in full; what is not understood allows nothing", "policy", name,
			"problems", policy.GetProblems())
		return
	}
	if !p.warned {
		p.warned = true
		p.log.Warn("NetworkPolicy objects are not enforced: pods accept and send what these forbid. More of them are not "+
			"logged; the metric contiv_object_problems counts them", "policy", name)
	}
}
