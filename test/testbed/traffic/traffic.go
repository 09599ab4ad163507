package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"contiv.dev/vswitch/test/testbed/netns"
)

// ErrCorrupted reports that a received byte differs from the sent one.
var ErrCorrupted = errors.New("corrupted")

// Traffic holds servers, and the streams that they serve.
type Traffic struct {
	work   sync.WaitGroup
	lastID atomic.Uint64

	mu      sync.Mutex
	streams map[uint64]*Stream     // guarded by mu, like the fields below
	closers map[io.Closer]struct{} // listeners and connections of servers
	closed  bool
	broken  []Broken
}

// Broken is a connection that a server closed after an error.
type Broken struct {
	Client netip.AddrPort
	Err    error
}

// brokenKept is how many broken connections are kept.
const brokenKept = 100

func (t *Traffic) broke(conn net.Conn, err error) {
	client, _ := netip.ParseAddrPort(conn.RemoteAddr().String()) // an invalid address is printed as such
	t.mu.Lock()
	defer t.mu.Unlock()
	t.broken = append(t.broken, Broken{netip.AddrPortFrom(client.Addr().Unmap(), client.Port()), err})
	t.broken = t.broken[max(0, len(t.broken)-brokenKept):]
}

// Broken returns the connections of a client's port that servers closed recently after an error, to help find the cause
// of a failure.
func (t *Traffic) Broken(port uint16) (all []Broken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range t.broken {
		if b.Client.Port() == port {
			all = append(all, b)
		}
	}
	return all
}

// New returns a Traffic without servers.
func New() *Traffic {
	return &Traffic{streams: map[uint64]*Stream{}, closers: map[io.Closer]struct{}{}}
}

// Serve serves at a port of all addresses of a namespace. stop ends the server and its connections.
func (t *Traffic) Serve(ns *netns.Namespace, port uint16) (stop func(), err error) {
	s := &server{t: t, conns: map[io.Closer]struct{}{}}
	err = ns.Do(func() error {
		l, err := listen(fmt.Sprintf(":%d", port))
		if err != nil {
			return err
		}
		s.listener = l
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("serve port %d in %s: %w", port, ns.Name, err)
	}
	t.work.Go(s.accept)
	t.keep(s)
	return func() { t.remove(s); _ = s.Close() }, nil // the listener may be closed already
}

// Close ends all streams and servers.
func (t *Traffic) Close() {
	t.mu.Lock()
	t.closed = true
	streams, closers := t.streams, t.closers
	t.streams, t.closers = map[uint64]*Stream{}, map[io.Closer]struct{}{}
	t.mu.Unlock()
	for _, s := range streams {
		_ = s.Stop() // the caller can get this error by its own call of Stop
	}
	for c := range closers {
		_ = c.Close()
	}
	t.work.Wait()
}

func (t *Traffic) keep(c io.Closer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closers[c] = struct{}{}
	if t.closed {
		_ = c.Close()
	}
}

func (t *Traffic) remove(c io.Closer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.closers, c)
}

func (t *Traffic) stream(id uint64) *Stream {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.streams[id]
}

// kind is the purpose of a connection.
type kind byte

const (
	bulk kind = iota + 1 // the stream with the ID
	echo                 // messages of a size that are returned
	once                 // one such message
)

// header is the first message of a client.
type header struct {
	kind kind
	size uint32 // of the messages
	id   uint64 // of the stream
}

const headerSize = 16

func (h header) bytes() []byte {
	b := make([]byte, headerSize)
	b[0] = byte(h.kind)
	binary.BigEndian.PutUint32(b[4:], h.size)
	binary.BigEndian.PutUint64(b[8:], h.id)
	return b
}

func parseHeader(b []byte) header {
	return header{kind: kind(b[0]), size: binary.BigEndian.Uint32(b[4:]), id: binary.BigEndian.Uint64(b[8:])}
}

// server is one listener and its connections.
type server struct {
	t        *Traffic
	listener net.Listener
	work     sync.WaitGroup

	mu     sync.Mutex
	conns  map[io.Closer]struct{} // guarded by mu
	closed bool
}

// Close implements io.Closer.
func (s *server) Close() error {
	s.mu.Lock()
	s.closed = true
	conns := s.conns
	s.conns = map[io.Closer]struct{}{}
	s.mu.Unlock()
	err := s.listener.Close()
	for c := range conns {
		_ = c.Close()
	}
	s.work.Wait()
	return err
}

func (s *server) keep(c io.Closer) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *server) remove(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

func (s *server) accept() {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil { // otherwise the client has disconnected
			s.work.Go(func() { s.serve(conn.(*net.TCPConn)) })
		}
	}
}

// greeting bounds the time until a client has sent its header.
const greeting = time.Minute

func (s *server) serve(conn *net.TCPConn) {
	if !s.keep(conn) {
		_ = conn.Close()
		return
	}
	h, err := readHeader(conn)
	if err == nil && h.kind == once {
		err = answer(conn, int(h.size))
	}
	if err != nil {
		s.t.broke(conn, fmt.Errorf("%+v: %w", h, err))
	}
	s.remove(conn)
	if err != nil || h.kind == once {
		_ = conn.Close()
		return
	}
	sock, err := adopt(conn)
	if err != nil {
		return
	}
	wake := aborter(sock)
	if s.keep(wake) {
		switch h.kind {
		case echo:
			s.answerAll(sock, int(h.size))
		case bulk:
			if stream := s.t.stream(h.id); stream != nil {
				stream.serve(sock)
			}
		}
	}
	s.remove(wake)
	_ = sock.close()
}

// aborter shuts down a socket that others use; its descriptor stays open.
type aborter socket

// Close implements io.Closer.
func (a aborter) Close() error { socket(a).abort(); return nil }

func readHeader(conn *net.TCPConn) (header, error) {
	if err := conn.SetDeadline(time.Now().Add(greeting)); err != nil {
		return header{}, err
	}
	b := make([]byte, headerSize)
	_, err := io.ReadFull(conn, b)
	return parseHeader(b), err
}

// maxMessage is the maximum size of a message that is answered.
const maxMessage = 1 << 20

// answer returns one message to the sender.
func answer(rw io.ReadWriter, size int) error {
	if size > maxMessage {
		return fmt.Errorf("a message of %d bytes is too large", size)
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(rw, b); err != nil {
		return err
	}
	_, err := rw.Write(b)
	return err
}

func (s *server) answerAll(sock socket, size int) {
	if size < 1 || size > maxMessage {
		return
	}
	for b := make([]byte, size); ; {
		if _, err := io.ReadFull(sock, b); err != nil {
			return // the client has received its answer
		}
		if _, err := sock.Write(b); err != nil {
			return
		}
	}
}
