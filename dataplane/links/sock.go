package links

import (
	"context"
	"errors"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/dataplane/scheduler"
)

// sock is a route netlink socket. It stays in the network namespace in which it was opened.
type sock struct {
	conn  *netlink.Conn
	batch netlink.Batch
	torn  bool // what has been listed changed meanwhile: the answer may lack what was there all the time
}

// newSock opens a socket in the namespace of the calling thread. rbuf, which sockets may share, is what answers are read into; nil makes
// one.
func newSock(timeout time.Duration, rbuf []byte) (*sock, error) {
	c, err := netlink.Open(unix.NETLINK_ROUTE, timeout, rbuf)
	if err != nil {
		return nil, err
	}
	return &sock{conn: c}, nil
}

func (s *sock) close() { s.conn.Close() }

// exec sends a request and waits for its acknowledgement.
func (s *sock) exec(req *nl.NetlinkRequest) error {
	s.set(req)
	return outcome(s.conn.One(context.Background(), &s.batch))
}

// get sends a request that is answered by messages, each of which is handed to each without its header.
func (s *sock) get(req *nl.NetlinkRequest, each func(payload []byte) error) error {
	s.set(req)
	var unread error
	read := func(payload []byte) {
		if unread == nil {
			unread = each(payload)
		}
	}
	consistent, err := true, error(nil)
	if req.Flags&unix.NLM_F_DUMP != 0 {
		consistent, err = s.conn.Dump(&s.batch, func(_ uint16, payload []byte) { read(payload) })
	} else {
		err = s.conn.Get(&s.batch, read)
	}
	s.torn = !consistent
	if err != nil {
		return outcome(err)
	}
	return unread
}

func (s *sock) set(req *nl.NetlinkRequest) {
	s.batch.Reset()
	s.batch.Message(req.Serialize())
}

// outcome marks the error of a request of which it is not known whether the kernel carried it out.
func outcome(err error) error {
	if errors.Is(err, netlink.ErrUnknown) {
		return scheduler.OutcomeUnknown(err)
	}
	return err
}
