package links

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/internal/nsdo"
)

// sock is a route netlink socket. It stays in the network namespace in which it was opened.
type sock struct {
	conn *netlink.Conn
}

// podLimit is the number of objects that a listing in a pod's namespace may have. A pod with CAP_NET_ADMIN can create any number of objects
// there, and reading them all would delay every other pod.
const podLimit = 1024

// newSock opens a socket in a namespace; ns nil is the calling thread's. Listings of another namespace are limited: see podLimit. rbuf, which
// sockets may share, is the buffer for replies; if it is nil, one is allocated.
func newSock(ns *nsdo.Namespace, timeout time.Duration, rbuf []byte) (*sock, error) {
	o := netlink.Options{Timeout: timeout, Buffer: rbuf}
	if ns != nil {
		o.Limit = podLimit
	}
	c, err := netlink.Open(ns, unix.NETLINK_ROUTE, o)
	if err != nil {
		return nil, err
	}
	return &sock{conn: c}, nil
}

func (s *sock) close() { s.conn.Close() }

// exec sends a request and waits for its acknowledgement.
func (s *sock) exec(req *netlink.Batch) error {
	return outcome(s.conn.One(context.Background(), req))
}

// one sends a request that is answered by at most one message.
func one[T any](s *sock, req *netlink.Batch, parse func(payload []byte) (T, bool)) (v T, ok bool, err error) {
	err = s.conn.Get(req, func(payload []byte) { v, ok = parse(payload) })
	return v, ok, outcome(err)
}

// listTries is the maximum number of listings of objects that change all the time.
const listTries = 20

// listing returns the reply to a dump. The kernel sends a long one in parts, and the objects may change between the parts.
func listing[T any](s *sock, req *netlink.Batch, parse func(payload []byte) (T, bool)) ([]T, error) {
	out, whole, err := netlink.ListWhole(s.conn, req, listTries, parse)
	if err != nil || whole {
		return out, outcome(err)
	}
	return nil, fmt.Errorf("%w, %d times in a row", errTorn, listTries)
}

// outcome marks the error of a request if it is unknown whether the kernel carried it out.
func outcome(err error) error {
	if errors.Is(err, netlink.ErrUnknown) {
		return scheduler.OutcomeUnknown(err)
	}
	return err
}
