package httpapi

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// connLimiter holds the connections of a listener. When there are too many, the connection that has been inactive for longest is closed in favour
// of the new one: a user that opens connections without end blocks no client, and in particular not a kubelet's probe, which takes a
// millisecond.
type connLimiter struct {
	most int

	mu      sync.Mutex
	members map[net.Conn]*member // guarded by mu
}

// member is a connection.
type member struct {
	limiter *connLimiter
	since   time.Time // time when it was opened, or began or ended a request; guarded by limiter.mu
	idle    bool      // guarded by limiter.mu
	kept    bool      // a request that changes something is running; guarded by limiter.mu
}

type memberKey struct{}

func newConnLimiter(most int) *connLimiter {
	return &connLimiter{most: most, members: map[net.Conn]*member{}}
}

// enter is http.Server.ConnContext, which is called before the first state change.
func (c *connLimiter) enter(ctx context.Context, conn net.Conn) context.Context {
	m := &member{limiter: c, since: time.Now()}
	c.mu.Lock()
	c.members[conn] = m
	c.mu.Unlock()
	return context.WithValue(ctx, memberKey{}, m)
}

// changed is http.Server.ConnState.
func (c *connLimiter) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	if m := c.members[conn]; m != nil {
		m.since, m.idle = time.Now(), state == http.StateIdle
	}
	var leaves net.Conn
	switch state {
	case http.StateClosed, http.StateHijacked:
		delete(c.members, conn)
	case http.StateNew:
		if len(c.members) > c.most {
			leaves = c.longest(conn)
			delete(c.members, leaves)
		}
	}
	c.mu.Unlock()
	if leaves != nil {
		hangUp(leaves)
	}
}

// longest returns the connection to close: an idle one if there is any, and the new one if all others must be kept.
func (c *connLimiter) longest(newest net.Conn) net.Conn {
	var found net.Conn
	var best *member
	for conn, m := range c.members {
		if m.kept || conn == newest {
			continue
		}
		if best == nil || m.idle && !best.idle || m.idle == best.idle && m.since.Before(best.since) {
			found, best = conn, m
		}
	}
	if found == nil {
		return newest
	}
	return found
}

// hangUp closes a connection without a TLS close message, because the caller may not read it.
func hangUp(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	_ = conn.Close()
}

// keep keeps the connection of a request until release is called.
func keep(ctx context.Context) (release func()) {
	m, ok := ctx.Value(memberKey{}).(*member)
	if !ok {
		return func() {}
	}
	set := func(kept bool) {
		m.limiter.mu.Lock()
		defer m.limiter.mu.Unlock()
		m.kept = kept
	}
	set(true)
	return func() { set(false) }
}
