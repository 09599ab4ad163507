package conn

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
)

// calls holds the requests made one at a time.
type calls struct {
	conn *Conn

	mu      sync.Mutex
	last    uint32                   // guarded by mu
	waiting map[uint32]chan delivery // guarded by mu
}

func (c *calls) init(conn *Conn) {
	c.conn, c.waiting = conn, map[uint32]chan delivery{}
}

func (c *calls) deliver(batch []delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range batch {
		if ch, ok := c.waiting[d.sequence]; ok {
			delete(c.waiting, d.sequence)
			ch <- d // the channel has a buffer of one
		}
	}
}

func (c *calls) add() (uint32, chan delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for used := true; used; {
		c.last = c.last%sequenceMask + 1
		_, used = c.waiting[c.last]
	}
	ch := make(chan delivery, 1)
	c.waiting[c.last] = ch
	return c.last, ch
}

func (c *calls) remove(sequence uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, sequence)
}

// invoke makes a request on t.
func (c *calls) invoke(ctx context.Context, t *transport, req, reply api.Message) error {
	name := req.GetMessageName()
	id, err := t.number(req)
	if err == nil {
		err = neverSend(req)
	}
	if err != nil {
		return &requestError{Message: name, Err: err}
	}
	sequence, ch := c.add()
	defer c.remove(sequence)
	frame, err := appendFrame(nil, id, t.client, callReceiver<<sequenceBits|sequence, req)
	if err != nil {
		return &requestError{Message: name, Err: err}
	}
	start := time.Now()
	c.conn.counters.countInvoked(name, req)
	c.trace(Sent, req, 0, nil)
	m, err := c.await(ctx, t, frame, ch)
	if err != nil {
		err = &requestError{Message: name, Sent: true, After: time.Since(start), Err: err}
	} else if retval := m.typ.refusal(m.msg); retval != 0 {
		err = &RetvalError{Message: name, Retval: retval}
		_ = assign(reply, m.msg) // the reply may describe the failure, as in cli_inband
	}
	if err != nil {
		c.trace(Received, req, time.Since(start), err)
		return err
	}
	c.trace(Received, m.msg, time.Since(start), nil)
	return assign(reply, m.msg)
}

func (c *calls) await(ctx context.Context, t *transport, frame []byte, ch chan delivery) (delivery, error) {
	if err := t.send(frame, c.conn.cfg.RequestTimeout); err != nil {
		return delivery{}, fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	timer := time.NewTimer(c.conn.cfg.RequestTimeout)
	defer timer.Stop()
	select {
	case d := <-ch:
		return d, d.err
	case <-t.done:
		return delivery{}, fmt.Errorf("%w: %w", ErrDisconnected, t.err)
	case <-timer.C:
		c.conn.counters.timeouts.Add(1)
		return delivery{}, ErrTimeout
	case <-ctx.Done():
		return delivery{}, fmt.Errorf("%w: %w", ErrCanceled, context.Cause(ctx))
	}
}

func (c *calls) trace(dir Direction, m api.Message, took time.Duration, err error) {
	if trace := c.conn.cfg.Trace; trace != nil {
		trace(dir, m, took, err)
	}
}

// ping sends a ping whose answer is a sign of life. Nothing waits for the answer.
func (c *calls) ping(t *transport) {
	ping := new(memclnt.ControlPing)
	id, err := t.number(ping)
	if err != nil {
		return
	}
	if frame, err := appendFrame(nil, id, t.client, callReceiver<<sequenceBits, ping); err == nil {
		_ = t.trySend(frame, c.conn.cfg.HealthTimeout) // a failure ends the connection
	}
}

// fence waits, without a time limit, until VPP has answered all requests sent before.
func (c *calls) fence(ctx context.Context, t *transport) error {
	ping := new(memclnt.ControlPing)
	id, err := t.number(ping)
	if err != nil {
		return err
	}
	sequence, ch := c.add()
	defer c.remove(sequence)
	frame, err := appendFrame(nil, id, t.client, callReceiver<<sequenceBits|sequence, ping)
	if err != nil {
		return err
	}
	if err := t.send(frame, c.conn.cfg.RequestTimeout); err != nil {
		return fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	select {
	case <-ch:
		return nil
	case <-t.done:
		return t.err
	case <-ctx.Done():
		return ErrClosed
	}
}

func assign(to, from api.Message) error {
	if to == nil {
		return nil
	}
	target, value := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	if target.Type() != value.Type() {
		return fmt.Errorf("VPP replied with %s, not with %s", from.GetMessageName(), to.GetMessageName())
	}
	target.Set(value)
	return nil
}
