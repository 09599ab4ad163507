package tabletest

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Stream is a steady stream of numbered UDP packets, one way.
type Stream struct {
	probe Probe
	r     *receiver
	id    uint32
	conn  net.Conn
	stop  context.CancelFunc
	done  chan struct{}

	sent atomic.Uint32

	mu      sync.Mutex
	arrived map[uint32]struct{}
}

// Stream sends the probe's packets, which must be UDP, one every interval until Stop.
func (n *Net) Stream(t testing.TB, p Probe, interval time.Duration) *Stream {
	t.Helper()
	at := p.At
	if !at.IsValid() {
		at = p.To
	}
	owner := n.owner(at.Addr())
	if owner == nil || p.Proto != unix.IPPROTO_UDP {
		t.Fatalf("stream %v: UDP to an address that a node has, please", p)
	}
	r, err := owner.receiver(recvKey{p.Proto, at})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := p.dial(time.Now().Add(arriveTimeout))
	if err != nil {
		t.Fatalf("stream %v: %v", p, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Stream{probe: p, r: r, id: n.id.Add(1), conn: conn, stop: stop, done: make(chan struct{}),
		arrived: map[uint32]struct{}{}}
	r.wait(s.id, func(seq uint32, _ netip.AddrPort) {
		s.mu.Lock()
		s.arrived[seq] = struct{}{}
		s.mu.Unlock()
	})
	n.jobs.Go("stream", func(job context.Context) error {
		defer close(s.done)
		s.send(job, ctx, interval)
		return nil
	})
	return s
}

func (s *Stream) send(job, ctx context.Context, interval time.Duration) {
	packet := payload{id: s.id}.bytes()
	pause := unix.NsecToTimespec(interval.Nanoseconds())
	for job.Err() == nil && ctx.Err() == nil {
		_ = unix.Nanosleep(&pause, nil) // Go's timers are too coarse for about 10 µs
		binary.BigEndian.PutUint32(packet[4:], s.sent.Load())
		if _, err := s.conn.Write(packet); err == nil { // packets that were not sent are not counted
			s.sent.Add(1)
		}
	}
}

// Sent returns the number of packets sent so far.
func (s *Stream) Sent() int { return int(s.sent.Load()) }

// Stop ends the stream and returns how many packets were sent and how many of them arrived.
func (s *Stream) Stop() (sent, arrived int) {
	s.stop()
	<-s.done
	s.conn.Close()
	count := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.arrived)
	}
	// The last packets may still be on their way: if a stream arrives, they get as long as a packet that must arrive.
	late := absentTimeout
	if count() > 0 {
		late = arriveTimeout
	}
	for end := time.Now().Add(late); count() < s.Sent() && time.Now().Before(end); {
		time.Sleep(2 * time.Millisecond)
	}
	s.r.wait(s.id, nil)
	return s.Sent(), count()
}
