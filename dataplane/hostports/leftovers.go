package hostports

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/vishvananda/netlink"
)

// Objects that agents before November 2026 left on hosts, by their exact names: tables of addresses with source ranges, and of addresses that
// the host's own processes reached by another address, and the rule and routing table for the replies of the former.
const (
	oldPlacesTable    = "contiv-places"
	oldAliasesTable   = "contiv-aliases"
	oldAnswerMark     = 0x10000000
	oldAnswerTable    = 30100
	oldAnswerPriority = 1000
)

// Leftovers removes objects that earlier agents wrote and this one does not use. It must run in the host's network namespace, and may be called
// again. With nft, it also removes the rules of an agent that had only iptables.
func Leftovers(ctx context.Context, nft NFT, iptables IPTables) error {
	var errs []error
	for _, f := range families() {
		if err := removeRules(ctx, iptables, f); err != nil && !errors.Is(err, exec.ErrNotFound) {
			errs = append(errs, err)
		}
	}
	for _, family := range []string{"ip", "ip6"} {
		for _, table := range []string{oldPlacesTable, oldAliasesTable} {
			_, err := nft(ctx, "", "-s", "list", "table", family, table)
			if err == nil {
				err = drop(ctx, nft, family, table)
			} else if isAbsent(err) {
				err = nil
			}
			errs = append(errs, err)
		}
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		errs = append(errs, removeAnswers(family))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove the objects of an earlier agent from the host: %w", err)
	}
	return nil
}

// removeAnswers removes the rule and the route by which replies were sent back to VPP.
func removeAnswers(family int) error {
	rules, err := whole(func() ([]netlink.Rule, error) {
		return netlink.RuleListFiltered(family, &netlink.Rule{Table: oldAnswerTable}, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return fmt.Errorf("list the rules of table %d: %w", oldAnswerTable, err)
	}
	var errs []error
	ours := false
	for i := range rules {
		if r := &rules[i]; r.Priority == oldAnswerPriority && r.Mark == oldAnswerMark {
			ours = true
			errs = append(errs, netlink.RuleDel(r))
		}
	}
	if !ours { // without the rule the table may belong to another program
		return nil
	}
	routes, err := whole(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(family, &netlink.Route{Table: oldAnswerTable}, netlink.RT_FILTER_TABLE)
	})
	errs = append(errs, err)
	for i := range routes {
		errs = append(errs, netlink.RouteDel(&routes[i]))
	}
	return errors.Join(errs...)
}

// whole repeats a listing that another program's changes interrupted.
func whole[T any](list func() ([]T, error)) (all []T, err error) {
	for range 20 {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return all, err
		}
	}
	return nil, err
}
