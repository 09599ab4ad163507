package links

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/scheduler"
)

// sock is a route netlink socket. It stays in the network namespace in which it was opened. The kernel carries out a
// request while it is being sent, so the answer is always there to be read at once.
type sock struct {
	fd   int
	seq  uint32
	rbuf []byte
	torn bool // what has been listed changed meanwhile: the answer may lack what was there all the time
}

const netlinkBuffer = 64 << 10

// newSock opens a socket. rbuf, which sockets may share, is what answers are read into; nil makes one.
func newSock(timeout time.Duration, rbuf []byte) (*sock, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("bind netlink socket: %w", err)
	}
	tv := unix.NsecToTimeval(timeout.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("set netlink time-out: %w", err)
	}
	// Best effort: short acknowledgements with an explanation, and filtered dumps. Old kernels do without.
	for _, opt := range []int{unix.NETLINK_CAP_ACK, unix.NETLINK_EXT_ACK, unix.NETLINK_GET_STRICT_CHK} {
		_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, opt, 1)
	}
	if rbuf == nil {
		rbuf = make([]byte, netlinkBuffer)
	}
	return &sock{fd: fd, rbuf: rbuf}, nil
}

func (s *sock) close() { unix.Close(s.fd) }

// exec sends a request and waits for its acknowledgement.
func (s *sock) exec(req *nl.NetlinkRequest) error {
	req.Flags |= unix.NLM_F_ACK
	return s.roundTrip(req, nil)
}

// get sends a request that is answered by messages, each of which is handed to each without its header.
func (s *sock) get(req *nl.NetlinkRequest, each func(payload []byte) error) error {
	if req.Flags&unix.NLM_F_DUMP == 0 {
		req.Flags |= unix.NLM_F_ACK
	}
	return s.roundTrip(req, each)
}

func (s *sock) roundTrip(req *nl.NetlinkRequest, each func(payload []byte) error) error {
	s.seq++
	req.Seq = s.seq
	s.torn = false
	if err := unix.Sendto(s.fd, req.Serialize(), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("netlink send: %w", err)
	}
	for {
		n, from, err := unix.Recvfrom(s.fd, s.rbuf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return scheduler.OutcomeUnknown(fmt.Errorf("netlink receive: %w", err))
		}
		if sa, ok := from.(*unix.SockaddrNetlink); !ok || sa.Pid != 0 {
			continue
		}
		done, err := s.messages(s.rbuf[:n], each)
		if done || err != nil {
			return err
		}
	}
}

// messages handles one datagram; done is true when it ends the answer.
func (s *sock) messages(data []byte, each func(payload []byte) error) (done bool, err error) {
	for len(data) >= unix.SizeofNlMsghdr {
		size := int(binary.NativeEndian.Uint32(data))
		if size < unix.SizeofNlMsghdr || size > len(data) {
			return true, fmt.Errorf("netlink: message of %d bytes in a datagram of %d", size, len(data))
		}
		typ := binary.NativeEndian.Uint16(data[4:])
		flags := binary.NativeEndian.Uint16(data[6:])
		seq := binary.NativeEndian.Uint32(data[8:])
		payload := data[unix.SizeofNlMsghdr:size]
		data = data[min(nlAlign(size), len(data)):]
		if seq != s.seq {
			continue // the answer of a request that was given up
		}
		s.torn = s.torn || flags&unix.NLM_F_DUMP_INTR != 0
		switch typ {
		case unix.NLMSG_ERROR, unix.NLMSG_DONE:
			return true, ackError(payload, flags)
		default:
			if each == nil {
				continue
			}
			if err := each(payload); err != nil {
				// What is left of the answer carries the old sequence number and is skipped by the next request.
				return true, err
			}
		}
	}
	return false, nil
}

// ackError is the error in an acknowledgement, with the kernel's explanation where there is one.
func ackError(payload []byte, flags uint16) error {
	if len(payload) < 4 {
		return nil
	}
	code := int32(binary.NativeEndian.Uint32(payload))
	if code == 0 {
		return nil
	}
	errno := unix.Errno(-code)
	const ackHeader = 4 + unix.SizeofNlMsghdr
	if flags&unix.NLM_F_ACK_TLVS == 0 {
		return errno
	}
	why := ""
	_ = attributes(payload, ackHeader, func(typ uint16, value []byte) {
		if typ == unix.NLMSGERR_ATTR_MSG {
			why = cString(value)
		}
	})
	if why != "" {
		return fmt.Errorf("%w (%s)", errno, why)
	}
	return errno
}

func nlAlign(n int) int { return (n + unix.NLMSG_ALIGNTO - 1) &^ (unix.NLMSG_ALIGNTO - 1) }

// cString is a text attribute without its terminating zero.
func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
