package intdataplane

import (
	"log/slog"
	"net/netip"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/ipaddr"
)

// hostIPManager maintains the set of the node's own addresses: the addresses of all interfaces that do not belong to workloads. Link-local
// addresses are left out: no rule uses them to reach the node, and they appear and disappear with every interface.
type hostIPManager struct {
	family     table.Family
	isWorkload func(iface string) bool
	out        setSink
	log        *slog.Logger

	addrs map[string][]netip.Addr // by interface
	dirty bool
}

func newHostIPManager(f table.Family, isWorkload func(string) bool, out setSink, log *slog.Logger) *hostIPManager {
	return &hostIPManager{family: f, isWorkload: isWorkload, out: out, log: log, addrs: map[string][]netip.Addr{}, dirty: true}
}

// OnUpdate takes *ifaceAddrs.
func (m *hostIPManager) OnUpdate(msg any) {
	update, is := msg.(*ifaceAddrs)
	if !is || m.isWorkload(update.Name) {
		return
	}
	if m.addrs[update.Name] = update.Addrs; update.Addrs == nil {
		delete(m.addrs, update.Name)
	}
	m.dirty = true
}

// CompleteDeferredWork replaces the set; the backend computes the diff.
func (m *hostIPManager) CompleteDeferredWork() error {
	if !m.dirty {
		return nil
	}
	m.dirty = false
	var members []table.Member
	for _, addrs := range m.addrs {
		for _, a := range addrs {
			if a = a.WithZone("").Unmap(); familyOf(a) == m.family && !a.IsLinkLocalUnicast() {
				members = append(members, table.Member{Net: ipaddr.HostPrefix(a)})
			}
		}
	}
	m.out.ReplaceSet(m.family, table.Set{ID: rules.SetThisHost, Type: table.SetIP}, unique(members))
	return nil
}

// unique returns members without duplicates, in no particular order.
func unique(members []table.Member) []table.Member {
	seen := make(map[table.Member]bool, len(members))
	out := members[:0]
	for _, m := range members {
		if !seen[m] {
			seen[m] = true
			out = append(out, m)
		}
	}
	return out
}
