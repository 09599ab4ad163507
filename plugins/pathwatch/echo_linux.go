package pathwatch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// Pinger sends ICMP echo requests from the agent's network namespace, all of a round at once. It has one raw socket per family, with a
// filter so that the kernel delivers echo replies only. It identifies a reply by its payload: cnat on the other node may have changed the
// source and the ID. Not safe for concurrent use.
type Pinger struct {
	token uint64 // unique for each pinger
	round uint32
	fds   [2]int // IPv4, IPv6; -1: not open
}

// NewPinger returns a Pinger. It opens its sockets at the first request.
func NewPinger() *Pinger { return &Pinger{token: rand.Uint64(), fds: [2]int{-1, -1}} }

// Close closes the sockets.
func (p *Pinger) Close() {
	for i, fd := range p.fds {
		if fd >= 0 {
			_ = unix.Close(fd) // an error would lose no data
			p.fds[i] = -1
		}
	}
}

func family(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

// open opens the socket of a family.
func (p *Pinger) open(i int) (err error) {
	if p.fds[i] >= 0 {
		return nil
	}
	domain, proto := unix.AF_INET, unix.IPPROTO_ICMP
	if i == 1 {
		domain, proto = unix.AF_INET6, unix.IPPROTO_ICMPV6
	}
	fd, err := unix.Socket(domain, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return fmt.Errorf("raw socket: %w", err)
	}
	if i == 0 {
		const icmpFilter = 1 // linux/icmp.h: ICMP_FILTER, a mask of the types to drop
		err = unix.SetsockoptInt(fd, unix.SOL_RAW, icmpFilter, ^(1 << 0))
	} else {
		var filter unix.ICMPv6Filter
		for n := range filter.Data {
			filter.Data[n] = ^uint32(0)
		}
		reply := uint(ipv6.ICMPTypeEchoReply)
		filter.Data[reply>>5] &^= 1 << (reply & 31)
		err = unix.SetsockoptICMPv6Filter(fd, unix.IPPROTO_ICMPV6, unix.ICMPV6_FILTER, &filter)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("filter of echo replies: %w", err), unix.Close(fd))
	}
	p.fds[i] = fd
	return nil
}

// Query implements Echo. An address to which the kernel has no route counts as not answering.
func (p *Pinger) Query(ctx context.Context, addrs []netip.Addr, timeout time.Duration) ([]time.Duration, error) {
	took := make([]time.Duration, len(addrs))
	waiting := 0
	p.round++
	start := time.Now()
	for i, a := range addrs {
		took[i] = -1
		if err := p.open(family(a)); errors.Is(err, unix.EAFNOSUPPORT) {
			continue // a kernel without IPv6
		} else if err != nil {
			return nil, err
		}
		if p.send(a, i) == nil {
			waiting++
		}
	}
	deadline := start.Add(timeout)
	for waiting > 0 && ctx.Err() == nil {
		left := time.Until(deadline)
		if left <= 0 {
			break
		}
		if err := p.wait(min(left, 100*time.Millisecond)); err != nil {
			return nil, err
		}
		p.receive(func(i int) {
			if i < len(took) && took[i] < 0 {
				took[i] = time.Since(start)
				waiting--
			}
		})
	}
	return took, nil
}

// The payload: the token, the round, the index of the request, and, for packet captures, a text.
const (
	payloadSize = 16
	payloadWord = "contiv data path"
)

func (p *Pinger) payload(i int) []byte {
	data := binary.BigEndian.AppendUint64(nil, p.token)
	data = binary.BigEndian.AppendUint32(data, p.round)
	data = binary.BigEndian.AppendUint32(data, uint32(i))
	return append(data, payloadWord...)
}

func (p *Pinger) send(to netip.Addr, i int) error {
	m := icmp.Message{Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{ID: int(uint16(p.token)), Seq: int(uint16(p.round)), Data: p.payload(i)}}
	if to.Is6() {
		m.Type = ipv6.ICMPTypeEchoRequest // the kernel fills in the checksum
	}
	data, err := m.Marshal(nil)
	if err != nil {
		return err
	}
	if to.Is4() {
		return unix.Sendto(p.fds[0], data, 0, &unix.SockaddrInet4{Addr: to.As4()})
	}
	return unix.Sendto(p.fds[1], data, 0, &unix.SockaddrInet6{Addr: to.As16()})
}

// wait waits until a reply has arrived or d has passed.
func (p *Pinger) wait(d time.Duration) error {
	var fds []unix.PollFd
	for _, fd := range p.fds {
		if fd >= 0 {
			fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
	}
	_, err := unix.Poll(fds, max(1, int(d.Milliseconds())))
	if err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("wait for answers: %w", err)
	}
	return nil
}

// receive reads the replies that have arrived; it calls answer with the index of each request of this round that was answered.
func (p *Pinger) receive(answer func(i int)) {
	var buf [256]byte
	for family, fd := range p.fds {
		for fd >= 0 {
			n, _, err := unix.Recvfrom(fd, buf[:], 0)
			if err != nil {
				break // no more replies
			}
			if i, ok := p.ours(family, buf[:n]); ok {
				answer(i)
			}
		}
	}
}

// ours returns the index of the request that a message answers. An IPv4 message includes its IP header.
func (p *Pinger) ours(family int, data []byte) (i int, ok bool) {
	head := 8
	if family == 0 && len(data) > 0 {
		head += int(data[0]&0xf) * 4
	}
	if len(data) < head+payloadSize {
		return 0, false
	}
	data = data[head:]
	if binary.BigEndian.Uint64(data) != p.token || binary.BigEndian.Uint32(data[8:]) != p.round {
		return 0, false
	}
	return int(binary.BigEndian.Uint32(data[12:])), true
}
