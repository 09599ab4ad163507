package conn

import (
	"reflect"
	"time"

	"go.fd.io/govpp/api"
)

// answer delivers one message from VPP to its request.
func (l *lane) answer(d delivery) {
	slot := l.flight.find(d.sequence)
	if slot == nil {
		return // belongs to a request that was abandoned
	}
	retval := int32(0)
	if d.err == nil {
		retval = d.typ.refusal(d.msg)
	}
	switch {
	case d.err != nil && slot.each != nil && !d.typ.last:
		slot.bad = d.err
	case d.err != nil:
		l.finish(slot, nil, &requestError{Message: slot.req.GetMessageName(), Sent: true, Err: d.err})
	case slot.each == nil:
		l.reply(slot, d.msg, retval)
	case d.typ.last || d.typ.name == slot.req.GetMessageName()+"_reply":
		l.endOfDump(slot, d.msg, retval)
	default:
		slot.each(d.msg)
	}
}

func (l *lane) reply(slot *slot, m api.Message, retval int32) {
	if retval != 0 {
		l.finish(slot, nil, &RetvalError{Message: slot.req.GetMessageName(), Retval: retval})
		return
	}
	l.finish(slot, m, nil)
}

// endOfDump ends a dump or, if VPP only paused, requests the rest.
func (l *lane) endOfDump(slot *slot, m api.Message, retval int32) {
	switch {
	case slot.bad != nil:
		l.finish(slot, nil, &requestError{Message: slot.req.GetMessageName(), Sent: true, Err: slot.bad})
	case api.VPPApiError(retval) == api.EAGAIN && isStream(slot.req):
		p := slot.pending
		reflect.ValueOf(p.req).Elem().FieldByName("Cursor").Set(reflect.ValueOf(m).Elem().FieldByName("Cursor"))
		l.flight.drop(slot)
		l.start(p)
	case retval != 0:
		l.finish(slot, nil, &RetvalError{Message: slot.req.GetMessageName(), Retval: retval})
	case isStream(slot.req):
		l.finish(slot, m, nil)
	default:
		l.finish(slot, nil, nil)
	}
}

func (l *lane) finish(slot *slot, m api.Message, err error) {
	p := slot.pending
	if trace := l.conn.cfg.Trace; trace != nil {
		traced := m
		if traced == nil {
			traced = p.req
		}
		trace(Received, traced, time.Duration(l.conn.clock.now()-slot.sent), err)
	}
	l.flight.drop(slot)
	p.done(m, err)
}

// abort ends all requests in flight.
func (l *lane) abort(err error) {
	l.endWhere(func(*slot) error { return err })
	l.advance()
}

// expire ends the requests that have exceeded their deadline.
func (l *lane) expire() {
	now, limit := l.conn.clock.now(), l.conn.cfg.RequestTimeout
	l.endWhere(func(s *slot) error {
		if l.flight.left(s, now, limit) > 0 {
			return nil
		}
		l.conn.counters.timeouts.Add(1)
		return ErrTimeout
	})
	l.advance()
}

// endWhere ends the requests in flight for which why returns an error. VPP may still carry them out.
func (l *lane) endWhere(why func(*slot) error) {
	l.post()
	l.depth++
	defer func() { l.depth-- }()
	end := l.flight.tail
	for seq := l.flight.head; seq != end; seq++ {
		s := l.flight.at(seq)
		if !s.busy || s.sequence != seq {
			continue
		}
		if err := why(s); err != nil {
			after := time.Duration(l.conn.clock.now() - s.sent)
			l.finish(s, nil, &requestError{Message: s.req.GetMessageName(), Sent: true, After: after, Err: err})
		}
	}
}
