package intdataplane

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"contiv.dev/vswitch/dataplane/driver/epstate"
)

// Dump is the driver's state in readable form, for the agent's REST interface.
type Dump struct {
	Backend   string         `json:"backend"`
	Endpoints []EndpointDump `json:"endpoints"`
	// The objects that do not work, each with its reason.
	Broken        map[string]string `json:"broken,omitempty"`        // objects that the kernel rejected
	Sets          map[string]string `json:"sets,omitempty"`          // sets that are not usable
	Policies      map[string]string `json:"policies,omitempty"`      // rules that block more than the policy specifies
	WaitingRoutes map[string]string `json:"waitingRoutes,omitempty"` // routes with a missing dependency
	Errors        []string          `json:"errors,omitempty"`        // of the last apply
	Writes        int               `json:"writes"`                  // objects written to the kernel so far
}

// EndpointDump is one family's view of an endpoint.
type EndpointDump struct {
	ID        string `json:"id"`
	Kind      string `json:"kind"` // workload, host
	Family    int    `json:"family"`
	Interface string `json:"interface"`
	Status    string `json:"status"`
	Reason    string `json:"reason,omitempty"`
}

// Dump returns the driver's state. It waits until the loop is idle.
func (d *InternalDataplane) Dump() (Dump, error) {
	if err := d.front.Failed(); err != nil {
		return Dump{}, err
	}
	if !d.front.Started() {
		return Dump{}, errors.New("the Linux dataplane is not started")
	}
	var out Dump
	err := d.loop.Inspect(func() { out = d.dump() })
	return out, err
}

// dump returns the driver's state. Only the loop calls it.
func (d *InternalDataplane) dump() Dump {
	out := Dump{Backend: d.backend.Name(), Writes: d.progress.writes,
		Broken: map[string]string{}, Sets: map[string]string{}, Policies: map[string]string{}, WaitingRoutes: map[string]string{}}
	for name, err := range d.progress.broken {
		out.Broken[name] = err.Error()
	}
	for _, err := range d.progress.isolated {
		out.Errors = append(out.Errors, err.Error())
	}
	for _, m := range d.families {
		out.Endpoints = append(out.Endpoints, m.endpoints.dump(d.progress.broken)...)
		for id, reason := range m.ipsets.faults() {
			out.Sets[fmt.Sprintf("v%d %s", m.family, id)] = reason
		}
		for _, list := range m.policies.lists {
			for _, p := range list.problems {
				out.Policies[fmt.Sprintf("v%d %s rule %d", m.family, list.name, p.Rule)] = p.Cause
			}
		}
		for dst, lacks := range m.nodeRoutes.waiting {
			out.WaitingRoutes[dst.String()] = lacks
		}
	}
	slices.SortFunc(out.Endpoints, func(a, b EndpointDump) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Family, b.Family))
	})
	return out
}

func (m *endpointManager) dump(broken map[string]error) []EndpointDump {
	var out []EndpointDump
	for key, cond := range m.conditions(broken) {
		e := EndpointDump{Family: int(m.family), Status: cond.Status, Reason: cond.Reason}
		switch id := key.(type) {
		case epstate.WorkloadID:
			e.Kind, e.ID, e.Interface = "workload", id.String(), m.workloads[id].iface
		case epstate.HostID:
			e.Kind, e.ID, e.Interface = "host", string(id), m.hosts[id].GetName()
		}
		out = append(out, e)
	}
	return out
}
