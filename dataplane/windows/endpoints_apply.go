package windataplane

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/driver/epstate"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/hnscall"
)

// rendered is an endpoint's list, its signature, and the condition of a workload that has it.
type rendered struct {
	acls      []hns.ACL
	signature string
	condition Condition
}

func (m *endpointManager) closed(c Condition) rendered {
	acls := m.render.closed()
	return rendered{acls, signature(acls), c}
}

// desired returns the list that a workload's endpoints should have. In one pass, workloads with the same policies share a list.
func (m *endpointManager) desired(w *workload, made map[string]rendered) rendered {
	switch {
	case w.fault != nil:
		return m.closed(Condition{Status: epstate.Error, Reason: w.fault.Error()})
	case !w.active:
		return m.closed(Condition{Status: epstate.Down, Reason: "admin state is not active"})
	}
	key := fmt.Sprintf("%#v %#v", w.in, w.out)
	r, is := made[key]
	if !is {
		r = m.rendered(flatten(m.policies, w.in, m.node), flatten(m.policies, w.out, m.node))
		made[key] = r
	}
	return r
}

// rendered makes one list of both directions. If that fails, the list is that of a closed endpoint.
func (m *endpointManager) rendered(in, out direction) rendered {
	err := errors.Join(in.err, out.err)
	var acls []hns.ACL
	if err == nil {
		acls, err = m.render.endpoint(in.rules, out.rules, m.node)
	}
	if err != nil {
		return m.closed(Condition{Status: epstate.Error, Reason: "everything is blocked: " + err.Error()})
	}
	r := rendered{acls, signature(acls), Condition{Status: epstate.Up}}
	missing := slices.Compact(slices.Sorted(slices.Values(slices.Concat(in.missing, out.missing))))
	problems := slices.Concat(in.problems, out.problems)
	switch {
	case len(missing) > 0:
		r.condition = Condition{Status: epstate.Error, Reason: "policies or profiles not known: " + strings.Join(missing, ", ")}
	case len(problems) > 0:
		r.condition = Condition{Status: epstate.Error, Reason: strings.Join(problems, "; "), Enforced: true}
	}
	return r
}

// apply writes an endpoint's list unless HNS already has it.
func (m *endpointManager) apply(ep string, desired rendered) error {
	e := m.endpoints[ep]
	if e == nil {
		return fmt.Errorf("HNS endpoint %s: %w", ep, hns.ErrNotFound)
	}
	want := desired.signature
	if e.has == want {
		e.wrote = want
		return nil
	}
	if e.wrote == want {
		if e.has == e.echo {
			return nil
		}
		e.verify = e.has != unsure // another program wrote it, or HNS lists it in another form
	}
	m.writes++
	_, err := hnscall.Do(m.calls, ep, func() (none struct{}, err error) { return none, m.api.ApplyACLs(ep, desired.acls) })
	if err != nil {
		e.has, e.wrote = unsure, unsure
		if errors.Is(err, hns.ErrNotFound) {
			delete(m.endpoints, ep)
			return err
		}
		return fmt.Errorf("HNS endpoint %s: %w: %w", ep, ErrorUpdateFailed, err)
	}
	e.has, e.wrote, e.echo = want, want, ""
	return nil
}

// verifyEchoes reads the lists again that were written twice because HNS did not list them as written. If a list still differs, this is the
// form in which HNS lists it: writing it repeatedly would break connections for no reason.
func (m *endpointManager) verifyEchoes() error {
	wanted := func(e *known) bool { return e.verify }
	if !slices.ContainsFunc(slices.Collect(maps.Values(m.endpoints)), wanted) {
		return nil
	}
	if err := m.list(); err != nil {
		return err
	}
	for _, e := range m.endpoints {
		if e.verify && e.has != e.wrote && e.has != unsure && e.wrote != unsure {
			e.echo = e.has
			m.log.Warn("HNS lists an endpoint's rules in another form than they were written", "endpoint", e.ID)
		}
		e.verify = false
	}
	return nil
}
