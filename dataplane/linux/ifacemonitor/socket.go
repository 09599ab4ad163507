package ifacemonitor

import (
	"cmp"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/rtnl"
	"contiv.dev/vswitch/internal/nsdo"
)

// socket is the kernel of a namespace.
type socket struct {
	*rtnl.Events
	conn *rtnl.Conn
}

// openSocket subscribes. buffer is how many bytes of notifications the kernel keeps for us.
func openSocket(ns *nsdo.Namespace, buffer int) (*socket, error) {
	events, err := rtnl.Subscribe(ns, buffer, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR)
	if err != nil {
		return nil, err
	}
	conn, err := rtnl.Dial(ns, unix.NETLINK_ROUTE, listTimeout)
	if err != nil {
		events.Close()
		return nil, err
	}
	return &socket{events, conn}, nil
}

// List lists all links by index, and all addresses.
func (s *socket) List() ([]rtnl.Link, []rtnl.Address, error) {
	var b rtnl.Batch
	b.GetLinks()
	links, err := rtnl.List(s.conn, &b, rtnl.ParseLink)
	if err != nil {
		return nil, nil, fmt.Errorf("list links: %w", err)
	}
	b.Reset()
	b.GetAddresses(0)
	addrs, err := rtnl.List(s.conn, &b, rtnl.ParseAddress)
	if err != nil {
		return nil, nil, fmt.Errorf("list addresses: %w", err)
	}
	slices.SortFunc(links, func(x, y rtnl.Link) int { return cmp.Compare(x.Index, y.Index) })
	return links, addrs, nil
}

// Close ends the subscription.
func (s *socket) Close() error {
	s.conn.Close()
	return s.Events.Close()
}
