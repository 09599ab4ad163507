package ipset

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/internal/nsdo"
)

const (
	queue   = 8 << 20 // bytes; an error message repeats the request
	window  = 128     // maximum number of messages encoded before they are sent
	timeout = 10 * time.Second
)

// conn is a netfilter netlink socket. It belongs to the network namespace in which it was opened.
type conn struct {
	nl    *netlink.Conn
	batch encoder
	parts []part // the content of each message of the batch
}

func dial(ns *nsdo.Namespace) (*conn, error) {
	nl, err := netlink.Open(ns, unix.NETLINK_NETFILTER, netlink.Options{Timeout: timeout, Queue: queue})
	if err != nil {
		return nil, fmt.Errorf("ipset: %w", err)
	}
	return &conn{nl: nl}, nil
}

func (c *conn) close() error {
	c.nl.Close()
	return nil
}

// part identifies the content of one message: the members of a request from index first on.
type part struct{ request, first int }

func (c *conn) exchange(reqs []request) ([]error, error) {
	c.clear()
	errs := make([]error, len(reqs))
	for i := range reqs {
		if err := c.request(reqs, i, errs); err != nil {
			return nil, err
		}
	}
	if err := c.flush(reqs, errs); err != nil {
		return nil, err
	}
	return errs, nil
}

func (c *conn) clear() {
	c.batch.Reset()
	c.parts = c.parts[:0]
}

// request encodes the messages of request i, and sends the encoded messages when window is reached.
func (c *conn) request(reqs []request, i int, errs []error) error {
	r := &reqs[i]
	if r.op != opAdd && r.op != opDel {
		c.batch.control(r)
		return c.add(part{i, 0}, reqs, errs)
	}
	for first := 0; first < len(r.members); first += membersPerMessage {
		c.batch.change(r, r.members[first:min(first+membersPerMessage, len(r.members))])
		if err := c.add(part{i, first}, reqs, errs); err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) add(p part, reqs []request, errs []error) error {
	if c.parts = append(c.parts, p); len(c.parts) < window {
		return nil
	}
	return c.flush(reqs, errs)
}

// flush sends the encoded messages and records the first error of each request.
func (c *conn) flush(reqs []request, errs []error) error {
	failed, err := c.nl.Do(context.Background(), &c.batch.Batch)
	if err != nil {
		return fmt.Errorf("ipset: %w", err)
	}
	for i, err := range failed {
		if p := c.parts[i]; err != nil && errs[p.request] == nil {
			errs[p.request] = explain(&reqs[p.request], p.first, err)
		}
	}
	c.clear()
	return nil
}

// explain adds the member that the kernel rejected to an error.
func explain(r *request, first int, err error) error {
	line := 0
	if refused := (*netlink.Error)(nil); errors.As(err, &refused) {
		line, err = errorLine(refused.Request), Errno(refused.Errno)
	}
	if line > 0 && first+line <= len(r.members) {
		return fmt.Errorf("member %s: %w", r.members[first+line-1].text(r.head.family), err)
	}
	return err
}

// errorLine returns the number, counted from one, by which the kernel identifies the rejected member in the repeated request; 0 if there is
// none.
func errorLine(request []byte) (line int) {
	netlink.Attributes(request, sizeofNfgenmsg, func(typ uint16, value []byte) {
		if typ == attrLineNo {
			line = int(netlink.Uint32(value))
		}
	})
	return line
}

// dump sends the one encoded request and calls each for the payload of every message of the answer, without its family header.
func (c *conn) dump(each func(payload []byte)) error {
	_, err := c.nl.Dump(&c.batch.Batch, func(_ uint16, payload []byte) {
		if len(payload) >= sizeofNfgenmsg {
			each(payload[sizeofNfgenmsg:])
		}
	})
	if refused := (*netlink.Error)(nil); errors.As(err, &refused) {
		return Errno(refused.Errno)
	}
	return err
}

func (c *conn) headers(each func(header)) error {
	c.clear()
	c.batch.list("", flagListHeader)
	err := c.dump(func(p []byte) {
		if h := parseHeader(p); h.typ != "" {
			each(h)
		}
	})
	if err != nil {
		return fmt.Errorf("list sets: %w", err)
	}
	return nil
}

func (c *conn) members(name string, each func(member)) error {
	c.clear()
	c.batch.list(name, 0)
	if err := c.dump(func(p []byte) { parseMembers(p, each) }); err != nil {
		return fmt.Errorf("list set %s: %w", name, err)
	}
	return nil
}
