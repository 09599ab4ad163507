package vppfake

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"
)

// maxMessage is the maximum length of a request. VPP has no such limit; no known client reaches it.
const maxMessage = 16 << 20

// flushAt is the maximum number of bytes of replies that are collected before the writer is woken.
const flushAt = 64 << 10

// session is one client connection. Its reader passes requests to the fake one by one; its writer sends the replies collected in out, which
// grows without limit like VPP's output vector: a client that writes a thousand requests before it reads a reply must not deadlock.
type session struct {
	fake  *Fake
	conn  net.Conn
	index uint32 // the handle that the client puts into its requests

	lostPings int  // pings that will not be answered; guarded by the fake's mutex
	more      bool // requests are available; guarded by the fake's mutex

	mu        sync.Mutex // guards the rest
	out       []byte
	finishing bool // close once out is written
	closed    bool
	wake      chan struct{}
}

func newSession(f *Fake, conn net.Conn, index uint32) *session {
	return &session{fake: f, conn: conn, index: index, wake: make(chan struct{}, 1)}
}

// read passes requests to the fake until the connection or the fake ends.
func (s *session) read() {
	defer s.fake.drop(s)
	r := bufio.NewReaderSize(s.conn, 64<<10)
	var header [frameHeader]byte
	body := make([]byte, 4096)
	for {
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint32(header[8:]))
		if n > maxMessage {
			s.fake.refuse(Refusal{Reason: "message longer than 16 MiB"})
			return
		}
		if n > len(body) {
			body = make([]byte, n)
		}
		if _, err := io.ReadFull(r, body[:n]); err != nil {
			return
		}
		if !s.fake.dispatch(s, body[:n], another(r)) {
			return
		}
		if r.Buffered() < frameHeader {
			s.flush()
		}
	}
}

// another reports whether a whole request has already been read.
func another(r *bufio.Reader) bool {
	if r.Buffered() < frameHeader {
		return false
	}
	header, err := r.Peek(frameHeader)
	return err == nil && r.Buffered() >= frameHeader+int(binary.BigEndian.Uint32(header[8:]))
}

// write sends the collected replies, until close.
func (s *session) write() {
	var spare []byte
	for range s.wake {
		s.mu.Lock()
		out, last := s.out, s.finishing
		s.out = spare[:0]
		s.mu.Unlock()
		_, err := s.conn.Write(out)
		if err != nil || last {
			s.close()
			return
		}
		spare = out
	}
}

// post adds one message to the replies for the client.
func (s *session) post(id uint16, context uint32, msg message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.finishing {
		return
	}
	s.out = appendFrame(s.out, id, context, msg)
	if len(s.out) >= flushAt {
		s.wakeLocked()
	}
}

// postRetval adds a reply whose first field, the return value, is overwritten.
func (s *session) postRetval(id uint16, context uint32, msg message, retval int32) {
	frame := appendFrame(nil, id, context, msg)
	binary.BigEndian.PutUint32(frame[frameHeader+headerSize(msg):], uint32(retval))
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && !s.finishing {
		s.out = append(s.out, frame...)
	}
}

// flush wakes the writer to send the collected replies.
func (s *session) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && len(s.out) > 0 {
		s.wakeLocked()
	}
}

func (s *session) wakeLocked() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// finish closes the connection after the collected replies have been sent.
func (s *session) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.finishing = true
		s.conn.SetWriteDeadline(time.Now().Add(time.Second)) //nolint:errcheck // a client that does not read is left
		s.wakeLocked()
	}
}

// close ends the connection and both goroutines.
func (s *session) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	close(s.wake)
	s.conn.Close()
}

func (s *session) isFinishing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.finishing && !s.closed
}
