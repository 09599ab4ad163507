package conn

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
)

// lane is the implementation of Lane. Only the lane's goroutine uses it, except for the mailbox.
type lane struct {
	conn    *Conn
	number  uint32 // as a receiver; 0 if there are too many lanes
	box     mailbox
	session *session // the session to which the current batch is bound
	bound   binding
	routes  map[string]*route // by message name, for the session
	boot    string            // boot ID of the last VPP process
	onBoot  func()            // called when the lane meets another VPP process; may be nil
	flight  flight            // sent and unanswered
	out     outbox            // encoded and unsent
	inbox   []delivery        // taken from the mailbox; those before read have been handled
	read    int
	ended   []ending  // requests that ended in the agent, without VPP
	backlog []pending // requests of callbacks that wait for room
	depth   int       // number of callbacks now running
	unread  int       // bytes written since all requests had been answered: VPP may not have read them yet
	held    bool      // do not write: see WriteAtOnce
	giveUp  error     // reject all requests: Flush was cancelled
	timer   *time.Timer
}

// pending is a request with its callbacks; each is set for dumps only.
type pending struct {
	req  api.Message
	each func(api.Message)
	done func(api.Message, error)
}

// binding is how long a lane stays with its session.
type binding int

const (
	unbound binding = iota // the next request binds to the current session
	batched                // until the end of Flush
	pinned                 // until the next Pin
)

type ending struct {
	pending
	err error
}

// route holds the data that a lane needs to send messages of one type.
type route struct {
	id     uint16
	crc    string
	err    error // this VPP does not have it
	stream bool  // …_get with details: ends with its own reply instead of a ping
	tally  tally
}

// outbox collects frames to write together: each write wakes VPP, and VPP reads 4 kB at a time.
type outbox struct {
	frames []byte
	count  int
}

const (
	outboxBytes = 4 << 10
	outboxCount = 16
)

func newLane(c *Conn, number uint32) *Lane {
	l := &Lane{lane: lane{conn: c, number: number}}
	l.box.wake = make(chan struct{}, 1)
	l.flight.init(c.cfg.Window)
	return l
}

func (l *lane) request(req api.Message, done func(api.Message, error)) {
	l.start(pending{req: req, done: done})
}

func (l *lane) dump(req api.Message, each func(api.Message), done func(error)) {
	l.start(pending{req: req, each: each, done: func(_ api.Message, err error) { done(err) }})
}

// start sends p, waiting for room in the window. A callback never waits: its requests are queued, and sent in order when the requests
// before them have been answered.
func (l *lane) start(p pending) {
	if l.depth > 0 && (len(l.backlog) > 0 || !l.flight.room()) {
		l.backlog = append(l.backlog, p)
		return
	}
	if !l.flight.room() || len(l.backlog) > 0 {
		l.makeRoom()
	}
	l.send(p)
}

// makeRoom waits until half of the window is free. If it returned at the first answer, requests would be sent one by one, each in its own
// write.
func (l *lane) makeRoom() {
	for l.flight.count > l.flight.window/2 || !l.flight.room() || len(l.backlog) > 0 {
		l.wait(nil)
	}
}

func (l *lane) send(p pending) {
	l.bind()
	s := l.session
	switch {
	case l.giveUp != nil:
		l.end(p, l.giveUp)
		return
	case s.err() != nil:
		l.end(p, s.err())
		return
	}
	r := l.route(p.req)
	if r.err != nil {
		l.end(p, r.err)
		return
	}
	if err := neverSend(p.req); err != nil {
		l.end(p, err)
		return
	}
	if err := l.encode(p, r); err != nil {
		l.end(p, err)
		return
	}
	l.flight.add(p, l.conn.clock.now())
	r.tally.count()
	if trace := l.conn.cfg.Trace; trace != nil {
		trace(Sent, p.req, 0, nil)
	}
	if !l.held && (l.out.count >= outboxCount || len(l.out.frames) >= outboxBytes || l.flight.count == 1) {
		l.post()
	}
}

func (l *lane) encode(p pending, r *route) (err error) {
	t := l.session.t
	context := l.number<<sequenceBits | l.flight.next()&sequenceMask
	before := len(l.out.frames)
	l.out.frames, err = appendFrame(l.out.frames, r.id, t.client, context, p.req)
	if err == nil && p.each != nil && !r.stream {
		l.out.frames, err = appendFrame(l.out.frames, l.session.ping, t.client, context, new(memclnt.ControlPing))
	}
	if err != nil {
		l.out.frames = l.out.frames[:before]
		return err
	}
	l.out.count++
	return nil
}

// end ends a request that does not reach VPP. Its callback runs where all callbacks run, in Flush or while waiting.
func (l *lane) end(p pending, err error) {
	l.ended = append(l.ended, ending{p, &requestError{Message: p.req.GetMessageName(), Err: err}})
}

// Pin binds the lane to the current session until the next Pin: when that session ends, all requests fail until Pin is called again. It
// must not be called while requests are in flight. Without Pin a lane is bound from its first request to the end of Flush, and then again
// from the next request. Call Pin at the start of work that belongs together, such as a resync and the changes after it, so that nothing
// computed for one VPP process reaches the next one.
func (l *Lane) Pin() {
	l.bound = unbound
	l.bind()
	l.bound = pinned
}

// Peer implements scheduler.Peer: it returns the boot ID of the VPP process that the lane is pinned to.
func (l *Lane) Peer() (boot string, alive bool) {
	l.bind()
	return l.session.boot, l.session.err() == nil
}

// bind binds a batch of requests to the current session. If the session ends, the rest of the batch fails: it was computed for that VPP
// process and must not reach a new one.
func (l *lane) bind() {
	if l.bound != unbound {
		return
	}
	l.bound = batched
	s := l.conn.session.Load()
	if s == l.session {
		return
	}
	l.session, l.routes = s, map[string]*route{}
	l.out = outbox{frames: l.out.frames[:0]}
	if s.boot == "" || s.boot == l.boot {
		return
	}
	if l.boot = s.boot; l.onBoot != nil {
		l.onBoot()
	}
}

// OnBoot sets a function that is called, on the lane's goroutine, before the first request to a VPP process other than the last one:
// numbers that the last process assigned are invalid, or mean something else, in the new one.
func (l *Lane) OnBoot(f func()) { l.onBoot = f }

func (l *lane) route(m api.Message) *route {
	name := m.GetMessageName()
	if r, ok := l.routes[name]; ok && r.crc == m.GetCrcString() {
		return r
	}
	r := &route{crc: m.GetCrcString()}
	r.id, r.err = l.session.t.number(m)
	if l.number == 0 {
		r.err = fmt.Errorf("more than %d lanes", maxReceivers-callReceiver-1)
	}
	r.stream = isStream(m)
	r.tally = l.conn.counters.of(name)
	l.routes[name] = r
	return r
}

// isStream reports whether m is a dump of the newer kind, which has a cursor to continue at.
func isStream(m api.Message) bool {
	f, ok := reflect.TypeOf(m).Elem().FieldByName("Cursor")
	return ok && f.Type.Kind() == reflect.Uint32
}

// post writes the encoded frames.
func (l *lane) post() {
	if l.out.count == 0 {
		return
	}
	if l.flight.count == l.out.count {
		l.unread = 0
	}
	l.unread += len(l.out.frames)
	if l.session.err() == nil {
		// an error ends the session, and with it the requests
		_ = l.session.t.send(l.out.frames, l.conn.cfg.RequestTimeout)
	}
	l.out.frames, l.out.count = l.out.frames[:0], 0
}

func (l *lane) busy() bool {
	return l.flight.count > 0 || len(l.ended) > 0 || len(l.backlog) > 0 || l.read < len(l.inbox)
}

func (l *lane) flush(ctx context.Context) {
	for l.busy() {
		if ctx.Err() != nil {
			l.giveUp = fmt.Errorf("%w: %w", ErrCanceled, context.Cause(ctx))
			l.handle() // answers that came before the cancellation
			l.abort(l.giveUp)
			l.handle() // requests that abort has ended
			continue
		}
		l.wait(ctx.Done())
	}
	l.giveUp = nil
	if l.bound == batched {
		l.bound = unbound
	}
}

// wait handles at least one answer, the end of the session, an expired deadline, or cancel.
func (l *lane) wait(cancel <-chan struct{}) {
	l.post()
	if l.handle() {
		return
	}
	if l.flight.count == 0 {
		return
	}
	s := l.session
	select {
	case <-l.box.wake:
		l.handle()
	case <-s.done:
		l.handle() // answers that came before the end
		l.abort(s.err())
	case <-l.alarm():
		l.timer = nil
		l.expire()
	case <-cancel:
	}
}

// alarm fires at or before the deadline of the oldest request.
func (l *lane) alarm() <-chan time.Time {
	if l.timer == nil {
		l.timer = time.NewTimer(l.flight.leftOldest(l.conn.clock.now(), l.conn.cfg.RequestTimeout))
	}
	return l.timer.C
}

// handle runs the callbacks of requests that were answered or ended, and reports whether there were any.
func (l *lane) handle() bool {
	if l.read == len(l.inbox) {
		clear(l.inbox)
		l.inbox, l.read = l.box.take(l.inbox), 0
	}
	some := l.read < len(l.inbox) || len(l.ended) > 0 || (len(l.backlog) > 0 && l.flight.room())
	if l.read < len(l.inbox) {
		l.flight.progress = l.conn.clock.now()
	}
	l.depth++
	for l.read < len(l.inbox) {
		d := l.inbox[l.read]
		l.read++
		l.answer(d)
	}
	for len(l.ended) > 0 {
		ended := l.ended
		l.ended = nil
		for _, e := range ended {
			e.done(nil, e.err)
		}
	}
	l.depth--
	l.advance()
	return some
}

// advance sends the requests that callbacks have queued.
func (l *lane) advance() {
	n := 0
	for n < len(l.backlog) && (l.flight.room() || l.giveUp != nil) {
		p := l.backlog[n]
		l.backlog[n] = pending{}
		n++
		l.send(p)
	}
	if l.backlog = l.backlog[n:]; len(l.backlog) == 0 {
		l.backlog = nil
	}
}
