package intdataplane

import (
	"fmt"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/driver/epstate"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// condition is a status and, unless the status is up, its reason.
type condition struct{ Status, Reason string }

// StatusText implements epstate.Condition.
func (c condition) StatusText() string { return c.Status }

// conditions returns the conditions of all endpoints of the family, by epstate.WorkloadID and epstate.HostID. broken holds the objects that
// the kernel does not have as desired, under the names that table.Result uses.
func (m *endpointManager) conditions(broken map[string]error) map[any]condition {
	out := make(map[any]condition, len(m.workloads)+len(m.hosts))
	for id, w := range m.workloads {
		out[id] = m.workloadCondition(w, broken)
	}
	ifaces := map[epstate.HostID][]string{}
	for iface, id := range m.resolved {
		ifaces[id] = append(ifaces[id], iface)
	}
	for id := range m.hosts {
		out[id] = m.hostCondition(ifaces[id], broken)
	}
	return out
}

func (m *endpointManager) workloadCondition(w *workload, broken map[string]error) condition {
	if w.fault != nil {
		return condition{epstate.Error, w.fault.Error()}
	}
	if now := m.active[w.iface]; now != w {
		return condition{epstate.Down, fmt.Sprintf("interface %s belongs to endpoint %v, which has the lower id", w.iface, now.id)}
	}
	if err := m.ifaceFaults[w.iface]; err != nil {
		return condition{epstate.Error, err.Error()}
	}
	if reason := m.brokenChains(ownerName(w.iface), table.Filter, m.workloadChainNames(w.iface), broken); reason != "" {
		return condition{epstate.Error, reason}
	}
	if m.routeFailed(w) {
		return condition{epstate.Error, m.routeFault}
	}
	if !w.active {
		return condition{epstate.Down, "admin state is not active"}
	}
	if _, up := m.up[w.iface]; !up {
		return condition{epstate.Down, fmt.Sprintf("interface %s is not up", w.iface)}
	}
	return condition{Status: epstate.Up}
}

// routeFailed reports whether the error about routes names a route of the workload, or a neighbour on its link.
func (m *endpointManager) routeFailed(w *workload) bool {
	if m.routeFault == "" {
		return false
	}
	named := func(t routeTarget) bool { return strings.Contains(m.routeFault, " "+t.CIDR.String()) }
	return slices.ContainsFunc(w.routes(), named) || strings.Contains(m.routeFault, " link "+w.iface+":")
}

// brokenChains returns why an owner's chains are not as desired, or "" if they are.
func (m *endpointManager) brokenChains(owner string, l table.Layer, names []string, broken map[string]error) string {
	if missing := m.policies.missing(owner); len(missing) > 0 {
		return fmt.Sprintf("policies or profiles not known: %s", strings.Join(missing, ", "))
	}
	if len(broken) == 0 {
		return ""
	}
	for _, name := range names {
		if err := broken[objectName(m.family, l, name)]; err != nil {
			return fmt.Sprintf("chain %s: %v", name, err)
		}
	}
	for _, ref := range m.policies.chainsOf(owner) {
		if err := broken[objectName(m.family, ref.Layer, ref.Chain)]; err != nil {
			return fmt.Sprintf("chain %s: %v", ref.Chain, err)
		}
	}
	return ""
}

// objectName returns the name of a chain in table.Result.
func objectName(f table.Family, l table.Layer, chain string) string {
	return fmt.Sprintf("chain v%d %s %s", f, [...]string{"raw", "mangle", "nat", "filter"}[l], chain)
}

func (m *endpointManager) hostCondition(ifaces []string, broken map[string]error) condition {
	if len(ifaces) == 0 {
		return condition{epstate.Error, "no interface of the node has the name or an expected address"}
	}
	result := condition{Status: epstate.Up}
	for _, iface := range ifaces {
		for l, shown := range m.hostShown {
			if reason := m.brokenChains(hostOwnerName(l, iface), l, shown[iface].names, broken); reason != "" {
				return condition{epstate.Error, reason}
			}
		}
		if _, up := m.up[iface]; !up && iface != rules.AllInterfaces {
			result = condition{epstate.Down, fmt.Sprintf("interface %s is not up", iface)}
		}
	}
	return result
}

// statusCombiner merges the families' conditions of each endpoint, and reports changes.
type statusCombiner struct {
	queue func(key, msg any)
	sent  map[any]condition
}

func newStatusCombiner(queue func(key, msg any)) *statusCombiner {
	return &statusCombiner{queue: queue, sent: map[any]condition{}}
}

// apply reports the conditions of all endpoints: one map for each family.
func (c *statusCombiner) apply(families ...map[any]condition) {
	now := map[any]condition{}
	for _, conditions := range families {
		for key, cond := range conditions {
			if had, has := now[key]; !has || epstate.Worse(cond.Status, had.Status) {
				now[key] = condition{Status: cond.Status} // a message has no reason
			}
		}
	}
	epstate.Report(c.queue, c.sent, now)
	c.sent = now
}
