package whoami

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"sync"

	"contiv.dev/vswitch/test/testbed/netns"
)

// Server answers requests in one namespace.
type Server struct {
	Name string

	work    sync.WaitGroup
	mu      sync.Mutex
	closers map[interface{ Close() error }]struct{} // guarded by mu
	closed  bool
}

// Serve answers requests at ports of all addresses of a namespace, by TCP and UDP.
func Serve(ns *netns.Namespace, name string, ports ...uint16) (*Server, error) {
	s := &Server{Name: name, closers: map[interface{ Close() error }]struct{}{}}
	for _, port := range ports {
		if err := s.listen(ns, port); err != nil {
			s.Close()
			return nil, fmt.Errorf("serve port %d in %s: %w", port, ns.Name, err)
		}
	}
	return s, nil
}

func (s *Server) listen(ns *netns.Namespace, port uint16) error {
	return ns.Do(func() error {
		tcp, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			return err
		}
		s.keep(tcp)
		s.work.Go(func() { s.accept(tcp) })
		for _, network := range []string{"udp4", "udp6"} {
			udp, err := listenPackets(network, port)
			if err != nil {
				return err
			}
			s.keep(udp)
			s.work.Go(func() { s.answerPackets(udp, port) })
		}
		return nil
	})
}

// keep records c, which Close has to close.
func (s *Server) keep(c interface{ Close() error }) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers[c] = struct{}{}
	if s.closed {
		_ = c.Close()
	}
}

func (s *Server) remove(c interface{ Close() error }) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.closers, c)
	_ = c.Close()
}

// Close closes all listeners and connections.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for c := range s.closers {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
}

// answer returns "name own-address client".
func (s *Server) answer(local, client net.Addr) []byte {
	return fmt.Appendf(nil, "%s %s %s\n", s.Name, local, client)
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
		s.work.Go(func() { s.answerLines(conn) })
	}
}

// answerLines answers each line of a connection.
func (s *Server) answerLines(conn net.Conn) {
	defer s.remove(conn)
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if _, err := conn.Write(s.answer(conn.LocalAddr(), conn.RemoteAddr())); err != nil {
			return
		}
	}
}

func (s *Server) answerPackets(conn packets, port uint16) {
	buf := make([]byte, 2048)
	for {
		_, own, client, err := conn.receive(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			// The client may have ended.
			_ = conn.send(s.answer(&net.UDPAddr{IP: own, Port: int(port)}, client), own, client)
		}
	}
}
