package policy

import (
	"maps"
	"slices"

	"contiv.dev/vswitch/internal/infra"
	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/problem"
	"contiv.dev/vswitch/internal/servicelabel"
	"contiv.dev/vswitch/plugins/controller/api"
)

// Problems is where users are told.
type Problems interface {
	Set(o problem.Object, list []problem.Problem, tell bool)
}

// Deps are the dependencies of the plugin.
type Deps struct {
	infra.PluginDeps
	ServiceLabel servicelabel.ReaderAPI
	Problems     Problems
}

// Plugin is the event handler.
type Plugin struct {
	Deps
	nodes  map[string]bool
	known  map[string]problem.Object // policies by key
	warned bool
}

var _ api.EventHandler = (*Plugin)(nil)

// New makes the plugin.
func New(deps Deps) *Plugin {
	return &Plugin{Deps: deps, nodes: map[string]bool{}, known: map[string]problem.Object{}}
}

// String names the handler.
func (p *Plugin) String() string { return "policy" }

// HandlesEvent selects policies, and nodes, of which some write Events.
func (p *Plugin) HandlesEvent(event api.Event) bool {
	if ev, is := event.(*api.KubeStateChange); is {
		return ev.Resource == model.PolicyKeyword || ev.Resource == model.NodeKeyword
	}
	return event.Method().IsResync()
}

// Resync implements api.EventHandler.
func (p *Plugin) Resync(_ api.Event, data api.KubeStateData, _ int, _ api.ResyncOperations) error {
	clear(p.nodes)
	for _, node := range model.Values[*model.Node](data, model.NodeKeyword) {
		p.nodes[node.GetName()] = true
	}
	policies := model.Values[*model.Policy](data, model.PolicyKeyword)
	for key := range p.known {
		if policies[key] == nil {
			p.set(key, nil)
		}
	}
	for key, policy := range policies {
		p.set(key, policy)
	}
	return nil
}

// Update implements api.EventHandler.
func (p *Plugin) Update(event api.Event, _ api.UpdateOperations) (change string, err error) {
	ev, is := event.(*api.KubeStateChange)
	switch {
	case !is:
	case ev.Resource == model.NodeKeyword:
		prev, next := model.Change[*model.Node](ev)
		delete(p.nodes, prev.GetName())
		if next != nil {
			p.nodes[next.GetName()] = true
		}
	case ev.Resource == model.PolicyKeyword:
		_, next := model.Change[*model.Policy](ev)
		p.set(ev.Key, next)
	}
	return "", nil
}

// Revert implements api.EventHandler: there is nothing to undo.
func (p *Plugin) Revert(api.Event) error { return nil }

// set takes a policy; nil: there is none.
func (p *Plugin) set(key string, policy *model.Policy) {
	before, known := p.known[key]
	if policy == nil {
		if delete(p.known, key); known {
			p.Problems.Set(before, nil, false)
		}
		return
	}
	o := problem.Object{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy", Namespace: policy.GetNamespace(),
		Name: policy.GetName(), UID: policy.GetUid()}
	if known && before == o {
		return
	}
	if known { // made anew: its Event is another one
		p.Problems.Set(before, nil, false)
	}
	p.known[key] = o
	own := p.ServiceLabel.GetAgentLabel()
	p.Problems.Set(o, []problem.Problem{{Reason: "NotEnforced", Message: "contiv does not enforce NetworkPolicy: the pods that " +
		"this policy selects accept and send what it forbids"}}, problem.Tells(own, slices.Collect(maps.Keys(p.nodes)), o))
	if !p.warned {
		p.warned = true
		p.Logger().Warn("NetworkPolicy objects are not enforced: pods accept and send what these forbid. More of them are not "+
			"logged; the metric contiv_object_problems counts them", "policy", o.Namespace+"/"+o.Name)
	}
}
