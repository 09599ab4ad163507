package tabletest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink/nettest"
)

// recvKey is the address a receiver listens on; it has a port only for protocols with ports.
type recvKey struct {
	proto uint8
	at    netip.AddrPort
}

// receiver takes the packets of probes at one address and passes them to the waiting callers.
type receiver struct {
	conn io.Closer

	mu      sync.Mutex
	waiting map[uint32]func(seq uint32, from netip.AddrPort)
}

// wait makes the receiver call seen, from any goroutine, for every packet of a probe or stream; nil ends that.
func (r *receiver) wait(id uint32, seen func(seq uint32, from netip.AddrPort)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if seen == nil {
		delete(r.waiting, id)
		return
	}
	r.waiting[id] = seen
}

func (r *receiver) deliver(tag payload, from netip.AddrPort) {
	r.mu.Lock()
	seen := r.waiting[tag.id]
	r.mu.Unlock()
	if seen != nil {
		seen(tag.seq, from)
	}
}

// payload is the content of packets.
type payload struct {
	id, seq uint32
	answer  bool // UDP: whether the receiver answers
}

const payloadLen = 9

func (p payload) bytes() []byte {
	b := make([]byte, payloadLen)
	binary.BigEndian.PutUint32(b, p.id)
	binary.BigEndian.PutUint32(b[4:], p.seq)
	if p.answer {
		b[8] = 1
	}
	return b
}

func parsePayload(b []byte) (payload, bool) {
	if len(b) < payloadLen {
		return payload{}, false
	}
	return payload{id: binary.BigEndian.Uint32(b), seq: binary.BigEndian.Uint32(b[4:]), answer: b[8] == 1}, true
}

// receiver returns the node's receiver at an address, and starts it at the first call.
func (n *Node) receiver(key recvKey) (*receiver, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r := n.receivers[key]; r != nil {
		return r, nil
	}
	r := &receiver{waiting: map[uint32]func(uint32, netip.AddrPort){}}
	var serve func(context.Context) error
	err := n.NS.Do(func() (err error) {
		serve, err = r.listen(n.net, key)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen at %v in %s: %w", key, n.Name, err)
	}
	n.receivers[key] = r
	n.net.jobs.Go(fmt.Sprintf("receiver %v", key), serve)
	return r, nil
}

func (n *Node) close() {
	n.mu.Lock()
	for _, r := range n.receivers {
		r.conn.Close()
	}
	n.mu.Unlock()
	n.NS.Close()
	_ = nettest.Remove(n.Name) // the test may have removed it
}

func (r *receiver) listen(net *Net, key recvKey) (func(context.Context) error, error) {
	switch key.proto {
	case unix.IPPROTO_TCP:
		return r.listenTCP(net, key.at)
	case unix.IPPROTO_UDP:
		return r.listenUDP(key.at)
	default:
		return r.listenRaw(key)
	}
}

func (r *receiver) listenTCP(n *Net, at netip.AddrPort) (func(context.Context) error, error) {
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	if err != nil {
		return nil, err
	}
	r.conn = l
	return func(context.Context) error {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return endOf(err)
			}
			n.jobs.Go("connection", func(context.Context) error { r.serveTCP(c); return nil })
		}
	}, nil
}

func (r *receiver) serveTCP(c *net.TCPConn) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	buf := make([]byte, payloadLen)
	if _, err := io.ReadFull(c, buf); err != nil {
		return
	}
	if tag, ok := parsePayload(buf); ok {
		r.deliver(tag, unmap(c.RemoteAddr().(*net.TCPAddr).AddrPort()))
		_, _ = c.Write(buf)
	}
}

func (r *receiver) listenUDP(at netip.AddrPort) (func(context.Context) error, error) {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, err
	}
	r.conn = c
	if err := forceBuffer(c); err != nil {
		return nil, err
	}
	return func(context.Context) error {
		buf := make([]byte, 2048)
		for {
			size, from, err := c.ReadFromUDPAddrPort(buf)
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			tag, ok := parsePayload(buf[:size])
			if err != nil || !ok {
				continue // the ICMP error that an answer caused
			}
			r.deliver(tag, unmap(from))
			if tag.answer {
				_, _ = c.WriteToUDPAddrPort(buf[:size], from)
			}
		}
	}, nil
}

// forceBuffer gives a socket enough buffer for the packets that arrive while its reader does not run: streams must not lose packets there.
func forceBuffer(c *net.UDPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20) })
	return errors.Join(err, set)
}

// headerLen returns the length of the header before the payload in packets of a protocol.
func headerLen(proto uint8) int {
	if proto == unix.IPPROTO_SCTP {
		return 12
	}
	return 8 // ICMP
}

func (r *receiver) listenRaw(key recvKey) (func(context.Context) error, error) {
	c, err := net.ListenIP(rawNetwork(key.at.Addr(), key.proto), &net.IPAddr{IP: key.at.Addr().AsSlice()})
	if err != nil {
		return nil, err
	}
	r.conn = c
	return func(context.Context) error {
		buf := make([]byte, 2048)
		for {
			size, from, err := c.ReadFromIP(buf)
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			if err != nil || size < headerLen(key.proto) {
				continue
			}
			tag, ok := parsePayload(buf[headerLen(key.proto):size])
			src, _ := netip.AddrFromSlice(from.IP)
			if ok {
				r.deliver(tag, netip.AddrPortFrom(src.Unmap(), 0))
			}
		}
	}, nil
}

func rawNetwork(a netip.Addr, proto uint8) string {
	if a.Is4() {
		return fmt.Sprintf("ip4:%d", proto)
	}
	return fmt.Sprintf("ip6:%d", proto)
}

// endOf returns nil if the error is the end of a closed socket.
func endOf(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// sharedSource lets sockets with different destinations have the same source.
func sharedSource(_, _ string, c syscall.RawConn) error {
	var err error
	if err := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}); err != nil {
		return err
	}
	return err
}

// foreignSource lets a socket send from addresses that the node does not have.
func foreignSource(network, address string, c syscall.RawConn) error {
	if err := sharedSource(network, address, c); err != nil {
		return err
	}
	var err4, err6 error
	if err := c.Control(func(fd uintptr) {
		err4 = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_TRANSPARENT, 1)
		err6 = unix.SetsockoptInt(int(fd), unix.SOL_IPV6, unix.IPV6_TRANSPARENT, 1)
	}); err != nil {
		return err
	}
	if err4 != nil && err6 != nil {
		return err4
	}
	return nil
}
