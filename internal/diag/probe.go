package diag

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"contiv.dev/vswitch/internal/nsdo"
	"contiv.dev/vswitch/internal/rest"
)

const (
	protoICMP = "icmp"
	protoTCP  = "tcp"
	protoUDP  = "udp"

	maxProbes  = 1000
	maxPayload = 65000
	maxRun     = 2 * time.Minute
)

// serveProbe: POST /contiv/v1/probe
func (s *Service) serveProbe(w http.ResponseWriter, r *http.Request) {
	var req ProbeRequest
	if !rest.ReadJSON(w, r, maxBody, &req) {
		return
	}
	if err := req.validate(); err != nil {
		rest.WriteError(w, http.StatusBadRequest, err)
		return
	}
	netns := ""
	if req.Pod != "" {
		pod, err := s.pod(req.Namespace, req.Pod)
		if err != nil {
			rest.WriteError(w, http.StatusNotFound, err)
			return
		}
		netns = pod.Netns
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxRun)
	defer cancel()
	res, err := probe(ctx, netns, req)
	if err != nil {
		rest.WriteError(w, http.StatusInternalServerError, err)
		return
	}
	rest.WriteJSON(w, http.StatusOK, res)
}

func (r *ProbeRequest) validate() error {
	def := func(n *int, to int) {
		if *n == 0 {
			*n = to
		}
	}
	def(&r.Count, 1)
	def(&r.TimeoutMs, 1000)
	def(&r.Size, 56)
	r.To = r.To.Unmap()
	switch {
	case !r.To.IsValid():
		return errors.New("no address to send to")
	case r.Count < 1 || r.Count > maxProbes:
		return fmt.Errorf("%d probes: must be from 1 to %d", r.Count, maxProbes)
	case r.TimeoutMs < 1 || r.TimeoutMs > 60000 || r.PauseMs < 0 || r.PauseMs > 60000:
		return errors.New("timeout and interval: must not be longer than a minute")
	case r.SourcePort != 0 && r.Count > 1 && r.Proto != protoICMP:
		return errors.New("source port: only one probe by tcp or udp can have it")
	case r.Size < 0 || r.Size > maxPayload:
		return fmt.Errorf("payload of %d bytes: must be from 0 to %d", r.Size, maxPayload)
	}
	return checkProto(r.Proto, r.Port)
}

// prober sends one probe and waits for the answer.
type prober interface {
	// once returns the round trip time; the error describes what was received instead of an answer.
	once(seq int, deadline time.Time) (time.Duration, error)
	source() netip.Addr
	close()
}

// probe sends the probes one after the other.
func probe(ctx context.Context, netns string, req ProbeRequest) (*ProbeResult, error) {
	ns, err := nsdo.Open(netns)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	var p prober
	if req.Proto == protoICMP {
		p, err = newEcho(ns, req)
	} else {
		p = &dialer{ns: ns, req: req}
	}
	if err != nil {
		return nil, err
	}
	defer p.close()
	res := &ProbeResult{RTTMs: []float64{}}
	for seq := range req.Count {
		if seq > 0 && !pause(ctx, time.Duration(req.PauseMs)*time.Millisecond) || ctx.Err() != nil {
			break
		}
		res.Sent++
		rtt, err := p.once(seq, time.Now().Add(time.Duration(req.TimeoutMs)*time.Millisecond))
		if err != nil {
			if text := err.Error(); !slices.Contains(res.Errors, text) {
				res.Errors = append(res.Errors, text)
			}
			continue
		}
		res.Received++
		res.RTTMs = append(res.RTTMs, float64(rtt.Microseconds())/1000)
	}
	res.Source = p.source()
	return res, nil
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

var errNoAnswer = errors.New("no reply")

// echo sends echo requests.
type echo struct {
	conn           *icmp.PacketConn
	to             net.Addr
	from           netip.Addr
	id, number     int
	request, reply icmp.Type
	payload        []byte
}

func newEcho(ns *nsdo.Namespace, req ProbeRequest) (*echo, error) {
	e := &echo{
		to: &net.IPAddr{IP: req.To.AsSlice()}, payload: make([]byte, req.Size), id: int(time.Now().UnixNano() & 0xffff),
		request: ipv4.ICMPTypeEcho, reply: ipv4.ICMPTypeEchoReply, number: 1,
	}
	if req.SourcePort != 0 {
		e.id = int(req.SourcePort)
	}
	network, any := "ip4:icmp", "0.0.0.0"
	if req.To.Is6() {
		network, any, e.request, e.reply, e.number = "ip6:ipv6-icmp", "::", ipv6.ICMPTypeEchoRequest, ipv6.ICMPTypeEchoReply, 58
	}
	err := ns.Do(func() (err error) {
		e.from = sourceFor(req.To)
		e.conn, err = icmp.ListenPacket(network, any)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("echo socket in %s: %w", ns, err)
	}
	return e, nil
}

// sourceFor returns the source address that the kernel of the current namespace would use; connecting a datagram socket
// sends no packet.
func sourceFor(to netip.Addr) netip.Addr {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 9)))
	if err != nil {
		return netip.Addr{}
	}
	defer conn.Close()
	local, ok := conn.LocalAddr().(*net.UDPAddr)
	if !ok {
		return netip.Addr{}
	}
	return local.AddrPort().Addr().Unmap()
}

func (e *echo) source() netip.Addr { return e.from }
func (e *echo) close()             { _ = e.conn.Close() }

func (e *echo) once(seq int, deadline time.Time) (time.Duration, error) {
	m := icmp.Message{Type: e.request, Body: &icmp.Echo{ID: e.id, Seq: seq, Data: e.payload}}
	data, err := m.Marshal(nil)
	if err != nil {
		return 0, err
	}
	sent := time.Now()
	if _, err := e.conn.WriteTo(data, e.to); err != nil {
		return 0, fmt.Errorf("not sent: %w", plain(err))
	}
	if err := e.conn.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	buf := make([]byte, maxPayload+100)
	for {
		n, from, err := e.conn.ReadFrom(buf)
		if err != nil {
			return 0, errNoAnswer
		}
		m, err := icmp.ParseMessage(e.number, buf[:n])
		if err != nil {
			continue
		}
		switch body := m.Body.(type) {
		case *icmp.Echo:
			if m.Type == e.reply && body.ID == e.id && body.Seq == seq {
				return time.Since(sent), nil
			}
		case *icmp.DstUnreach:
			if e.ours(body.Data) {
				return 0, fmt.Errorf("destination unreachable (code %d), says %s", m.Code, from)
			}
		case *icmp.TimeExceeded:
			if e.ours(body.Data) {
				return 0, fmt.Errorf("time to live exceeded, says %s", from)
			}
		case *icmp.PacketTooBig:
			if e.ours(body.Data) {
				return 0, fmt.Errorf("packet too big, at most %d bytes, says %s", body.MTU, from)
			}
		}
	}
}

// ours reports whether an ICMP error answers one of our requests; the error carries the header of the request.
func (e *echo) ours(packet []byte) bool {
	head := 40
	if e.number == 1 {
		if len(packet) < 20 {
			return false
		}
		head = int(packet[0]&0xf) * 4
	}
	if len(packet) < head+8 {
		return false
	}
	return int(packet[head+4])<<8|int(packet[head+5]) == e.id
}

// dialer probes by TCP connections or datagrams.
type dialer struct {
	ns   *nsdo.Namespace
	req  ProbeRequest
	from netip.Addr
}

func (d *dialer) source() netip.Addr { return d.from }
func (d *dialer) close()             {}

func (d *dialer) once(_ int, deadline time.Time) (rtt time.Duration, err error) {
	start := time.Now()
	var conn net.Conn
	err = d.ns.Do(func() (err error) {
		address := net.JoinHostPort(d.req.To.String(), strconv.Itoa(int(d.req.Port)))
		from := &net.Dialer{Deadline: deadline, LocalAddr: &net.TCPAddr{Port: int(d.req.SourcePort)}}
		if d.req.Proto == protoUDP {
			from.LocalAddr = &net.UDPAddr{Port: int(d.req.SourcePort)}
		}
		conn, err = from.Dial(d.req.Proto, address)
		return err
	})
	if err != nil {
		return 0, plain(err)
	}
	defer conn.Close()
	if local, err := netip.ParseAddrPort(conn.LocalAddr().String()); err == nil {
		d.from = local.Addr().Unmap()
	}
	if d.req.Proto == protoTCP {
		return time.Since(start), nil
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return 0, err
	}
	if _, err := conn.Write([]byte("contiv-netctl\n")); err != nil {
		return 0, plain(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		return 0, plain(err)
	}
	return time.Since(start), nil
}

// plain returns the cause of an error without the addresses, which the caller has.
func plain(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return errNoAnswer
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}
