package intdataplane

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/linux/ifacemonitor"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// ifaceChanged records which interfaces are up. A workload's interface needs its kernel parameters written when it comes up, or when
// another interface of the same name replaces it.
func (m *endpointManager) ifaceChanged(msg *ifaceState) {
	index, was := m.up[msg.Name]
	if msg.State != ifacemonitor.StateUp {
		delete(m.up, msg.Name)
		delete(m.ifaceFaults, msg.Name)
		return
	}
	m.up[msg.Name] = msg.Index
	if m.active[msg.Name] != nil && (!was || index != msg.Index) {
		m.unset[msg.Name] = true
	}
}

// parameter is a kernel parameter of an interface, below /proc/sys.
type parameter struct{ path, value string }

// parameters returns the kernel parameters that make the interface a gateway for one workload: it answers ARP and neighbour solicitations
// for every address, forwards, and accepts packets only if the route to their source leads back to it, unless the workload may send with
// other sources (spoofs). A workload configures nothing of the node: its router advertisements and redirects are ignored, and the node's
// loopback addresses are not routed to it or from it (agents up to November 2026 had set route_localnet).
func parameters(f table.Family, iface string, spoofs bool) []parameter {
	if f == table.IPv6 {
		conf := "net/ipv6/conf/" + iface + "/"
		return []parameter{
			{conf + "accept_ra", "0"},
			{conf + "autoconf", "0"},
			{conf + "accept_redirects", "0"},
			{conf + "proxy_ndp", "1"},
			{conf + "forwarding", "1"},
		}
	}
	conf := "net/ipv4/conf/" + iface + "/"
	reversePath := strictReversePath
	if spoofs {
		reversePath = noReversePath
	}
	return []parameter{
		{conf + "rp_filter", reversePath},
		{conf + "route_localnet", "0"},
		{conf + "accept_redirects", "0"},
		{"net/ipv4/neigh/" + iface + "/proxy_delay", "0"},
		{conf + "proxy_arp", "1"},
		{conf + "forwarding", "1"},
	}
}

// Values of rp_filter. The kernel uses the greater one of an interface's value and that of "all". On an interface without an address, as
// those of workloads, the loose check is strict.
const (
	noReversePath     = "0"
	strictReversePath = "1"
	looseReversePath  = "2"
)

// spoofs reports whether the workload may send IPv4 packets with sources that are not routed to it.
func (w *workload) spoofs() bool {
	return w != nil && slices.ContainsFunc(w.spoof, func(p netip.Prefix) bool { return p.Addr().Is4() })
}

// resync makes the next apply compare the parameters of all workloads' interfaces with the kernel's.
func (m *endpointManager) resync() {
	for iface := range m.active {
		m.unset[iface] = true
	}
}

// configureInterfaces writes the parameters of the workloads' interfaces that need them. It runs after the rules are written: an interface
// must not forward before it is filtered. Interfaces that fail are retried at the next apply.
func (m *endpointManager) configureInterfaces() error {
	m.parametersWritten = 0
	var errs []error
	for _, iface := range slices.Sorted(maps.Keys(m.unset)) {
		if _, up := m.up[iface]; !up {
			continue
		}
		if err := m.configure(iface); err != nil {
			m.ifaceFaults[iface] = err
			errs = append(errs, fmt.Errorf("interface %s: %w", iface, err))
			continue
		}
		delete(m.unset, iface)
		delete(m.ifaceFaults, iface)
	}
	return errors.Join(errs...)
}

func (m *endpointManager) configure(iface string) error {
	for _, p := range parameters(m.family, iface, m.active[iface].spoofs()) {
		wrote, err := m.sysctls.Ensure(p.path, p.value)
		if wrote {
			m.parametersWritten++
		}
		if errors.Is(err, fs.ErrNotExist) && m.withoutIPv6(iface) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// withoutIPv6 reports whether the interface belongs to a workload without IPv6 addresses. The kernel has no IPv6 on an interface whose MTU
// is less than 1280, and such a workload does not need it.
func (m *endpointManager) withoutIPv6(iface string) bool {
	w := m.active[iface]
	return m.family == table.IPv6 && w != nil && len(w.nets) == 0
}
