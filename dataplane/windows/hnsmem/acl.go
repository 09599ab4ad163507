package hnsmem

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
)

// checkACLs makes the checks of HNS on a list of rules.
func (h *Host) checkACLs(acls []hns.ACL) error {
	if len(acls) == 0 {
		return fmt.Errorf("a list without a rule: %w", hcn.ErrInvalid)
	}
	if len(acls) > hns.MaxRules {
		return fmt.Errorf("%d rules, more than %d: %w", len(acls), hns.MaxRules, hcn.ErrInvalid)
	}
	for i, a := range acls {
		if err := h.checkACL(a); err != nil {
			return fmt.Errorf("rule %d (%s): %w", i, a.ID, errors.Join(err, hcn.ErrInvalid))
		}
	}
	return nil
}

func (h *Host) checkACL(a hns.ACL) error {
	switch {
	case a.Action != hns.Allow && a.Action != hns.Block:
		return fmt.Errorf("action %q", a.Action)
	case a.Direction != hns.In && a.Direction != hns.Out:
		return fmt.Errorf("direction %q", a.Direction)
	case a.RuleType != hns.Switch && a.RuleType != hns.Host:
		return fmt.Errorf("rule type %q", a.RuleType)
	case a.Protocol == 0 || a.Protocol > hns.AnyProtocol:
		return fmt.Errorf("protocol %d", a.Protocol)
	case a.ID != "" && !h.acl.RuleIDs:
		return errors.New("this Windows has no rule IDs")
	}
	return errors.Join(h.checkPriority(a), h.checkAddresses(a), h.checkPorts(a))
}

func (h *Host) checkPriority(a hns.ACL) error {
	if a.RuleType == hns.Host && h.acl.NoHostRulePriority {
		if a.Priority != 0 {
			return fmt.Errorf("priority %d of a host rule", a.Priority)
		}
		return nil
	}
	if a.Priority < 100 || a.Priority > hns.MaxPriority {
		return fmt.Errorf("priority %d is not in 100..%d", a.Priority, hns.MaxPriority)
	}
	return nil
}

func (h *Host) checkAddresses(a hns.ACL) error {
	all := slices.Concat(a.LocalAddresses, a.RemoteAddresses)
	for _, p := range all {
		if !p.IsValid() || p != p.Masked() {
			return fmt.Errorf("address %s", p)
		}
		if p.Addr().Is4() != all[0].Addr().Is4() {
			return fmt.Errorf("addresses of two families: %s and %s", all[0], p)
		}
		if p.Addr().Is6() && !h.features.IPv6DualStack {
			return errors.New("this Windows has no IPv6 for containers")
		}
	}
	limit := hns.MaxAddresses
	if !h.acl.AddressLists {
		limit = 1
	}
	if n := max(len(a.LocalAddresses), len(a.RemoteAddresses)); n > limit {
		return fmt.Errorf("%d addresses, more than %d", n, limit)
	}
	return nil
}

func (h *Host) checkPorts(a hns.ACL) error {
	all := slices.Concat(a.LocalPorts, a.RemotePorts)
	if len(all) > 0 && a.Protocol != 6 && a.Protocol != 17 {
		return fmt.Errorf("ports with protocol %d", a.Protocol)
	}
	limit := hns.MaxPorts
	if !h.acl.PortRanges {
		limit = 1
	}
	if n := max(len(a.LocalPorts), len(a.RemotePorts)); n > limit {
		return fmt.Errorf("%d ports, more than %d", n, limit)
	}
	if !h.acl.PortRanges && slices.ContainsFunc(all, func(r hns.PortRange) bool { return r.First != r.Last }) {
		return errors.New("this Windows has no ranges of ports")
	}
	return nil
}

// Packet is the first packet of a connection, as an endpoint sees it: Local is the endpoint's side.
type Packet struct {
	Protocol              uint8
	Local, Remote         netip.Addr
	LocalPort, RemotePort uint16
}

// Allowed reports whether an endpoint may receive (In) or send (Out) a packet. An error means that the rules do not determine it: two rules of
// equal priority have different actions.
func (h *Host) Allowed(endpointID string, dir hns.Direction, p Packet) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.endpoints[endpointID]
	if e == nil {
		return false, fmt.Errorf("HNS endpoint %s: %w", endpointID, hns.ErrNotFound)
	}
	return Walk(e.acls, dir, p)
}

// Walk does the same as Allowed for a list of rules. It skips rules of type Host: they belong to the host firewall, and the virtual switch,
// which Walk simulates, does not apply them.
func Walk(acls []hns.ACL, dir hns.Direction, p Packet) (bool, error) {
	best, found := hns.ACL{}, false
	any := false
	for _, a := range acls {
		if a.RuleType == hns.Host {
			continue
		}
		any = true
		if a.Direction != dir || !matches(a, p) {
			continue
		}
		switch {
		case !found || a.Priority < best.Priority:
			best, found = a, true
		case a.Priority == best.Priority && a.Action != best.Action:
			return false, fmt.Errorf("rules %s and %s of priority %d disagree about %+v", best.ID, a.ID, a.Priority, p)
		}
	}
	if !found {
		return !any, nil
	}
	return best.Action == hns.Allow, nil
}

func matches(a hns.ACL, p Packet) bool {
	within := func(addr netip.Addr, list []netip.Prefix) bool {
		return len(list) == 0 || slices.ContainsFunc(list, func(n netip.Prefix) bool { return n.Contains(addr) })
	}
	among := func(port uint16, list []hns.PortRange) bool {
		return len(list) == 0 || slices.ContainsFunc(list, func(r hns.PortRange) bool { return r.First <= port && port <= r.Last })
	}
	return (a.Protocol == hns.AnyProtocol || a.Protocol == uint16(p.Protocol)) &&
		within(p.Local, a.LocalAddresses) && within(p.Remote, a.RemoteAddresses) &&
		among(p.LocalPort, a.LocalPorts) && among(p.RemotePort, a.RemotePorts)
}
