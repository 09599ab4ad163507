package intdataplane

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/driver/epstate"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/internal/ipaddr"
)

// workload is a workload endpoint, restricted to one family.
type workload struct {
	id       epstate.WorkloadID
	iface    string
	active   bool
	mac      net.HardwareAddr
	nets     []netip.Prefix // its addresses
	spoof    []netip.Prefix // further prefixes that it may send from
	floating []netip.Addr
	tiers    []*proto.TierInfo
	profiles []string
	// fault is the reason why the endpoint cannot be programmed. The endpoint then gets chains that drop everything, and no routes.
	fault error
	// stray means that the interface cannot belong to a workload, so there are no chains either.
	stray bool
}

func newWorkload(f table.Family, c rules.Config, msg *proto.WorkloadEndpointUpdate) *workload {
	ep := msg.GetEndpoint()
	w := &workload{id: epstate.WorkloadIDOf(msg.GetId()), iface: ep.GetName(), active: ep.GetState() == "active",
		tiers: ep.GetTiers(), profiles: ep.GetProfileIds()}
	if !rules.IfaceNameOK(w.iface) {
		w.stray, w.fault = true, fmt.Errorf("interface %q: not a name that the kernel takes", w.iface)
		return w
	}
	if !c.IsWorkloadIface(w.iface) {
		w.stray = true
		w.fault = fmt.Errorf("interface %s: does not begin with any of WorkloadIfacePrefixes %q, so it cannot be protected",
			w.iface, c.WorkloadIfacePrefixes)
		return w
	}
	nets := ep.GetIpv4Nets()
	if f == table.IPv6 {
		nets = ep.GetIpv6Nets()
	}
	var errs [4]error
	w.nets, errs[0] = parseNets(nets, f)
	w.spoof, errs[1] = parseNets(ep.GetAllowSpoofedSourcePrefixes(), 0)
	w.floating, errs[2] = externalAddrs(natInfos(ep, f), f)
	if ep.GetMac() != "" {
		w.mac, errs[3] = net.ParseMAC(ep.GetMac())
	}
	w.fault = errors.Join(errs[:]...)
	return w
}

// parseNets parses prefixes, which must be of family f unless f is 0.
func parseNets(texts []string, f table.Family) ([]netip.Prefix, error) {
	var nets []netip.Prefix
	for _, text := range texts {
		p, err := rules.ParseNet(text)
		if err != nil {
			return nil, fmt.Errorf("net %q: %w", text, err)
		}
		if f != 0 && familyOf(p.Addr()) != f {
			return nil, fmt.Errorf("net %q is not IPv%d", text, f)
		}
		nets = append(nets, p)
	}
	return nets, nil
}

func natInfos(ep *proto.WorkloadEndpoint, f table.Family) []*proto.NatInfo {
	if f == table.IPv6 {
		return ep.GetIpv6Nat()
	}
	return ep.GetIpv4Nat()
}

func externalAddrs(nats []*proto.NatInfo, f table.Family) ([]netip.Addr, error) {
	var addrs []netip.Addr
	for _, nat := range nats {
		a, err := parseAddr(nat.GetExtIp(), f)
		if err != nil {
			return nil, fmt.Errorf("floating IP: %w", err)
		}
		addrs = append(addrs, a)
	}
	return addrs, nil
}

// parseAddr parses an address, which must be of family f.
func parseAddr(text string, f table.Family) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("address %q: %w", text, err)
	}
	if a = a.Unmap(); familyOf(a) != f || a.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("address %q is not IPv%d", text, f)
	}
	return a, nil
}

// routes returns the routes to the workload's own addresses and its floating IPs.
func (w *workload) routes() []routeTarget {
	if !w.up() {
		return nil
	}
	var targets []routeTarget
	for _, p := range w.nets {
		targets = append(targets, routeTarget{CIDR: p, Iface: w.iface, MAC: w.mac})
	}
	for _, a := range w.floating {
		targets = append(targets, routeTarget{CIDR: ipaddr.HostPrefix(a), Iface: w.iface, MAC: w.mac})
	}
	return targets
}

func (w *workload) up() bool { return w.active && w.fault == nil }

// chains returns the workload to render, and the chains that it refers to.
func (w *workload) chains(own func(felix string) string) (rules.Workload, []chainRef) {
	ep := rules.Workload{Iface: w.iface, Up: w.up(), Sources: slices.Concat(w.nets, w.spoof),
		Spoof: w.spoof}
	if !ep.Up {
		return ep, nil
	}
	var refs []chainRef
	ep.To, refs = direction(own, table.Filter, w.tiers, w.profiles, true, refs)
	ep.From, refs = direction(own, table.Filter, w.tiers, w.profiles, false, refs)
	return ep, refs
}

// direction translates the tiers and profiles of one direction. Inbound are packets to a workload, or from outside into the node. It adds
// the chains to refs.
func direction(own func(felix string) string, l table.Layer, tiers []*proto.TierInfo, profiles []string, inbound bool,
	refs []chainRef) (rules.Direction, []chainRef) {
	var d rules.Direction
	for _, tier := range tiers {
		names := tier.GetEgressPolicies()
		if inbound {
			names = tier.GetIngressPolicies()
		}
		t := rules.Tier{Name: tier.GetName(), PassAtEnd: strings.EqualFold(tier.GetDefaultAction(), "pass")}
		for _, name := range names {
			key := policyKey{Tier: cmp.Or(tier.GetName(), rules.DefaultTier), Name: name}
			list := ruleList{Policy: key, Inbound: inbound}
			chain := list.chain(own)
			t.Policies = append(t.Policies, chain)
			refs = append(refs, chainRef{l, list, chain})
		}
		d.Tiers = append(d.Tiers, t)
	}
	for _, name := range profiles {
		list := ruleList{Profile: true, Policy: policyKey{Name: name}, Inbound: inbound}
		chain := list.chain(own)
		d.Profiles = append(d.Profiles, chain)
		refs = append(refs, chainRef{l, list, chain})
	}
	return d, refs
}
