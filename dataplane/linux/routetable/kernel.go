package routetable

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/internal/nsdo"
)

// mac is a hardware address.
type mac [6]byte

// neighKey identifies a neighbour.
type neighKey struct {
	index int
	ip    netip.Addr
}

// verb is the kind of an op.
type verb uint8

const (
	delRoute verb = iota
	delNeigh
	setNeigh
	addRoute     // fails with EEXIST if there is a route with the same destination and metric
	replaceRoute // replaces a route with the same destination and metric
)

// op is one write.
type op struct {
	verb  verb
	route route
	neigh neighKey
	mac   mac
}

// kernel is the part of rtnetlink that a table uses. Listings are of the table's family.
type kernel interface {
	// Routes lists the main table's routes of one protocol and of one link; 0 means all.
	Routes(protocol uint8, index int) ([]route, error)
	// Neighbours lists the permanent neighbours of a protocol on one link, or with index 0 on all links.
	Neighbours(protocol uint8, index int) (map[neighKey]mac, error)
	// Exec executes writes in order, each regardless of the others' failures; failed is nil or has an entry per op. After an err the state
	// is unknown, and the caller must close the kernel.
	Exec(ctx context.Context, protocol uint8, ops []op) (failed []error, err error)
	Close()
}

// socket implements kernel for a network namespace.
type socket struct {
	conn   *netlink.Conn
	family uint8
	batch  netlink.Batch
}

func openSocket(ns *nsdo.Namespace, family uint8, timeout time.Duration) (kernel, error) {
	conn, err := netlink.Dial(ns, unix.NETLINK_ROUTE, timeout)
	if err != nil {
		return nil, err
	}
	return &socket{conn: conn, family: family}, nil
}

func (s *socket) Close() { s.conn.Close() }

func (s *socket) Routes(protocol uint8, index int) ([]route, error) {
	s.batch.Reset()
	listRoutes(&s.batch, s.family, protocol, index)
	routes, err := netlink.List(s.conn, &s.batch, func(payload []byte) (route, bool) {
		r, keep := parseRoute(payload)
		return r, keep && (protocol == 0 || r.protocol == protocol) && (index == 0 || r.index == index)
	})
	if errors.Is(err, unix.ENOENT) { // the kernel has not created the main table yet
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	return routes, nil
}

func (s *socket) Neighbours(protocol uint8, index int) (map[neighKey]mac, error) {
	s.batch.Reset()
	s.batch.GetNeighbours(s.family, index)
	list, err := netlink.List(s.conn, &s.batch, func(payload []byte) (netlink.Neighbour, bool) {
		n, ok := netlink.ParseNeighbour(payload)
		return n, ok && n.Protocol == protocol && n.State&unix.NUD_PERMANENT != 0 && (index == 0 || n.Index == index)
	})
	if err != nil {
		return nil, fmt.Errorf("list neighbours: %w", err)
	}
	out := make(map[neighKey]mac, len(list))
	for _, n := range list {
		var m mac // stays zero for another length: then it is not ours, and different from any MAC
		if len(n.MAC) == len(m) {
			m = mac(n.MAC)
		}
		out[neighKey{n.Index, n.Addr}] = m
	}
	return out, nil
}

func (s *socket) Exec(ctx context.Context, protocol uint8, ops []op) ([]error, error) {
	s.batch.Reset()
	for i := range ops {
		o := &ops[i]
		switch o.verb {
		case delRoute:
			dropRoute(&s.batch, o.route)
		case addRoute:
			putRoute(&s.batch, o.route, unix.NLM_F_EXCL)
		case replaceRoute:
			putRoute(&s.batch, o.route, unix.NLM_F_REPLACE)
		case delNeigh:
			s.batch.DelNeighbour(o.neigh.index, o.neigh.ip)
		case setNeigh:
			s.batch.NewNeighbour(o.neigh.index, o.neigh.ip, net.HardwareAddr(o.mac[:]), protocol)
		}
	}
	return s.conn.Do(ctx, &s.batch)
}
