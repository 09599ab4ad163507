package tunnel

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

// kernel is the part of rtnetlink that tunnels use.
type kernel interface {
	// Link finds a link by its name; found is false if it does not exist.
	Link(name string) (l netlink.Link, found bool, err error)
	Links() ([]netlink.Link, error)
	Addresses(index int) ([]netlink.Address, error)    // 0: of all links
	Neighbours(index int) ([]netlink.Neighbour, error) // of both families
	Forwarding(index int) ([]netlink.Neighbour, error)
	// Do executes requests in order, each regardless of the others' failures; failed is nil or has an entry per request.
	Do(ctx context.Context, b *netlink.Batch) (failed []error, err error)
	Close()
}

// socket implements kernel for a network namespace.
type socket struct {
	*netlink.Conn
	batch netlink.Batch
}

func openSocket(ns *nsdo.Namespace, timeout time.Duration) (kernel, error) {
	conn, err := netlink.Dial(ns, unix.NETLINK_ROUTE, timeout)
	if err != nil {
		return nil, err
	}
	return &socket{Conn: conn}, nil
}

func (s *socket) Link(name string) (l netlink.Link, found bool, err error) {
	s.batch.Reset()
	s.batch.GetLink(name)
	err = s.Get(&s.batch, func(payload []byte) { l, found = netlink.ParseLink(payload) })
	if errors.Is(err, unix.ENODEV) {
		return netlink.Link{}, false, nil
	}
	if err != nil {
		return netlink.Link{}, false, fmt.Errorf("look for link %s: %w", name, err)
	}
	return l, found, nil
}

func (s *socket) Links() ([]netlink.Link, error) {
	s.batch.Reset()
	s.batch.GetLinks()
	list, err := netlink.List(s.Conn, &s.batch, netlink.ParseLink)
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	return list, nil
}

func (s *socket) Addresses(index int) ([]netlink.Address, error) {
	s.batch.Reset()
	s.batch.GetAddresses(index)
	list, err := netlink.List(s.Conn, &s.batch, netlink.ParseAddress)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	return list, nil
}

func (s *socket) Neighbours(index int) ([]netlink.Neighbour, error) {
	var out []netlink.Neighbour
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		s.batch.Reset()
		s.batch.GetNeighbours(family, index)
		list, err := netlink.List(s.Conn, &s.batch, neighbourOf(index))
		if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, fmt.Errorf("list neighbours: %w", err)
		}
		out = append(out, list...)
	}
	return out, nil
}

func (s *socket) Forwarding(index int) ([]netlink.Neighbour, error) {
	s.batch.Reset()
	s.batch.GetForwarding(index)
	list, err := netlink.List(s.Conn, &s.batch, neighbourOf(index))
	if err != nil {
		return nil, fmt.Errorf("list forwarding entries: %w", err)
	}
	return list, nil
}

// neighbourOf returns a parser that skips neighbours of other links, which kernels without this filter list.
func neighbourOf(index int) func([]byte) (netlink.Neighbour, bool) {
	return func(payload []byte) (netlink.Neighbour, bool) {
		n, ok := netlink.ParseNeighbour(payload)
		return n, ok && n.Index == index
	}
}

// one executes the single request that fill builds.
func one(ctx context.Context, k kernel, fill func(b *netlink.Batch)) error {
	var b netlink.Batch
	fill(&b)
	failed, err := k.Do(ctx, &b)
	if err == nil && failed != nil {
		err = failed[0]
	}
	return err
}

// setAddresses gives a link exactly these addresses. IPv6 link-local addresses, which the kernel creates, are kept.
func setAddresses(ctx context.Context, k kernel, l netlink.Link, want []netip.Prefix) error {
	all, err := k.Addresses(l.Index)
	if err != nil {
		return err
	}
	missing := map[netip.Prefix]bool{}
	for _, p := range want {
		missing[p] = true
	}
	var b netlink.Batch
	for _, a := range all {
		switch {
		case a.Index != l.Index:
		case missing[a.Prefix] && a.Peer == a.Prefix.Addr() && a.Flags&unix.IFA_F_DADFAILED == 0:
			delete(missing, a.Prefix)
		case !a.Prefix.Addr().Is6() || !a.Prefix.Addr().IsLinkLocalUnicast():
			b.DelAddress(a)
		}
	}
	for _, p := range want {
		if missing[p] {
			b.NewAddress(l.Index, p)
		}
	}
	failed, err := k.Do(ctx, &b)
	if err != nil {
		return err
	}
	for _, err := range failed {
		if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) { // it has disappeared meanwhile
			return fmt.Errorf("set the addresses of link %s to %v: %w", l.Name, want, err)
		}
	}
	return nil
}
