package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/rtnl"
	"contiv.dev/vswitch/internal/nsdo"
)

// kernel is the part of rtnetlink that tunnels need.
type kernel interface {
	// Link finds a link by its name; found is false if there is none.
	Link(name string) (l rtnl.Link, found bool, err error)
	Links() ([]rtnl.Link, error)
	Addresses(index int) ([]rtnl.Address, error)    // 0: of all links
	Neighbours(index int) ([]rtnl.Neighbour, error) // of both families
	Forwarding(index int) ([]rtnl.Neighbour, error)
	// Do carries out requests in order, each whether or not others fail; failed is nil or has an entry per request.
	Do(ctx context.Context, b *rtnl.Batch) (failed []error, err error)
	Close()
}

// socket is the kernel of a namespace.
type socket struct {
	*rtnl.Conn
	batch rtnl.Batch
}

func openSocket(ns *nsdo.Namespace, timeout time.Duration) (kernel, error) {
	conn, err := rtnl.Dial(ns, unix.NETLINK_ROUTE, timeout)
	if err != nil {
		return nil, err
	}
	return &socket{Conn: conn}, nil
}

func (s *socket) Link(name string) (l rtnl.Link, found bool, err error) {
	s.batch.Reset()
	s.batch.GetLink(name)
	err = s.Get(&s.batch, func(payload []byte) { l, found = rtnl.ParseLink(payload) })
	if errors.Is(err, unix.ENODEV) {
		return rtnl.Link{}, false, nil
	}
	if err != nil {
		return rtnl.Link{}, false, fmt.Errorf("look for link %s: %w", name, err)
	}
	return l, found, nil
}

func (s *socket) Links() ([]rtnl.Link, error) {
	s.batch.Reset()
	s.batch.GetLinks()
	list, err := rtnl.List(s.Conn, &s.batch, rtnl.ParseLink)
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	return list, nil
}

func (s *socket) Addresses(index int) ([]rtnl.Address, error) {
	s.batch.Reset()
	s.batch.GetAddresses(index)
	list, err := rtnl.List(s.Conn, &s.batch, rtnl.ParseAddress)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	return list, nil
}

func (s *socket) Neighbours(index int) ([]rtnl.Neighbour, error) {
	var out []rtnl.Neighbour
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		s.batch.Reset()
		s.batch.GetNeighbours(family, index)
		list, err := rtnl.List(s.Conn, &s.batch, neighbourOf(index))
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

func (s *socket) Forwarding(index int) ([]rtnl.Neighbour, error) {
	s.batch.Reset()
	s.batch.GetForwarding(index)
	list, err := rtnl.List(s.Conn, &s.batch, neighbourOf(index))
	if err != nil {
		return nil, fmt.Errorf("list forwarding entries: %w", err)
	}
	return list, nil
}

// neighbourOf leaves out what kernels that do not filter list of other links.
func neighbourOf(index int) func([]byte) (rtnl.Neighbour, bool) {
	return func(payload []byte) (rtnl.Neighbour, bool) {
		n, ok := rtnl.ParseNeighbour(payload)
		return n, ok && n.Index == index
	}
}

// one carries out the single request that fill makes.
func one(ctx context.Context, k kernel, fill func(b *rtnl.Batch)) error {
	var b rtnl.Batch
	fill(&b)
	failed, err := k.Do(ctx, &b)
	if err == nil && failed != nil {
		err = failed[0]
	}
	return err
}

// setAddresses makes a link have exactly these addresses. Link-local ones of IPv6, which the kernel makes, are left.
func setAddresses(ctx context.Context, k kernel, l rtnl.Link, want []netip.Prefix) error {
	all, err := k.Addresses(l.Index)
	if err != nil {
		return err
	}
	missing := map[netip.Prefix]bool{}
	for _, p := range want {
		missing[p] = true
	}
	var b rtnl.Batch
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
		if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) { // it went by itself
			return fmt.Errorf("set the addresses of link %s to %v: %w", l.Name, want, err)
		}
	}
	return nil
}
