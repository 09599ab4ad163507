package bulk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"contiv.dev/vswitch/test/testbed/netns"
)

// Server receives and sends streams, and returns UDP packets to the sender, in one namespace.
type Server struct {
	work    sync.WaitGroup
	mu      sync.Mutex
	closers map[io.Closer]struct{} // guarded by mu
	closed  bool
}

// order is the first message of a client: the direction of the stream, its offset in the pattern, and its length.
type order struct {
	Up     bool // true: from the client to the server
	Start  uint32
	Length int64
}

const orderSize = 16

func (o order) marshal() []byte {
	b := make([]byte, orderSize)
	if o.Up {
		b[0] = 1
	}
	binary.BigEndian.PutUint32(b[4:], o.Start)
	binary.BigEndian.PutUint64(b[8:], uint64(o.Length))
	return b
}

func parseOrder(b []byte) order {
	return order{b[0] == 1, binary.BigEndian.Uint32(b[4:]), int64(binary.BigEndian.Uint64(b[8:]))}
}

// The answers to a stream that a server has received.
const (
	answerGood = 'G'
	answerBad  = 'B'
)

// Serve listens at a port of all addresses of a namespace, by TCP and UDP.
func Serve(ns *netns.Namespace, port uint16) (*Server, error) {
	s := &Server{closers: map[io.Closer]struct{}{}}
	if err := ns.Do(func() error { return s.listen(port) }); err != nil {
		s.Close()
		return nil, fmt.Errorf("serve port %d in %s: %w", port, ns.Name, err)
	}
	return s, nil
}

func (s *Server) listen(port uint16) error {
	tcp, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return err
	}
	s.keep(tcp)
	s.work.Go(func() { s.accept(tcp) })
	udp, err := net.ListenPacket("udp", fmt.Sprintf(":%d", port))
	if err != nil {
		return err
	}
	s.keep(udp)
	s.work.Go(func() { echo(udp) })
	return nil
}

func (s *Server) keep(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers[c] = struct{}{}
	if s.closed {
		_ = c.Close() // Close has been called in the meantime
	}
}

func (s *Server) remove(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.closers, c)
	_ = c.Close() // nothing is lost: the peer has received its answer
}

// Close ends all listeners and streams.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for c := range s.closers {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
}

func (s *Server) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the client has disconnected
		}
		s.keep(conn)
		s.work.Go(func() {
			defer s.remove(conn)
			serve(conn)
		})
	}
}

// serve executes the order of one client. The client detects an error here, because the answer is missing or different.
func serve(conn net.Conn) {
	head := make([]byte, orderSize)
	if _, err := io.ReadFull(conn, head); err != nil {
		return
	}
	o := parseOrder(head)
	if !o.Up {
		_ = send(conn, o)
		return
	}
	answer := byte(answerGood)
	if err := receive(conn, o); err != nil {
		answer = answerBad
	}
	_, _ = conn.Write([]byte{answer})
}

func echo(conn net.PacketConn) {
	buf := make([]byte, 1<<16)
	for {
		n, from, err := conn.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			_, _ = conn.WriteTo(buf[:n], from) // the client may have ended
		}
	}
}

// send writes the bytes of a stream.
func send(conn net.Conn, o order) error {
	const piece = 256 << 10
	c := cursor{int64(o.Start)}
	for left := o.Length; left > 0; {
		n, err := conn.Write(c.next(min(left, piece)))
		if err != nil {
			return fmt.Errorf("after %d of %d bytes: %w", o.Length-left, o.Length, err)
		}
		c.advance(n)
		left -= int64(n)
	}
	return nil
}

// receive reads the bytes of a stream and compares them.
func receive(conn net.Conn, o order) error {
	buf := make([]byte, 256<<10)
	c := cursor{int64(o.Start)}
	for left := o.Length; left > 0; {
		n, err := conn.Read(buf[:min(left, int64(len(buf)))])
		if bad := c.check(buf[:n]); bad != nil {
			return bad
		}
		left -= int64(n)
		if err != nil && left > 0 {
			return fmt.Errorf("after %d of %d bytes: %w", o.Length-left, o.Length, err)
		}
	}
	return nil
}
