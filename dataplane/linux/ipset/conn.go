package ipset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/internal/nsdo"
)

const (
	socketBuffer = 8 << 20  // bytes; answers to a window of messages wait here
	readBuffer   = 64 << 10 // bytes; the largest datagram of a listing is 32 KiB, an error repeats the request
	window       = 128      // messages under way before answers are read
	timeout      = 10 * time.Second
)

// conn is a netfilter netlink socket. It stays in the network namespace in which it was opened.
type conn struct {
	fd   int
	seq  uint32
	out  encoder
	rbuf []byte
}

func dial(ns *nsdo.Namespace) (*conn, error) {
	c := &conn{rbuf: make([]byte, readBuffer)}
	err := ns.Do(func() (err error) {
		c.fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open a netfilter socket in %s: %w", ns, err)
	}
	if err := c.setup(); err != nil {
		unix.Close(c.fd)
		return nil, fmt.Errorf("set up the netfilter socket: %w", err)
	}
	return c, nil
}

func (c *conn) setup() error {
	if err := unix.Bind(c.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	tv := unix.NsecToTimeval(timeout.Nanoseconds())
	if err := unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return err
	}
	// Best effort: without the privilege the system's limits apply, and acknowledgements are longer on old kernels.
	_ = unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBuffer)
	_ = unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, socketBuffer)
	_ = unix.SetsockoptInt(c.fd, unix.SOL_NETLINK, unix.NETLINK_CAP_ACK, 1)
	return nil
}

func (c *conn) close() error { return unix.Close(c.fd) }

func (c *conn) exchange(reqs []request) ([]error, error) {
	p := &pipeline{conn: c, errs: make([]error, len(reqs)), reqs: reqs}
	for i := range reqs {
		if err := p.request(i); err != nil {
			return nil, err
		}
	}
	if err := p.drain(); err != nil {
		return nil, err
	}
	return p.errs, nil
}

// pipeline is one exchange.
type pipeline struct {
	*conn
	reqs     []request
	errs     []error
	underWay map[uint32]part // by sequence number
}

// part is what one message is for: the members of a request from first on.
type part struct{ request, first int }

// request sends the messages of request i.
func (p *pipeline) request(i int) error {
	r := &p.reqs[i]
	if r.op != opAdd && r.op != opDel {
		p.seq++
		return p.send(part{i, 0}, p.out.control(p.seq, r))
	}
	for first := 0; first < len(r.members); first += membersPerMessage {
		last := min(first+membersPerMessage, len(r.members))
		p.seq++
		if err := p.send(part{i, first}, p.out.change(p.seq, r, r.members[first:last])); err != nil {
			return err
		}
	}
	return nil
}

func (p *pipeline) send(what part, msg []byte) error {
	if err := sendTo(p.fd, msg); err != nil {
		return err
	}
	if p.underWay == nil {
		p.underWay = map[uint32]part{}
	}
	p.underWay[p.seq] = what
	if len(p.underWay) < window {
		return nil
	}
	return p.drain()
}

func sendTo(fd int, msg []byte) error {
	for {
		err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("send to ipset: %w", err)
		}
	}
}

// drain reads until everything under way is answered.
func (p *pipeline) drain() error {
	for len(p.underWay) > 0 {
		err := p.receive(func(m message) error {
			what, ok := p.underWay[m.seq]
			if !ok || m.typ != unix.NLMSG_ERROR {
				return nil // of a request that was given up
			}
			delete(p.underWay, m.seq)
			if err := m.ack(); err != nil && p.errs[what.request] == nil {
				p.errs[what.request] = p.explain(what, m, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// explain names the member that the kernel did not take.
func (p *pipeline) explain(what part, m message, err error) error {
	r := &p.reqs[what.request]
	if line := m.errorLine(); line > 0 && what.first+line <= len(r.members) {
		return fmt.Errorf("member %s: %w", r.members[what.first+line-1].text(r.head.family), err)
	}
	return err
}

// receive reads one datagram and hands over its messages.
func (c *conn) receive(each func(message) error) error {
	for {
		n, from, err := unix.Recvfrom(c.fd, c.rbuf, unix.MSG_TRUNC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("receive from ipset: %w", err)
		}
		if n > len(c.rbuf) {
			return fmt.Errorf("receive from ipset: an answer of %d bytes", n)
		}
		if sa, ok := from.(*unix.SockaddrNetlink); !ok || sa.Pid != 0 {
			continue
		}
		return eachMessage(c.rbuf[:n], each)
	}
}

// message is one netlink message.
type message struct {
	typ     uint16
	seq     uint32
	payload []byte
}

func eachMessage(data []byte, each func(message) error) error {
	for len(data) >= unix.SizeofNlMsghdr {
		size := int(binary.NativeEndian.Uint32(data))
		if size < unix.SizeofNlMsghdr || size > len(data) {
			return fmt.Errorf("receive from ipset: message of %d bytes in a datagram of %d", size, len(data))
		}
		m := message{
			typ: binary.NativeEndian.Uint16(data[4:]), seq: binary.NativeEndian.Uint32(data[8:]),
			payload: data[unix.SizeofNlMsghdr:size],
		}
		data = data[min(align(size), len(data)):]
		if err := each(m); err != nil {
			return err
		}
	}
	return nil
}

// ack is the error in an answer, nil for success.
func (m message) ack() error {
	if len(m.payload) < 4 {
		return nil
	}
	if code := int32(binary.NativeEndian.Uint32(m.payload)); code != 0 {
		return Errno(-code)
	}
	return nil
}

// errorLine is the number that the kernel puts into the repeated request to say which member it did not take, counted from
// one; 0 when it does not say.
func (m message) errorLine() int {
	const head = 4 + unix.SizeofNlMsghdr + sizeofNfgenmsg
	if len(m.payload) < head {
		return 0
	}
	line := 0
	eachAttr(m.payload[head:], func(typ uint16, value []byte) {
		if typ == attrLineNo && len(value) >= 4 {
			line = int(binary.NativeEndian.Uint32(value))
		}
	})
	return line
}

// dump sends a listing request and hands over the payload of every message of the answer, without its family header.
func (c *conn) dump(msg []byte, each func(payload []byte)) error {
	seq := c.seq
	if err := sendTo(c.fd, msg); err != nil {
		return err
	}
	for done := false; !done; {
		err := c.receive(func(m message) error {
			switch {
			case m.seq != seq:
				return nil
			case m.typ == unix.NLMSG_DONE, m.typ == unix.NLMSG_ERROR:
				done = true
				return m.ack()
			case len(m.payload) >= sizeofNfgenmsg:
				each(m.payload[sizeofNfgenmsg:])
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) headers(each func(header)) error {
	c.seq++
	err := c.dump(c.out.list(c.seq, "", flagListHeader), func(p []byte) {
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
	c.seq++
	if err := c.dump(c.out.list(c.seq, name, 0), func(p []byte) { parseMembers(p, each) }); err != nil {
		return fmt.Errorf("list set %s: %w", name, err)
	}
	return nil
}
