package conn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/vpe"
)

// session is one period in the state Connected.
type session struct {
	t     *transport
	boot  string // of the VPP process; empty in a session without VPP
	ping  uint16 // number of control_ping
	once  sync.Once
	done  chan struct{}
	cause error // valid after done; wraps ErrDisconnected
}

func newSession(t *transport, boot string) *session {
	ping, _ := t.number(new(memclnt.ControlPing)) // checked in identify
	return &session{t: t, boot: boot, ping: ping, done: make(chan struct{})}
}

func endedSession(cause error) *session {
	s := &session{done: make(chan struct{})}
	s.end(cause)
	return s
}

func (s *session) end(cause error) {
	s.once.Do(func() {
		s.cause = cause
		close(s.done)
	})
}

func (s *session) err() error {
	select {
	case <-s.done:
		return s.cause
	default:
		return nil
	}
}

// peer identifies the VPP process that answered.
type peer struct {
	boot, version string
	pid           uint32
}

// supervise connects and serves the connection, again and again.
func (c *Conn) supervise(ctx context.Context) error {
	defer c.away(ErrClosed)
	failures := 0
	for ctx.Err() == nil {
		t, remote, err := c.connect(ctx)
		if ctx.Err() != nil {
			if err == nil {
				t.fail(ctx.Err()) // otherwise the reader waits for it forever
			}
			break
		}
		if err != nil {
			c.away(err)
			c.pause(ctx, &failures, err)
			continue
		}
		failures = 0
		c.serve(ctx, t, remote)
	}
	return ctx.Err()
}

// connect makes a connection that is ready for a session.
func (c *Conn) connect(ctx context.Context) (*transport, peer, error) {
	t, err := dial(ctx, c.cfg.Socket, c.cfg.Client, c.cfg.HealthTimeout)
	if err != nil {
		return nil, peer{}, err
	}
	select {
	case c.reading <- t:
	case <-ctx.Done():
		t.fail(ctx.Err())
		return nil, peer{}, ctx.Err()
	}
	remote, err := c.identify(ctx, t)
	if err == nil {
		err = c.enableAll(ctx, t)
	}
	if err != nil {
		t.fail(err)
		return nil, peer{}, err
	}
	return t, remote, nil
}

// identify determines which VPP process this is, and whether it can be used.
func (c *Conn) identify(ctx context.Context, t *transport) (peer, error) {
	var remote peer
	var version vpe.ShowVersionReply
	if err := c.calls.invoke(ctx, t, new(vpe.ShowVersion), &version); err == nil {
		remote.version = version.Version
	} else if !errors.Is(err, ErrUnknownMessage) {
		return remote, err
	}
	if err := c.types.check(t.ids, c.cfg.Require, remote.version); err != nil {
		return remote, err
	}
	if c.cfg.Accept != nil {
		if err := c.cfg.Accept(ctx, Candidate{c, t, remote.version}); err != nil {
			return remote, err
		}
	}
	var ping memclnt.ControlPingReply
	if err := c.calls.invoke(ctx, t, new(memclnt.ControlPing), &ping); err != nil {
		return remote, err
	}
	remote.pid = ping.VpePID
	remote.boot = fmt.Sprintf("%d/%s", remote.pid, t.socket)
	return remote, nil
}

// pause waits before the next attempt. If no VPP is running, the wait is short; if the running VPP is unusable, the wait
// grows with each failure, unless VPP restarts.
func (c *Conn) pause(ctx context.Context, failures *int, err error) {
	wait := c.cfg.Reconnect
	if errors.Is(err, ErrNotResponding) || rejected(err) {
		wait = min(c.cfg.Reconnect<<min(*failures, 10), c.cfg.ReconnectMax)
		*failures++
	} else {
		*failures = 0
	}
	before, _ := socketIdentity(c.cfg.Socket)
	tick := time.NewTicker(c.cfg.Reconnect)
	defer tick.Stop()
	for waited := time.Duration(0); waited < wait; waited += c.cfg.Reconnect {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now, _ := socketIdentity(c.cfg.Socket); now != before {
			return
		}
	}
}

// rejected reports whether err is about a VPP that cannot be used as long as it runs.
func rejected(err error) bool {
	var incompatible *IncompatibleError
	return errors.Is(err, ErrRejected) || errors.As(err, &incompatible)
}

// serve runs sessions on t until the connection is lost.
func (c *Conn) serve(ctx context.Context, t *transport, remote peer) {
	c.begin(t, remote)
	for {
		err := c.watch(ctx, t)
		if !errors.Is(err, errFrozen) {
			c.lose(Disconnected, t, err)
			return
		}
		c.lose(NotResponding, t, fmt.Errorf("%w for %s", ErrNotResponding, c.cfg.HealthTimeout))
		if err := c.thaw(ctx, t); err != nil {
			c.lose(Disconnected, t, err)
			return
		}
		c.begin(t, remote)
	}
}

var errFrozen = errors.New("VPP sends nothing and does not reply to a ping")

// watch returns when the connection is lost or VPP gives no sign of life. Any message is a sign of life. Time is counted
// in ticks: while this process itself was stopped, there were none.
func (c *Conn) watch(ctx context.Context, t *transport) error {
	tick := min(c.cfg.HealthInterval, c.cfg.HealthTimeout) / 2
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	heard, silent, queried := t.lastRx.Load(), time.Duration(0), false
	for {
		select {
		case <-ctx.Done():
			return ErrClosed
		case <-t.done:
			return t.err
		case <-ticker.C:
		}
		if rx := t.lastRx.Load(); rx != heard {
			heard, silent, queried = rx, 0, false
			continue
		}
		silent += tick
		switch {
		case !queried && silent >= c.cfg.HealthInterval:
			queried, silent = true, 0
			c.calls.ping(t)
		case queried && silent >= c.cfg.HealthTimeout:
			return errFrozen
		}
	}
}

// thaw waits until VPP has woken up and has answered everything that was sent to it before. It does so twice, since a lane
// may have been about to write when the session ended.
func (c *Conn) thaw(ctx context.Context, t *transport) error {
	for range 2 {
		if err := c.calls.fence(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// begin starts a session and announces it.
func (c *Conn) begin(t *transport, remote peer) {
	c.counters.connects.Add(1)
	c.session.Store(newSession(t, remote.boot))
	c.change(func(s *State) {
		s.NewBoot = remote.boot != s.BootID
		s.Status, s.Err = Connected, nil
		s.Session++
		s.BootID, s.PID, s.Version = remote.boot, remote.pid, remote.version
	})
	s := c.State()
	c.log.Info("connected to VPP", "version", s.Version, "boot", s.BootID, "newBoot", s.NewBoot)
}

// lose ends the session, and the connection unless VPP is only frozen.
func (c *Conn) lose(status Status, t *transport, err error) {
	if !errors.Is(err, ErrDisconnected) {
		err = fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	if status == Disconnected {
		t.fail(err)
	}
	c.session.Load().end(err)
	c.log.Warn("the connection to VPP is lost", "status", status.String(), slog.Any("error", err))
	c.change(func(s *State) { s.Status, s.Err, s.NewBoot = status, err, false })
}

// away records why there is no connection.
func (c *Conn) away(err error) {
	if !errors.Is(err, ErrDisconnected) {
		err = fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	status := Disconnected
	if errors.Is(err, ErrNotResponding) {
		status = NotResponding
	}
	if s := c.State(); s.Status == status && s.Err != nil && s.Err.Error() == err.Error() {
		return
	}
	c.session.Load().end(err)
	c.session.Store(endedSession(err))
	if rejected(err) {
		c.log.Error("this VPP cannot be used", slog.Any("error", err), "socket", c.cfg.Socket)
	} else {
		c.log.Warn("VPP cannot be reached; retrying", "socket", c.cfg.Socket, slog.Any("error", err))
	}
	c.change(func(s *State) { s.Status, s.Err, s.NewBoot = status, err, false })
}

func (c *Conn) change(f func(*State)) {
	b := &c.board
	b.mu.Lock()
	before := b.state.Status
	f(&b.state)
	if b.state.Status != before {
		b.state.Since = time.Now()
	}
	state, watchers := b.state, b.watchers
	b.mu.Unlock()
	for _, w := range watchers {
		w(state)
	}
}
