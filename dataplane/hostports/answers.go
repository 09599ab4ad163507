package hostports

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	// answerMark is on answers to clients that came by way of VPP, and on the kernel's notes of their connections.
	answerMark     = 0x10000000
	answerTable    = 30100
	answerPriority = 1000
)

// answers leads answers of places back to VPP, whatever routes the host has to the clients: a rule for what has the mark, and
// a table with one route.
type answers struct {
	ipv6 bool
	link string
	via  netip.Addr // invalid: no rule and no table
}

func (a answers) family() int {
	if a.ipv6 {
		return netlink.FAMILY_V6
	}
	return netlink.FAMILY_V4
}

// apply writes what is not so already.
func (a answers) apply(h *netlink.Handle) error {
	rules, err := whole(func() ([]netlink.Rule, error) {
		return h.RuleListFiltered(a.family(), &netlink.Rule{Table: answerTable}, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return fmt.Errorf("list the rules of table %d: %w", answerTable, err)
	}
	routes, err := whole(func() ([]netlink.Route, error) {
		return h.RouteListFiltered(a.family(), &netlink.Route{Table: answerTable}, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return fmt.Errorf("list the routes of table %d: %w", answerTable, err)
	}
	if !a.via.IsValid() {
		var errs []error
		for i := range rules {
			errs = append(errs, h.RuleDel(&rules[i]))
		}
		for i := range routes {
			errs = append(errs, h.RouteDel(&routes[i]))
		}
		return errors.Join(errs...)
	}
	if err := a.route(h, routes); err != nil {
		return fmt.Errorf("answers to clients that come by way of VPP: route in table %d: %w", answerTable, err)
	}
	if a.hasRule(rules) {
		return nil
	}
	mask := uint32(answerMark)
	rule := netlink.NewRule()
	rule.Family, rule.Table, rule.Priority, rule.Mark, rule.Mask = a.family(), answerTable, answerPriority, answerMark, &mask
	if err := h.RuleAdd(rule); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("answers to clients that come by way of VPP: rule for table %d: %w", answerTable, err)
	}
	return nil
}

// whole lists again what somebody else changed while it was listed.
func whole[T any](list func() ([]T, error)) (all []T, err error) {
	for range 20 {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return all, err
		}
	}
	return nil, err
}

func (a answers) hasRule(rules []netlink.Rule) bool {
	for _, r := range rules {
		if r.Priority == answerPriority && r.Mark == answerMark && r.Mask != nil && *r.Mask == answerMark {
			return true
		}
	}
	return false
}

func (a answers) route(h *netlink.Handle, have []netlink.Route) error {
	link, err := h.LinkByName(a.link)
	if err != nil {
		return fmt.Errorf("%s: %w", a.link, err)
	}
	for _, r := range have {
		if gw, ok := netip.AddrFromSlice(r.Gw); ok && gw.Unmap() == a.via && r.LinkIndex == link.Attrs().Index {
			return nil
		}
	}
	zero := make(net.IP, a.via.BitLen()/8)
	return h.RouteReplace(&netlink.Route{
		Family: a.family(), Table: answerTable, LinkIndex: link.Attrs().Index, Gw: a.via.AsSlice(),
		Dst: &net.IPNet{IP: zero, Mask: net.CIDRMask(0, a.via.BitLen())},
	})
}

// here applies answers in the process's own namespace.
func here(a answers) error {
	h, err := netlink.NewHandle()
	if err != nil {
		return err
	}
	defer h.Close()
	return errors.Join(a.apply(h), a.forwards())
}

// forwards says whether the host hands on what VPP hands to it. It is for the operator to say so, as every node of Kubernetes
// has to: the kernel takes no more router advertisements then.
func (a answers) forwards() error {
	name, path := "net.ipv4.ip_forward", "/proc/sys/net/ipv4/ip_forward"
	if a.ipv6 {
		name, path = "net.ipv6.conf.all.forwarding", "/proc/sys/net/ipv6/conf/all/forwarding"
	}
	if now, err := os.ReadFile(path); err != nil || !a.via.IsValid() || strings.TrimSpace(string(now)) != "0" {
		return nil // not known to be off
	}
	return fmt.Errorf("addresses with loadBalancerSourceRanges are served by the host, and it does not forward: set %s to 1", name)
}
