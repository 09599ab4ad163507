package conntrack

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/internal/nsdo"
)

const (
	timeout = 10 * time.Second
	// maxFiltered is the maximum number of addresses for which the kernel is requested to filter per address. Each such request scans the
	// whole table, so with more addresses it is cheaper to list the table once.
	maxFiltered = 16
)

// Delete removes all connections that have any of the addresses at either end, before or after translation. A kernel without connection
// tracking has no connections. Delete may be called from any goroutine.
func Delete(ctx context.Context, ns *nsdo.Namespace, addrs ...netip.Addr) error {
	for _, f := range []struct {
		af uint8
		is func(netip.Addr) bool
	}{{unix.AF_INET, netip.Addr.Is4}, {unix.AF_INET6, netip.Addr.Is6}} {
		of := map[netip.Addr]bool{}
		for _, a := range addrs {
			if a = a.Unmap(); f.is(a) {
				of[a] = true
			}
		}
		if len(of) == 0 {
			continue
		}
		if err := deleteFamily(ctx, ns, f.af, of); err != nil {
			return fmt.Errorf("delete conntrack entries of %d addresses in %s: %w", len(of), ns, err)
		}
	}
	return nil
}

func deleteFamily(ctx context.Context, ns *nsdo.Namespace, af uint8, addrs map[netip.Addr]bool) error {
	c, err := netlink.Dial(ns, unix.NETLINK_NETFILTER, timeout)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil // no netfilter, no connections
	}
	if err != nil {
		return err
	}
	defer c.Close()
	// For IPv6 the filter is not reliable: ctnetlink_filter_match_tuple uses the result of ipv6_addr_cmp inverted (seen in Linux 6.18), so
	// a flush removes all connections except those of the address.
	if af == unix.AF_INET && len(addrs) <= maxFiltered {
		err := flush(ctx, c, addrs)
		if err == nil || !isUnsupported(err) {
			return err
		}
	}
	return listAndDelete(ctx, c, af, addrs)
}

// isUnsupported reports whether the kernel cannot filter a flush (before Linux 6.11). It then flushes nothing.
func isUnsupported(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL)
}

// flush makes the kernel remove connections with an IPv4 address as source or destination, in either direction.
func flush(ctx context.Context, c *netlink.Conn, addrs map[netip.Addr]bool) error {
	var b netlink.Batch
	for a := range addrs {
		for _, tuple := range []uint16{ctaTupleOrig, ctaTupleReply} {
			putFlush(&b, tuple, a, true)
			putFlush(&b, tuple, a, false)
		}
	}
	failed, err := c.Do(ctx, &b)
	if err != nil {
		return err
	}
	return firstError(failed)
}

func firstError(failed []error) error {
	for _, err := range failed {
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}

// listAndDelete lists the connections of a family and removes those of the addresses one by one.
func listAndDelete(ctx context.Context, c *netlink.Conn, af uint8, addrs map[netip.Addr]bool) error {
	var list, del netlink.Batch
	putList(&list, af)
	if _, err := c.Dump(&list, func(_ uint16, payload []byte) {
		if e, ok := parseEntry(payload); ok && e.hasAny(addrs) {
			putDelete(&del, af, e)
		}
	}); err != nil {
		return err
	}
	failed, err := c.Do(ctx, &del)
	if err != nil {
		return err
	}
	return firstError(failed) // ENOENT: the connection has ended meanwhile
}
