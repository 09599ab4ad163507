package traffic

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"contiv.dev/vswitch/test/testbed/netns"
)

// StreamOptions describe a stream.
type StreamOptions struct {
	Name string
	// Up: from the client to the server; Down: in the other direction. Both can be set.
	Up, Down bool
	// Rate is bytes per second in each direction, sent in bursts of Burst bytes as fast as possible; 0: without limit.
	Rate, Burst int64
	// StallTimeout is the time that a call may make no progress before the stream fails; 0: a minute.
	StallTimeout time.Duration
}

// Stream is a TCP connection that transfers checked bytes until it is stopped.
type Stream struct {
	StreamOptions
	// Up and Down count the bytes that have arrived and were right: at the server, and at the client.
	Up, Down atomic.Int64

	t       *Traffic
	id      uint64
	pattern *pattern
	sock    socket
	work    sync.WaitGroup
	served  chan struct{} // closed when the server's side has ended
	started atomic.Bool   // the server's side has started

	mu      sync.Mutex
	stopped bool
	err     error // the first error; guarded by mu
}

const dialTimeout = 10 * time.Second

// Stream starts a stream from a namespace to a server.
func (t *Traffic) Stream(from *netns.Namespace, to netip.AddrPort, o StreamOptions) (*Stream, error) {
	if o.StallTimeout <= 0 {
		o.StallTimeout = time.Minute
	}
	if o.Burst <= 0 {
		o.Burst = piece
	}
	id := t.lastID.Add(1)
	s := &Stream{StreamOptions: o, t: t, id: id, pattern: newPattern(id), served: make(chan struct{})}
	t.mu.Lock()
	t.streams[id] = s
	t.mu.Unlock()
	err := from.Do(func() (err error) { s.sock, err = dial(to, 0, dialTimeout); return err })
	if err == nil {
		if err = s.sock.limit(o.StallTimeout); err == nil {
			_, err = s.sock.Write(header{kind: bulk, id: id}.bytes())
		}
		if err != nil {
			err = errors.Join(err, s.sock.close())
		}
	}
	if err != nil {
		t.drop(id)
		return nil, fmt.Errorf("stream %s from %s: %w", o.Name, from.Name, err)
	}
	s.work.Go(func() { s.run(s.sock, o.Up, o.Down, &s.Down) })
	return s, nil
}

func (t *Traffic) drop(id uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.streams, id)
}

// serve runs the server's side.
func (s *Stream) serve(sock socket) {
	if s.started.Swap(true) {
		return // this is a second connection for the same stream
	}
	defer close(s.served)
	if err := sock.limit(s.StallTimeout); err != nil {
		s.fail("server", err)
		return
	}
	s.run(sock, s.StreamOptions.Down, s.StreamOptions.Up, &s.Up)
}

// run sends and receives on one side until one of them fails.
func (s *Stream) run(sock socket, send, receive bool, arrived *atomic.Int64) {
	var work sync.WaitGroup
	if send {
		work.Go(func() { s.fail("send", s.send(sock)); sock.abort() })
	}
	if receive {
		work.Go(func() { s.fail("receive", s.receive(sock, arrived)); sock.abort() })
	}
	work.Wait()
}

// send writes until the stream ends. Late bursts are skipped.
func (s *Stream) send(sock socket) error {
	var offset int64
	for next := time.Now(); ; {
		for end := offset + s.Burst; offset < end; {
			n := int(min(piece, end-offset))
			if _, err := sock.Write(s.pattern.at(offset, n)); err != nil {
				return err
			}
			offset += int64(n)
		}
		if s.Rate <= 0 {
			continue
		}
		next = next.Add(time.Duration(float64(s.Burst) / float64(s.Rate) * float64(time.Second)))
		if wait := time.Until(next); wait > 0 {
			time.Sleep(wait)
		} else {
			next = time.Now()
		}
	}
}

func (s *Stream) receive(sock socket, arrived *atomic.Int64) error {
	b := make([]byte, 2*piece)
	for {
		n, err := sock.Read(b)
		if err != nil {
			return err
		}
		offset := arrived.Load()
		if err := s.pattern.check(offset, b[:n]); err != nil {
			return err
		}
		arrived.Store(offset + int64(n))
	}
}

// fail records the first error. After Stop, only wrong bytes count as an error.
func (s *Stream) fail(what string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil || s.stopped && !errors.Is(err, ErrCorrupted) || s.err != nil && !errors.Is(err, ErrCorrupted) {
		return
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the other side has ended it")
	}
	s.err = fmt.Errorf("stream %s: %s: %w", s.Name, what, err)
}

// Err returns the error that has broken the stream so far.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Arrived returns the number of bytes in both directions.
func (s *Stream) Arrived() int64 { return s.Up.Load() + s.Down.Load() }

// Stop ends the stream, and returns the error that had broken it before.
func (s *Stream) Stop() error {
	s.mu.Lock()
	first := !s.stopped
	s.stopped = true
	s.mu.Unlock()
	if !first {
		return s.Err()
	}
	s.sock.abort()
	s.work.Wait()
	err := s.sock.reset()
	if s.started.Load() {
		<-s.served
	}
	s.t.drop(s.id)
	return errors.Join(s.Err(), err)
}
