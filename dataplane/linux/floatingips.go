package intdataplane

import (
	"log/slog"
	"maps"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/driver/epstate"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// floatingIPManager renders the floating IPs of the workloads. If several internal addresses claim one external address, the lowest
// internal address gets it. If one internal address has several external ones, its hairpin connections use the lowest.
type floatingIPManager struct {
	family table.Family
	render rules.RuleRenderer
	out    chainSink
	log    *slog.Logger

	wanted map[epstate.WorkloadID][]rules.NATPair
	dirty  bool
}

func newFloatingIPManager(f table.Family, render rules.RuleRenderer, out chainSink, log *slog.Logger) *floatingIPManager {
	return &floatingIPManager{family: f, render: render, out: out, log: log, wanted: map[epstate.WorkloadID][]rules.NATPair{}, dirty: true}
}

// OnUpdate takes *proto.WorkloadEndpointUpdate and *proto.WorkloadEndpointRemove.
func (m *floatingIPManager) OnUpdate(msg any) {
	switch msg := msg.(type) {
	case *proto.WorkloadEndpointUpdate:
		m.setPairs(epstate.WorkloadIDOf(msg.GetId()), m.pairs(msg.GetEndpoint()))
	case *proto.WorkloadEndpointRemove:
		m.setPairs(epstate.WorkloadIDOf(msg.GetId()), nil)
	}
}

func (m *floatingIPManager) setPairs(id epstate.WorkloadID, pairs []rules.NATPair) {
	if slices.Equal(m.wanted[id], pairs) {
		return
	}
	if m.wanted[id] = pairs; len(pairs) == 0 {
		delete(m.wanted, id)
	}
	m.dirty = true
}

func (m *floatingIPManager) pairs(ep *proto.WorkloadEndpoint) []rules.NATPair {
	var pairs []rules.NATPair
	for _, nat := range natInfos(ep, m.family) {
		external, err1 := parseAddr(nat.GetExtIp(), m.family)
		internal, err2 := parseAddr(nat.GetIntIp(), m.family)
		if err1 != nil || err2 != nil {
			m.log.Error("floating IP is ignored", "external", nat.GetExtIp(), "internal", nat.GetIntIp())
			continue
		}
		pairs = append(pairs, rules.NATPair{External: external, Internal: internal})
	}
	return pairs
}

// CompleteDeferredWork renders the two chains again.
func (m *floatingIPManager) CompleteDeferredWork() error {
	if !m.dirty {
		return nil
	}
	m.dirty = false
	internal := map[netip.Addr]netip.Addr{} // keyed by the external address
	for _, pairs := range m.wanted {
		for _, p := range pairs {
			if now, taken := internal[p.External]; !taken || p.Internal.Less(now) {
				internal[p.External] = p.Internal
			}
		}
	}
	external := map[netip.Addr]netip.Addr{} // keyed by the internal address
	var dnat, snat []rules.NATPair
	for _, ext := range slices.SortedFunc(maps.Keys(internal), netip.Addr.Compare) {
		in := internal[ext]
		dnat = append(dnat, rules.NATPair{External: ext, Internal: in})
		if _, has := external[in]; !has {
			external[in] = ext
		}
	}
	for _, in := range slices.SortedFunc(maps.Keys(external), netip.Addr.Compare) {
		snat = append(snat, rules.NATPair{External: external[in], Internal: in})
	}
	m.out.SetChains(m.family, table.NAT, m.render.FloatingIPs(dnat, snat)...)
	return nil
}
