package intdataplane

import (
	"contiv.dev/vswitch/dataplane/driver"
	"contiv.dev/vswitch/dataplane/linux/ifacemonitor"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// familyManagers holds the managers of one family, in the order in which they receive messages.
type familyManagers struct {
	family      table.Family
	ipsets      *ipsetsManager
	hostIPs     *hostIPManager
	policies    *policyManager
	endpoints   *endpointManager
	floatingIPs *floatingIPManager
	masq        *masqManager
	nodeSets    *nodeSetsManager
	nodeRoutes  *nodeRouteManager
}

func newFamilyManagers(f table.Family, c Config, render rules.RuleRenderer, d *InternalDataplane) *familyManagers {
	log, out := d.log, d.backend
	recorded := chainRecorder{out, d.recheck.ruleRecord}
	external, _ := c.externalNets() // validated
	m := &familyManagers{family: f}
	d.recheck.families[f] = m
	m.ipsets = newIPSetsManager(f, c.MaxIPSetSize, out, log)
	m.hostIPs = newHostIPManager(f, c.RulesConfig.IsWorkloadIface, out, log)
	m.policies = newPolicyManager(f, render, recorded, m.ipsets.lookup, log)
	m.ipsets.changed = m.policies.setChanged
	m.endpoints = newEndpointManager(f, c.RulesConfig, endpointParts{render: render, out: recorded, routes: d.routes[f],
		sysctls: d.parts.sysctls, policies: m.policies, log: log})
	m.floatingIPs = newFloatingIPManager(f, render, out, log)
	m.masq = newMasqManager(f, render, out, out, log)
	m.nodeSets = newNodeSetsManager(f, external, out, log)
	m.nodeRoutes = newNodeRouteManager(f, c.RulesConfig, d.routes[f], log)
	return m
}

func (m *familyManagers) managers() []driver.Manager {
	return []driver.Manager{m.ipsets, m.hostIPs, m.policies, m.endpoints, m.floatingIPs, m.masq, m.nodeSets, m.nodeRoutes}
}

func (m *familyManagers) register(loop *driver.Driver) {
	for _, manager := range m.managers() {
		loop.RegisterManager(manager)
	}
}

// layers returns all layers.
func layers() []table.Layer { return []table.Layer{table.Raw, table.Mangle, table.NAT, table.Filter} }

// programStatic writes the chains and hooks that depend on the configuration only.
func (m *familyManagers) programStatic(out table.Backend, render rules.RuleRenderer) {
	for _, l := range layers() {
		out.SetChains(m.family, l, render.StaticChains(m.family, l)...)
		for hook, list := range render.Hooks(l) {
			out.SetHook(m.family, l, hook, list...)
		}
	}
}

// routeLinks passes the state of links, and the removal of routes, to the route tables.
type routeLinks struct{ tables map[table.Family]routeTable }

// OnUpdate takes *ifaceState and *routesRemoved.
func (r routeLinks) OnUpdate(msg any) {
	switch msg := msg.(type) {
	case *ifaceState:
		for _, t := range r.tables {
			t.OnIfaceStateChanged(msg.Name, msg.Index, msg.State == ifacemonitor.StateUp)
		}
	case *routesRemoved:
		for _, dst := range msg.dsts {
			if t := r.tables[familyOf(dst.Addr())]; t != nil {
				t.OnRouteRemoved(dst)
			}
		}
		if msg.lost {
			for _, t := range r.tables {
				t.Resync()
			}
		}
	}
}

// CompleteDeferredWork does nothing.
func (r routeLinks) CompleteDeferredWork() error { return nil }
