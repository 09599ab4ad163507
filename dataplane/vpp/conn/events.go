package conn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"go.fd.io/govpp/api"
)

// Subscription delivers the events of one type.
type Subscription struct {
	// C delivers the events. When it is full, events are dropped (and counted): the subscriber must then query VPP
	// itself, as it must after each new session.
	C      <-chan api.Message
	events chan api.Message
	name   string
	enable api.Message
	from   *events

	mu   sync.Mutex
	on   *transport // transport on which enable was sent; guarded by mu
	drop atomic.Uint64
}

// events holds the subscriptions of a Conn.
type events struct {
	mu      sync.Mutex                                 // held while subs is replaced
	subs    atomic.Pointer[map[string][]*Subscription] // by event name
	dropped *atomic.Uint64
}

// Subscribe delivers the events of event's type. enable is the request that makes VPP send them (want_interface_events);
// it is sent in each session, before the session is announced. The error is VPP's refusal of enable.
func (c *Conn) Subscribe(ctx context.Context, event, enable api.Message, buffer int) (*Subscription, error) {
	ch := make(chan api.Message, buffer)
	s := &Subscription{C: ch, events: ch, name: event.GetMessageName(), enable: enable, from: &c.events}
	c.events.change(func(subs map[string][]*Subscription) { subs[s.name] = append(slices.Clone(subs[s.name]), s) })
	session := c.session.Load()
	if session.err() != nil {
		return s, nil
	}
	if err := c.enable(ctx, s, session.t); err != nil && !errors.Is(err, ErrDisconnected) {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the delivery. C is not closed.
func (s *Subscription) Close() {
	s.from.change(func(subs map[string][]*Subscription) {
		subs[s.name] = slices.DeleteFunc(slices.Clone(subs[s.name]), func(o *Subscription) bool { return o == s })
	})
}

// Dropped returns the number of events that did not fit into C.
func (s *Subscription) Dropped() uint64 { return s.drop.Load() }

// enable requests s's events from the VPP behind t, once. VPP refuses a second registration for the same events with
// INVALID_REGISTRATION, which is fine: the events are sent to this socket already.
func (c *Conn) enable(ctx context.Context, s *Subscription, t *transport) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.enable == nil || s.on == t {
		return nil
	}
	err := c.calls.invoke(ctx, t, s.enable, nil)
	if err != nil && !IsRetval(err, api.INVALID_REGISTRATION) {
		return fmt.Errorf("subscribe to %s: %w", s.name, err)
	}
	s.on = t
	return nil
}

// enableAll renews the subscriptions on a new transport. VPP's refusal of one subscription does not end the connection.
func (c *Conn) enableAll(ctx context.Context, t *transport) error {
	for _, subs := range *c.events.subs.Load() {
		for _, s := range subs {
			switch err := c.enable(ctx, s, t); {
			case IsRetval(err):
				c.log.Error("VPP rejected an event subscription", slog.Any("error", err))
			case err != nil:
				return err
			}
		}
	}
	return nil
}

func (e *events) init(dropped *atomic.Uint64) {
	e.dropped = dropped
	e.subs.Store(&map[string][]*Subscription{})
}

func (e *events) change(f func(subs map[string][]*Subscription)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	next := map[string][]*Subscription{}
	for name, subs := range *e.subs.Load() {
		next[name] = subs
	}
	f(next)
	e.subs.Store(&next)
}

// publish delivers an event to its subscribers without waiting for them.
func (e *events) publish(typ *msgType, data []byte) {
	subs := (*e.subs.Load())[typ.name]
	if len(subs) == 0 {
		return
	}
	m, err := typ.decode(data)
	if err != nil {
		return
	}
	for _, s := range subs {
		select {
		case s.events <- m:
		default:
			s.drop.Add(1)
			e.dropped.Add(1)
		}
	}
}
