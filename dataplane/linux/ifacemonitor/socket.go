package ifacemonitor

import (
	"cmp"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/internal/nsdo"
)

// socket is the kernel of a namespace.
type socket struct {
	*netlink.Events
	conn *netlink.Conn
}

// openSocket subscribes. buffer is how many bytes of notifications the kernel keeps for us.
func openSocket(ns *nsdo.Namespace, buffer int) (*socket, error) {
	events, err := netlink.Subscribe(ns, buffer, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR)
	if err != nil {
		return nil, err
	}
	conn, err := netlink.Dial(ns, unix.NETLINK_ROUTE, listTimeout)
	if err != nil {
		events.Close()
		return nil, err
	}
	return &socket{events, conn}, nil
}

// List lists all links by index, and all addresses.
func (s *socket) List() ([]netlink.Link, []netlink.Address, error) {
	var b netlink.Batch
	b.GetLinks()
	links, err := netlink.List(s.conn, &b, netlink.ParseLink)
	if err != nil {
		return nil, nil, fmt.Errorf("list links: %w", err)
	}
	b.Reset()
	b.GetAddresses(0)
	addrs, err := netlink.List(s.conn, &b, netlink.ParseAddress)
	if err != nil {
		return nil, nil, fmt.Errorf("list addresses: %w", err)
	}
	slices.SortFunc(links, func(x, y netlink.Link) int { return cmp.Compare(x.Index, y.Index) })
	return links, addrs, nil
}

// Close ends the subscription.
func (s *socket) Close() error {
	s.conn.Close()
	return s.Events.Close()
}
