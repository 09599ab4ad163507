package vpp

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/internal/nsdo"
)

// dhcpServer is a DHCP server (RFC 2131) with one address, on a device in a network namespace. It answers by broadcast.
type dhcpServer struct {
	self netip.Addr
	conn net.PacketConn
	done chan struct{}

	mu      sync.Mutex
	address netip.Prefix // zero: does not respond
	gateway netip.Addr
	time    time.Duration
}

const (
	dhcpDiscover, dhcpOffer, dhcpRequest, dhcpAck, dhcpNak = 1, 2, 3, 5, 6

	optMask, optRouter, optRequested, optTime, optType, optServer, optEnd = 1, 3, 50, 51, 53, 54, 255
)

// startDHCP runs a server until the end of the test.
func startDHCP(t *testing.T, ns, dev, self string) *dhcpServer {
	t.Helper()
	s := &dhcpServer{self: netip.MustParseAddr(self), done: make(chan struct{})}
	n, err := nsdo.Open("/var/run/netns/" + ns)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	listen := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var errs [2]error
		err := c.Control(func(fd uintptr) {
			errs[0] = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BROADCAST, 1)
			errs[1] = unix.SetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE, dev)
		})
		return errors.Join(err, errs[0], errs[1])
	}}
	err = n.Do(func() error {
		s.conn, err = listen.ListenPacket(context.Background(), "udp4", "0.0.0.0:67")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	go s.serve()
	t.Cleanup(func() {
		s.conn.Close()
		<-s.done
	})
	return s
}

// lease sets the lease that the server offers, and its duration.
func (s *dhcpServer) lease(address netip.Prefix, gateway netip.Addr, time time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.address, s.gateway, s.time = address, gateway, time
}

func (s *dhcpServer) serve() {
	defer close(s.done)
	buf := make([]byte, 1500)
	for {
		n, _, err := s.conn.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil || n < 240 || buf[0] != 1 {
			continue
		}
		if reply := s.answer(buf[:n]); reply != nil {
			_, _ = s.conn.WriteTo(reply, &net.UDPAddr{IP: net.IPv4bcast, Port: 68}) // if this fails the client retries
		}
	}
}

func (s *dhcpServer) answer(q []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.address.IsValid() {
		return nil
	}
	requested, kind := netip.AddrFrom4([4]byte(q[12:16])), byte(0)
	for opts := q[240:]; len(opts) >= 2 && opts[0] != optEnd; opts = opts[2+int(opts[1]):] {
		if int(opts[1])+2 > len(opts) {
			return nil
		}
		switch value := opts[2 : 2+opts[1]]; opts[0] {
		case optType:
			kind = value[0]
		case optRequested:
			requested = netip.AddrFrom4([4]byte(value))
		}
	}
	switch {
	case kind == dhcpDiscover:
		return s.reply(q, dhcpOffer)
	case kind == dhcpRequest && requested == s.address.Addr():
		return s.reply(q, dhcpAck)
	case kind == dhcpRequest:
		return s.reply(q, dhcpNak)
	}
	return nil
}

func (s *dhcpServer) reply(q []byte, kind byte) []byte {
	b := make([]byte, 240)
	copy(b, q[:240])
	b[0] = 2
	clear(b[12:28])
	if kind != dhcpNak {
		copy(b[16:], s.address.Addr().AsSlice())
	}
	copy(b[20:], s.self.AsSlice())
	add := func(code byte, value ...byte) { b = append(append(b, code, byte(len(value))), value...) }
	add(optType, kind)
	add(optServer, s.self.AsSlice()...)
	if kind != dhcpNak {
		add(optTime, binary.BigEndian.AppendUint32(nil, uint32(s.time/time.Second))...)
		add(optMask, net.CIDRMask(s.address.Bits(), 32)...)
		if s.gateway.IsValid() {
			add(optRouter, s.gateway.AsSlice()...)
		}
	}
	return append(b, optEnd)
}
