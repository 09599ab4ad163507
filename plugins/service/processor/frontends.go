package processor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/service/owners"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// maxFrontends is how many frontends a service may name: a small object can name millions, as addresses times ports.
const maxFrontends = 1 << 14

// Problem is something of a service that is not served as its object says.
type Problem struct {
	Reason  string // one word in CamelCase
	Message string
}

// The reasons.
const (
	ReasonConflict = "FrontendConflict"
	ReasonReserved = "FrontendReserved"
	ReasonTooMany  = "TooManyFrontends"
	ReasonRefused  = "ServiceRefused"
)

// Problems is told what is not served. Its methods must not block.
type Problems interface {
	// Set says what the problems of a service are now; none: it has no problem any more.
	Set(object *model.Service, list []Problem)
	// Delete says that there is no such service.
	Delete(id svcmodel.ID)
}

// owned is what the processor keeps of a service for owners.
type owned struct {
	base     *renderer.ContivService // the service as if it had all frontends that it names
	lost     []renderer.Frontend     // of base, as renderers have been told
	problems []Problem               // as Problems has been told
}

// noteNames takes what a service names now. affected are others of which something has changed by that.
func (p *Processor) noteNames(s *service, base *renderer.ContivService) (affected []svcmodel.ID) {
	if base == nil {
		return p.owners.Delete(s.id)
	}
	return p.owners.Put(owners.ServiceOf(base, s.object.GetUid(), s.object.GetCreated()))
}

// yield makes services give up what they have lost. They do not get anything before settle.
func (p *Processor) yield(ids []svcmodel.ID) error {
	var errs []error
	for _, id := range ids {
		s := p.services[id]
		if s == nil || s.value == nil {
			continue
		}
		both := slices.Concat(s.owned.lost, owners.FrontendsOf(p.owners.Lost(id)))
		slices.SortFunc(both, renderer.Frontend.Compare)
		errs = append(errs, p.retell(s, slices.Compact(both)))
	}
	return errors.Join(errs...)
}

// settle gives services what they own now.
func (p *Processor) settle(ids []svcmodel.ID) error {
	var errs []error
	for _, id := range ids {
		s := p.services[id]
		if s == nil || s.value == nil {
			continue
		}
		losses := p.owners.Lost(id)
		errs = append(errs, p.retell(s, owners.FrontendsOf(losses)))
		p.tellProblems(s, problemsOf(losses))
	}
	return errors.Join(errs...)
}

// retell tells renderers of a service of which only its losses have changed.
func (p *Processor) retell(s *service, lost []renderer.Frontend) error {
	if slices.Equal(s.owned.lost, lost) {
		return nil
	}
	old, now := s.value, owners.Without(s.owned.base, lost)
	s.owned.lost, s.value, p.all[s.index] = lost, now, now
	if old.Equal(now) {
		return nil
	}
	others := p.others(s)
	return p.each(func(r renderer.ServiceRendererAPI) error { return r.UpdateService(old, now, others) })
}

// describeChange adds the services that a change of another one has changed.
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

// problemsOf says what a service has lost, a problem for each reason.
func problemsOf(losses []owners.Loss) []Problem {
	var conflicts, reserved []string
	for _, l := range losses {
		if l.Owner == (svcmodel.ID{}) {
			reserved = append(reserved, fmt.Sprintf("%s (%s)", l.Frontend, l.Why))
			continue
		}
		conflicts = append(conflicts, fmt.Sprintf("%s, which service %s has: %s", l.Frontend, l.Owner, l.Why))
	}
	var out []Problem
	if len(conflicts) > 0 {
		out = append(out, Problem{ReasonConflict, "This service is not served at " + listed(conflicts)})
	}
	if len(reserved) > 0 {
		out = append(out, Problem{ReasonReserved, "No service is served at " + listed(reserved)})
	}
	return out
}

// listed joins texts; of more than a few it counts the rest.
func listed(texts []string) string {
	const most = 5
	if more := len(texts) - most; more > 0 {
		texts = append(slices.Clone(texts[:most]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, "; ")
}

// tellOwnProblems tells the problems of a service that has changed itself.
func (p *Processor) tellOwnProblems(s *service, losses []owners.Loss) {
	if s.object == nil {
		if len(s.owned.problems) > 0 && p.cfg.Problems != nil {
			p.cfg.Problems.Delete(s.id)
		}
		s.owned.problems = nil
		return
	}
	list := problemsOf(losses)
	if s.tooMany > 0 {
		list = append(list, Problem{ReasonTooMany, fmt.Sprintf("This service is not served: it names %d frontends, as addresses "+
			"times ports, and may name %d; name fewer addresses or ports", s.tooMany, maxFrontends)})
	}
	p.tellProblems(s, list)
}

func (p *Processor) tellProblems(s *service, list []Problem) {
	if slices.Equal(s.owned.problems, list) {
		return
	}
	s.owned.problems = list
	if p.cfg.Problems != nil && s.object != nil {
		p.cfg.Problems.Set(s.object, list)
	}
}

// Lost counts the frontends that services name and do not have.
func (p *Processor) Lost() (n int) {
	for _, s := range p.rendered {
		n += len(s.owned.lost)
	}
	return n
}
