package httpapi

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// crowd are the connections of a listener. When there are too many, the one that has done nothing for longest makes room for the new one: a
// user that opens connections without end locks nothing out, a kubelet's probe least of all, which takes a millisecond.
type crowd struct {
	most int

	mu      sync.Mutex
	members map[net.Conn]*member // guarded by mu
}

// member is a connection.
type member struct {
	crowd *crowd
	since time.Time // guarded by crowd.mu; when it was opened, began or ended a request
	idle  bool      // guarded by crowd.mu
	kept  bool      // guarded by crowd.mu; a request that changes something is in work
}

type memberKey struct{}

func newCrowd(most int) *crowd { return &crowd{most: most, members: map[net.Conn]*member{}} }

// enter is http.Server.ConnContext, which comes before the first state.
func (c *crowd) enter(ctx context.Context, conn net.Conn) context.Context {
	m := &member{crowd: c, since: time.Now()}
	c.mu.Lock()
	c.members[conn] = m
	c.mu.Unlock()
	return context.WithValue(ctx, memberKey{}, m)
}

// changed is http.Server.ConnState.
func (c *crowd) changed(conn net.Conn, state http.ConnState) {
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

// longest is the connection to close: an idle one if there is any, and the new one if all others must be kept.
func (c *crowd) longest(newest net.Conn) net.Conn {
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

// hangUp closes a connection without saying so to a caller that may not listen.
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
		m.crowd.mu.Lock()
		defer m.crowd.mu.Unlock()
		m.kept = kept
	}
	set(true)
	return func() { set(false) }
}
