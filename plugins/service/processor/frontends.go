package processor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/internal/problem"
	"contiv.dev/vswitch/plugins/service/owners"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// maxFrontends is the maximum number of frontends that a service may name: a small object can name millions, as addresses times ports.
const maxFrontends = 1 << 14

// maxBackends is the maximum number of backends of a service, as its ports times their endpoints. Each agent has all of them in memory, and a
// user that may change one namespace can name thousands of ports.
const maxBackends = 1 << 17

// The reasons of problems.
const (
	reasonConflict        = "FrontendConflict"
	reasonReserved        = "FrontendReserved"
	reasonTooMany         = "TooManyFrontends"
	reasonTooManyBackends = "TooManyBackends"
	ReasonRefused         = "ServiceRefused"
)

// Problems receives the parts of services that are not served. Its methods must not block.
type Problems interface {
	// Set replaces the problems of a service; an empty list means that it has no problem any more.
	Set(object *model.Service, list []problem.Problem)
	// Delete reports that the service does not exist any more.
	Delete(id svcmodel.ID)
}

// owned is the state of a service that depends on ownership of frontends.
type owned struct {
	base     *renderer.ContivService // the service as if it had all frontends that it names
	lost     []renderer.Frontend     // of base, as sent to renderers
	refusals []string                // why renderers do not serve the service
	problems []problem.Problem       // as reported to Problems
}

// updateFrontends updates the frontends that a service names. affected are the other services that are affected by this.
func (p *Processor) updateFrontends(s *service, base *renderer.ContivService) (affected []svcmodel.ID) {
	if base == nil {
		return p.owners.Delete(s.id)
	}
	return p.owners.Put(owners.ServiceOf(base, s.object.GetUid(), s.object.GetCreated()))
}

// releaseLost removes from services the frontends that they have lost. They get new frontends only in settle.
func (p *Processor) releaseLost(ids []svcmodel.ID) error {
	var errs []error
	for _, id := range ids {
		s := p.services[id]
		if s == nil || s.value == nil {
			continue
		}
		both := slices.Concat(s.owned.lost, owners.FrontendsOf(p.owners.Lost(id)))
		slices.SortFunc(both, renderer.Frontend.Compare)
		errs = append(errs, p.resendLosses(s, slices.Compact(both)))
	}
	return errors.Join(errs...)
}

// settle gives services the frontends that they own now.
func (p *Processor) settle(ids []svcmodel.ID) error {
	var errs []error
	for _, id := range ids {
		s := p.services[id]
		if s == nil || s.value == nil {
			continue
		}
		errs = append(errs, p.resendLosses(s, owners.FrontendsOf(p.owners.Lost(id))))
		p.reportProblems(s)
	}
	return errors.Join(errs...)
}

// resendLosses sends a service to renderers after a change of its losses only.
func (p *Processor) resendLosses(s *service, lost []renderer.Frontend) error {
	if slices.Equal(s.owned.lost, lost) {
		return nil
	}
	old, now := s.value, owners.Without(s.owned.base, lost)
	s.owned.lost = lost
	p.replace(s, now)
	if old.Equal(now) {
		return nil
	}
	others := p.others(s)
	s.owned.refusals = nil
	return p.each(func(r renderer.ServiceRendererAPI) error { return r.UpdateService(old, now, others) })
}

// describeChange adds to a change the services whose frontends it has also changed.
func describeChange(change string, affected []svcmodel.ID) string {
	if len(affected) == 0 {
		return change
	}
	texts := make([]string, 0, min(len(affected), 5))
	for _, id := range affected[:min(len(affected), 5)] {
		texts = append(texts, id.String())
	}
	if more := len(affected) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return joinChanges([]string{change, "frontends of " + strings.Join(texts, ", ")})
}

// problemsOf returns the problems for the losses of a service, one for each reason.
func problemsOf(losses []owners.Loss) []problem.Problem {
	var conflicts, reserved []string
	for _, l := range losses {
		if l.Owner == (svcmodel.ID{}) {
			reserved = append(reserved, fmt.Sprintf("%s (%s)", l.Frontend, l.Why))
			continue
		}
		conflicts = append(conflicts, fmt.Sprintf("%s, which service %s has: %s", l.Frontend, l.Owner, l.Why))
	}
	var out []problem.Problem
	if len(conflicts) > 0 {
		out = append(out, problem.Problem{Reason: reasonConflict, Message: "This service is not served at " + listed(conflicts)})
	}
	if len(reserved) > 0 {
		out = append(out, problem.Problem{Reason: reasonReserved, Message: "No service is served at " + listed(reserved)})
	}
	return out
}

// listed joins the first few texts and counts the rest.
func listed(texts []string) string {
	const most = 5
	if more := len(texts) - most; more > 0 {
		texts = append(slices.Clone(texts[:most]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, "; ")
}

// reportProblems reports the parts of a service that are not served, if they have changed.
func (p *Processor) reportProblems(s *service) {
	if s.object == nil {
		if len(s.owned.problems) > 0 && p.cfg.Problems != nil {
			p.cfg.Problems.Delete(s.id)
		}
		s.owned.problems = nil
		return
	}
	list := problemsOf(p.owners.Lost(s.id))
	if s.tooMany > 0 {
		list = append(list, problem.Problem{Reason: reasonTooMany, Message: fmt.Sprintf("This service is not served: it names %d "+
			"frontends, as addresses times ports, and may name %d; name fewer addresses or ports", s.tooMany, maxFrontends)})
	}
	if s.tooManyBackends > 0 {
		list = append(list, problem.Problem{Reason: reasonTooManyBackends, Message: fmt.Sprintf("This service is not served: it has %d "+
			"backends, as ports times endpoints, and may have %d; name fewer ports or select fewer pods", s.tooManyBackends, maxBackends)})
	}
	if s.badName {
		list = append(list, problem.Problem{Reason: ReasonRefused, Message: fmt.Sprintf("This service is not served: %q is not a name "+
			"that Kubernetes allows", s.id)})
	}
	if len(s.owned.refusals) > 0 {
		list = append(list, problem.Problem{Reason: ReasonRefused, Message: "This service is not served on node " + p.cfg.NodeName + ": " +
			strings.Join(s.owned.refusals, "; ")})
	}
	if slices.Equal(s.owned.problems, list) {
		return
	}
	if s.owned.problems = list; p.cfg.Problems != nil {
		p.cfg.Problems.Set(s.object, list)
	}
}

// Lost returns the number of frontends that services name and do not own.
func (p *Processor) Lost() (n int) {
	for _, s := range p.rendered {
		n += len(s.owned.lost)
	}
	return n
}
