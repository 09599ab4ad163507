package intdataplane

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"reflect"
	"slices"

	"contiv.dev/vswitch/dataplane/driver/epstate"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// endpointManager maintains one family's chains, dispatch and routes of workload and host endpoints, and the kernel parameters of
// workloads' interfaces. An endpoint that cannot be programmed is blocked and has the status "error"; the others are not affected.
//
// If several workloads claim one interface, the lowest ID gets it and the others wait: a workload that is deleted and created again under
// the same interface name is announced before the old one is removed.
type endpointManager struct {
	family   table.Family
	config   rules.Config
	render   rules.RuleRenderer
	out      chainSink
	routes   routeSink
	sysctls  sysctlSink
	policies *policyManager
	shared   *sharedChains // nil: the policies of workloads are rendered into the workloads' own chains
	log      *slog.Logger

	workloads map[epstate.WorkloadID]*workload
	claims    map[string]map[epstate.WorkloadID]*workload // by interface
	active    map[string]*workload                        // the workload that an interface's chains are for
	touched   map[string]bool                             // interfaces whose claims have changed
	namesNew  bool                                        // the set of interfaces has changed, or nodeJudged has
	// nodeJudged holds the interfaces in active whose policies decide whether the workload may reach the node.
	nodeJudged map[string]struct{}
	spoofers   map[string]rules.Workload // the workloads in active that may spoof, by interface; nil: not rendered yet

	hosts      map[epstate.HostID]*proto.HostEndpoint
	addrs      map[string][]netip.Addr // of the node's own interfaces, by name
	hostsDirty bool
	resolved   map[string]epstate.HostID
	hostShown  map[table.Layer]map[string]shownHost
	hostNamed  map[table.Layer][]string // interfaces in the dispatch chains; absent before the first time

	up          map[string]int // the index of each interface that is up
	unset       map[string]bool
	ifaceFaults map[string]error
	// parametersWritten is the number of parameters that the last apply had to write.
	parametersWritten int

	routeFault string // the routes that the last apply could not write

	marks   *markPool
	markErr error
	marked  bool
}

// shownHost holds what the backend has of a host endpoint.
type shownHost struct {
	host  rules.Host
	names []string
}

type endpointParts struct {
	render   rules.RuleRenderer
	out      chainSink
	routes   routeSink
	sysctls  sysctlSink
	policies *policyManager
	log      *slog.Logger
}

func newEndpointManager(f table.Family, c rules.Config, p endpointParts) *endpointManager {
	m := &endpointManager{
		family: f, config: c, render: p.render, out: p.out, routes: p.routes, sysctls: p.sysctls, policies: p.policies, log: p.log,
		workloads: map[epstate.WorkloadID]*workload{}, claims: map[string]map[epstate.WorkloadID]*workload{}, active: map[string]*workload{},
		touched: map[string]bool{}, namesNew: true, nodeJudged: map[string]struct{}{},
		hosts: map[epstate.HostID]*proto.HostEndpoint{}, addrs: map[string][]netip.Addr{}, hostsDirty: true,
		hostShown: map[table.Layer]map[string]shownHost{table.Raw: {}, table.Mangle: {}, table.Filter: {}},
		hostNamed: map[table.Layer][]string{},
		up:        map[string]int{}, unset: map[string]bool{}, ifaceFaults: map[string]error{},
		marks: newMarkPool(c.IptablesMarkEndpoint, c.IptablesMarkNonCaliEndpoint),
	}
	if c.SharePolicies && !c.KubeIPVSSupportEnabled {
		m.shared = newSharedChains(f, p.render, p.out)
	}
	return m
}

// OnUpdate takes updates and removals of endpoints, and the state and addresses of interfaces.
func (m *endpointManager) OnUpdate(msg any) {
	switch msg := msg.(type) {
	case *proto.WorkloadEndpointUpdate:
		m.setWorkload(epstate.WorkloadIDOf(msg.GetId()), newWorkload(m.family, m.config, msg))
	case *proto.WorkloadEndpointRemove:
		m.setWorkload(epstate.WorkloadIDOf(msg.GetId()), nil)
	case *proto.HostEndpointUpdate:
		m.hosts[epstate.HostID(msg.GetId().GetEndpointId())] = msg.GetEndpoint()
		m.hostsDirty = true
	case *proto.HostEndpointRemove:
		delete(m.hosts, epstate.HostID(msg.GetId().GetEndpointId()))
		m.hostsDirty = true
	case *ifaceState:
		m.ifaceChanged(msg)
	case *ifaceAddrs:
		if !m.config.IsWorkloadIface(msg.Name) {
			m.addrsChanged(msg)
		}
	}
}

func (m *endpointManager) addrsChanged(msg *ifaceAddrs) {
	if msg.Addrs == nil {
		delete(m.addrs, msg.Name)
	} else {
		var list []netip.Addr
		for _, a := range msg.Addrs {
			list = append(list, a.WithZone("").Unmap())
		}
		m.addrs[msg.Name] = list
	}
	m.hostsDirty = true
}

// setWorkload replaces an endpoint; w nil removes it.
func (m *endpointManager) setWorkload(id epstate.WorkloadID, w *workload) {
	old := m.workloads[id]
	if old == nil && w == nil {
		m.log.Warn("removal of an endpoint that is not known is ignored", "endpoint", id)
		return
	}
	if old != nil && !old.stray {
		m.touched[old.iface] = true
		if delete(m.claims[old.iface], id); len(m.claims[old.iface]) == 0 {
			delete(m.claims, old.iface)
		}
	}
	if w == nil {
		delete(m.workloads, id)
		return
	}
	m.workloads[id] = w
	if _, up := m.up[w.iface]; up && old != nil && len(old.nets) == 0 && len(w.nets) > 0 {
		m.unset[w.iface] = true // without addresses the interface may have lacked IPv6 parameters
	}
	if w.fault != nil {
		m.log.Error("endpoint cannot be programmed", "endpoint", id, "family", int(m.family), "error", w.fault)
	}
	if w.stray {
		return
	}
	m.touched[w.iface] = true
	if m.claims[w.iface] == nil {
		m.claims[w.iface] = map[epstate.WorkloadID]*workload{}
	}
	m.claims[w.iface][id] = w
}

// owner returns the endpoint that an interface belongs to, nil if there is none.
func (m *endpointManager) owner(iface string) *workload {
	var best *workload
	for _, w := range m.claims[iface] {
		if best == nil || w.id.Compare(best.id) < 0 {
			best = w
		}
	}
	return best
}

// CompleteDeferredWork updates chains and routes to match the endpoints, and then the policies' chains.
func (m *endpointManager) CompleteDeferredWork() error {
	for _, iface := range slices.Sorted(maps.Keys(m.touched)) {
		m.program(iface)
	}
	if len(m.touched) > 0 || m.spoofers == nil {
		m.programReversePath()
	}
	clear(m.touched)
	if m.hostsDirty {
		m.programHosts()
		m.hostsDirty = false
	}
	m.programMarks()
	if m.namesNew {
		for _, d := range m.render.WorkloadDispatch(slices.Sorted(maps.Keys(m.active)), slices.Sorted(maps.Keys(m.nodeJudged))) {
			m.out.SetDispatch(m.family, table.Filter, d)
		}
		m.namesNew = false
	}
	if m.shared != nil {
		m.shared.complete()
	}
	return errors.Join(m.markErr, m.policies.CompleteDeferredWork())
}

// programReversePath renders the reverse path check again if the set of workloads that may spoof has changed.
func (m *endpointManager) programReversePath() {
	spoofers := map[string]rules.Workload{}
	for iface, w := range m.active {
		if w.active && w.fault == nil && len(w.spoof) > 0 {
			spoofers[iface] = rules.Workload{Iface: iface, Spoof: w.spoof}
		}
	}
	if m.spoofers != nil && reflect.DeepEqual(m.spoofers, spoofers) {
		return
	}
	m.spoofers = spoofers
	var list []rules.Workload
	for _, iface := range slices.Sorted(maps.Keys(spoofers)) {
		list = append(list, spoofers[iface])
	}
	m.out.SetChains(m.family, table.Raw, m.render.ReversePath(m.family, list))
}

func ownerName(iface string) string  { return "workload " + iface }
func routeClass(iface string) string { return "ep/" + iface }

func (m *endpointManager) program(iface string) {
	w, before := m.owner(iface), m.active[iface]
	if w == nil {
		if before != nil {
			m.withdraw(iface)
		}
		return
	}
	ep, refs := w.chains(m.config.Own)
	if _, was := m.nodeJudged[iface]; was != m.config.AppliesToNode(ep.From) {
		if m.namesNew = true; was {
			delete(m.nodeJudged, iface)
		} else {
			m.nodeJudged[iface] = struct{}{}
		}
	}
	m.policies.use(ownerName(iface), refs)
	m.programChains(before, w, ep)
	if targets := w.routes(); len(targets) > 0 {
		m.routes.SetRoutes(routeClass(iface), targets)
	} else {
		m.routes.DeleteClass(routeClass(iface))
	}
	if before == nil {
		m.namesNew, m.marked = true, false
	}
	if before == nil || before.spoofs() != w.spoofs() {
		m.unset[iface] = true
	}
	m.active[iface] = w
}

// programChains writes the chains of a workload. With shared policies, the workload's own chains do not depend on its policies.
func (m *endpointManager) programChains(before, w *workload, ep rules.Workload) {
	if m.shared == nil {
		m.out.SetChains(m.family, table.Filter, m.render.WorkloadChains(m.family, ep)...)
		return
	}
	if before == nil || before.up() != w.up() || !slices.Equal(before.nets, w.nets) || !slices.Equal(before.spoof, w.spoof) {
		m.out.SetChains(m.family, table.Filter, m.render.WorkloadChains(m.family, ep)...)
	}
	m.shared.set(w.iface, &ep)
}

// withdraw removes all objects of an interface.
func (m *endpointManager) withdraw(iface string) {
	m.policies.use(ownerName(iface), nil)
	m.out.DeleteChains(m.family, table.Filter, m.ownChainNames(iface)...)
	if m.shared != nil {
		m.shared.set(iface, nil)
	}
	m.routes.DeleteClass(routeClass(iface))
	delete(m.active, iface)
	delete(m.nodeJudged, iface)
	delete(m.unset, iface)
	delete(m.ifaceFaults, iface)
	m.namesNew, m.marked = true, false
}

// workloadChainNames returns the names of the chains on which a workload depends, without those of policies.
func (m *endpointManager) workloadChainNames(iface string) []string {
	names := m.ownChainNames(iface)
	if m.shared != nil {
		names = append(names, m.shared.to[iface], m.shared.from[iface])
	}
	return names
}

func (m *endpointManager) ownChainNames(iface string) []string {
	return []string{rules.IfaceChain(m.config.Own(rules.WorkloadToEndpointPfx), iface),
		rules.IfaceChain(m.config.Own(rules.WorkloadFromEndpointPfx), iface)}
}

func hostOwnerName(l table.Layer, iface string) string { return fmt.Sprintf("host %d %s", l, iface) }

// programHosts updates the chains of host endpoints where the needed ones differ from those the backend has.
func (m *endpointManager) programHosts() {
	m.resolved = resolveHosts(m.hosts, m.addrs)
	for l, wanted := range hostLayers(m.config.Own, m.hosts, m.resolved) {
		shown := m.hostShown[l]
		for iface, was := range shown {
			if _, stays := wanted[iface]; !stays {
				m.policies.use(hostOwnerName(l, iface), nil)
				m.out.DeleteChains(m.family, l, was.names...)
				delete(shown, iface)
			}
		}
		for iface, w := range wanted {
			if was, is := shown[iface]; is && reflect.DeepEqual(was.host, w.host) {
				continue
			}
			m.policies.use(hostOwnerName(l, iface), w.refs)
			now := shownHost{host: w.host}
			for _, chain := range m.render.HostChains(l, w.host) {
				m.out.SetChains(m.family, l, chain)
				now.names = append(now.names, chain.Name)
			}
			shown[iface] = now
		}
		m.dispatchHosts(l, slices.Sorted(maps.Keys(shown)))
	}
}

func (m *endpointManager) dispatchHosts(l table.Layer, ifaces []string) {
	if before, done := m.hostNamed[l]; done && slices.Equal(before, ifaces) {
		return
	}
	m.hostNamed[l] = ifaces
	for _, d := range m.render.HostDispatch(l, ifaces) {
		m.out.SetDispatch(m.family, l, d)
	}
	if l == table.Filter {
		m.marked = false
	}
}

// programMarks updates the chains of endpoint marks, which kube-ipvs needs.
func (m *endpointManager) programMarks() {
	if m.marked || !m.config.KubeIPVSSupportEnabled {
		return
	}
	m.marked = true
	before := slices.Collect(maps.Keys(m.marks.byName))
	isHost := map[string]bool{}
	names := slices.Collect(maps.Keys(m.active))
	for iface := range m.hostShown[table.Filter] {
		isHost[iface] = true
		names = append(names, iface)
	}
	var marks map[string]uint32
	marks, m.markErr = m.marks.assign(names)
	rendered := m.render.MarkChains(marks, isHost)
	m.out.SetChains(m.family, rendered.Layer, rendered.Chains...)
	for _, d := range rendered.Dispatches {
		m.out.SetDispatch(m.family, rendered.Layer, d)
	}
	for _, iface := range before {
		if _, stays := marks[iface]; !stays {
			m.out.DeleteChains(m.family, table.Filter, rules.IfaceChain(m.config.Own(rules.SetEndpointMarkPfx), iface))
		}
	}
}
