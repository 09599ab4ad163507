package service

import (
	"maps"
	"slices"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/internal/problem"
	"contiv.dev/vswitch/plugins/service/processor"
)

// problems implements processor.Problems: it logs parts of services that are not served, once, and reports them to users.
type problems Plugin

// Set implements processor.Problems.
func (p *problems) Set(object *model.Service, list []problem.Problem) {
	o := objectOf(svcmodel.ID{Namespace: object.GetNamespace(), Name: object.GetName()})
	o.UID = object.GetUid()
	for _, one := range list {
		p.Logger().Warn("a service is not served as specified", "service", o.Namespace+"/"+o.Name, "reason", one.Reason,
			"detail", one.Message)
	}
	if p.Problems == nil {
		return
	}
	// A service that a renderer of this node refuses may be served by other nodes.
	here := slices.ContainsFunc(list, func(one problem.Problem) bool { return one.Reason == processor.ReasonRefused })
	own := p.ServiceLabel.GetAgentLabel()
	p.Problems.Set(o, list, here || problem.WritesEvents(own, slices.Collect(maps.Keys(p.nodes.kube)), o))
}

// Delete implements processor.Problems.
func (p *problems) Delete(id svcmodel.ID) {
	if p.Problems != nil {
		p.Problems.Set(objectOf(id), nil, false)
	}
}

func objectOf(id svcmodel.ID) problem.Object {
	return problem.Object{APIVersion: "v1", Kind: "Service", Namespace: id.Namespace, Name: id.Name}
}
