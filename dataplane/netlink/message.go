package netlink

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// Message is one netlink message.
type Message struct {
	Type, Flags uint16
	Seq, Port   uint32
	Payload     []byte
}

// Messages calls each for every message of a datagram. It stops at a malformed message.
func Messages(data []byte, each func(Message)) {
	for len(data) >= unix.SizeofNlMsghdr {
		size := int(binary.NativeEndian.Uint32(data))
		if size < unix.SizeofNlMsghdr || size > len(data) {
			return
		}
		each(Message{
			Type: binary.NativeEndian.Uint16(data[4:]), Flags: binary.NativeEndian.Uint16(data[6:]),
			Seq: binary.NativeEndian.Uint32(data[8:]), Port: binary.NativeEndian.Uint32(data[12:]),
			Payload: data[unix.SizeofNlMsghdr:size],
		})
		data = data[min(align(size), len(data)):]
	}
}

// Error is the error with which the kernel rejected a request.
type Error struct {
	Errno   unix.Errno // some subsystems use numbers of their own
	Reason  string     // the kernel's explanation; "" if there is none
	Request []byte     // the part of the request that the reply repeats, without the request's header
}

// Error implements error.
func (e *Error) Error() string {
	if e.Reason != "" {
		return fmt.Sprintf("%v (%s)", e.Errno, e.Reason)
	}
	return e.Errno.Error()
}

// Unwrap returns the error number.
func (e *Error) Unwrap() error { return e.Errno }

// Ack returns the *Error of an NLMSG_ERROR or NLMSG_DONE; nil for success.
func (m Message) Ack() error {
	if len(m.Payload) < 4 {
		return nil
	}
	code := int32(binary.NativeEndian.Uint32(m.Payload))
	if code == 0 {
		return nil
	}
	e := &Error{Errno: unix.Errno(-code)}
	const ackHeader = 4 + unix.SizeofNlMsghdr
	switch {
	case m.Type != unix.NLMSG_ERROR || len(m.Payload) <= ackHeader:
	case m.Flags&unix.NLM_F_ACK_TLVS != 0:
		e.Reason = Text(Find(m.Payload[ackHeader:], unix.NLMSGERR_ATTR_MSG))
	default:
		e.Request = append(e.Request, m.Payload[ackHeader:]...)
	}
	return e
}
