package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// pingMaxWait bounds the wait for the last answers. The ping program waits no longer than its interval for them, and so counts
// packets as lost that VPP delivers 50 ms later, after it has made an interface.
const pingMaxWait = 5 * time.Second

// PingResult is the result of a series of echo requests.
type PingResult struct {
	Sent, Received int // each answer is counted once
	Duplicates     int
	Min, Avg, Max  time.Duration
}

// Lost returns the number of requests without an answer.
func (r PingResult) Lost() int { return r.Sent - r.Received }

// String returns "5 sent, 5 received, …".
func (r PingResult) String() string {
	s := fmt.Sprintf("%d sent, %d received", r.Sent, r.Received)
	if r.Duplicates > 0 {
		s += fmt.Sprintf(", %d duplicates", r.Duplicates)
	}
	if r.Received > 0 {
		ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
		s += fmt.Sprintf(", min/avg/max %.2f/%.2f/%.2f ms", ms(r.Min), ms(r.Avg), ms(r.Max))
	}
	return s
}

// echo is the echo protocol of one family.
type echo struct {
	network, any   string
	request, reply icmp.Type
	number         int
}

func echoFor(dst netip.Addr) echo {
	if dst.Is4() {
		return echo{"ip4:icmp", "0.0.0.0", ipv4.ICMPTypeEcho, ipv4.ICMPTypeEchoReply, 1}
	}
	return echo{"ip6:ipv6-icmp", "::", ipv6.ICMPTypeEchoRequest, ipv6.ICMPTypeEchoReply, 58}
}

// Ping sends count echo requests from the namespace, one every interval. Lost packets are not an error.
func (ns *Namespace) Ping(ctx context.Context, dst string, count int, interval time.Duration) (PingResult, error) {
	to, err := netip.ParseAddr(dst)
	if err != nil {
		return PingResult{}, fmt.Errorf("ping: %w", err)
	}
	e := echoFor(to)
	var conn *icmp.PacketConn
	if err := ns.Do(func() (err error) { conn, err = icmp.ListenPacket(e.network, e.any); return err }); err != nil {
		return PingResult{}, fmt.Errorf("ping from %s: %w", ns.Name, err)
	}
	defer conn.Close()
	if err := roomForAnswers(conn); err != nil {
		return PingResult{}, fmt.Errorf("ping from %s: %w", ns.Name, err)
	}
	p := &pinger{echo: e, conn: conn, id: int(time.Now().UnixNano() & 0xffff), sent: make([]time.Time, 0, count)}
	return p.run(ctx, &net.IPAddr{IP: to.AsSlice()}, count, interval)
}

// roomForAnswers enlarges the receive buffer, which keeps packets while this process does not run: a raw socket receives the
// answers to all pingers of its namespace, and with the kernel's default size it drops packets after half a second.
func roomForAnswers(conn *icmp.PacketConn) error {
	const bytes = 8 << 20
	var raw syscall.Conn
	if v4 := conn.IPv4PacketConn(); v4 != nil {
		raw, _ = v4.PacketConn.(syscall.Conn)
	} else if v6 := conn.IPv6PacketConn(); v6 != nil {
		raw, _ = v6.PacketConn.(syscall.Conn)
	}
	if raw == nil {
		return errors.New("the socket's buffer cannot be set")
	}
	rc, err := raw.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = rc.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bytes) })
	return errors.Join(err, set)
}

type pinger struct {
	echo
	conn *icmp.PacketConn
	id   int
	sent []time.Time // by sequence number
	rtts map[int]time.Duration
	dups int
}

// run sends and receives in turns: it receives until the next packet is due.
func (p *pinger) run(ctx context.Context, to net.Addr, count int, interval time.Duration) (PingResult, error) {
	p.rtts = map[int]time.Duration{}
	next := time.Now()
	for len(p.sent) < count && ctx.Err() == nil {
		m := icmp.Message{Type: p.request, Body: &icmp.Echo{ID: p.id, Seq: len(p.sent), Data: make([]byte, 56)}}
		data, err := m.Marshal(nil)
		if err != nil {
			return PingResult{}, err
		}
		p.sent = append(p.sent, time.Now())
		_, _ = p.conn.WriteTo(data, to) // a packet that cannot be sent counts as lost
		next = next.Add(interval)
		p.listen(next, count)
	}
	p.listen(time.Now().Add(pingMaxWait), count)
	return p.result(), ctx.Err()
}

// listen receives answers until the deadline, or until all have arrived.
func (p *pinger) listen(deadline time.Time, count int) {
	_ = p.conn.SetReadDeadline(deadline)
	buf := make([]byte, 1500)
	for len(p.rtts) < count {
		n, _, err := p.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		m, err := icmp.ParseMessage(p.number, buf[:n])
		if err != nil || m.Type != p.reply {
			continue
		}
		body, ok := m.Body.(*icmp.Echo)
		if !ok || body.ID != p.id || body.Seq >= len(p.sent) {
			continue
		}
		if _, dup := p.rtts[body.Seq]; dup {
			p.dups++
			continue
		}
		p.rtts[body.Seq] = time.Since(p.sent[body.Seq])
	}
}

func (p *pinger) result() PingResult {
	r := PingResult{Sent: len(p.sent), Received: len(p.rtts), Duplicates: p.dups}
	var all []time.Duration
	for _, d := range p.rtts {
		all = append(all, d)
		r.Avg += d
	}
	if len(all) > 0 {
		r.Min, r.Max, r.Avg = slices.Min(all), slices.Max(all), r.Avg/time.Duration(len(all))
	}
	return r
}
