package vppfake

import (
	"encoding/binary"
	"fmt"
	"maps"
)

// call is one request that is being handled. Handlers access the fake's state through it.
type call struct {
	*state
	session *session
	context uint32

	reply  *entry // entry of the reply, set by the registered handler
	mute   bool   // no reply is sent
	abort  string // not empty: VPP would have aborted on this request; the reason
	hangup bool   // the connection ends after the reply
}

// send sends one detail.
func (c *call) send(e *entry, msg message) {
	if !c.mute {
		c.session.post(e.id, c.context, msg)
	}
}

// die marks the request as one that aborts VPP; the handler must then return nil.
func (c *call) die(reason string) { c.abort = reason }

// refuse records a request that the fake answers with an error because it does not support it.
func (c *call) refuse(q message, reason string) {
	c.session.fake.refuseLocked(Refusal{Message: q.GetMessageName(), Reason: reason})
}

// dispatch handles one request; it returns false when the session is over. VPP's main thread handles all requests that it has read before it
// processes packets again: while more are available (more), no walk continues in between.
func (f *Fake) dispatch(s *session, msg []byte, more bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	open := f.dispatchLocked(s, msg)
	f.turnLocked(s, open && more)
	return open
}

// turnLocked records whether a session has more requests available.
func (f *Fake) turnLocked(s *session, more bool) {
	switch {
	case more && !s.more:
		f.life.turns++
	case !more && s.more:
		f.life.turns--
		f.idle.Broadcast()
	}
	s.more = more
}

func (f *Fake) dispatchLocked(s *session, msg []byte) bool {
	if !f.waitLocked(s) {
		return false
	}
	if len(msg) < 2 {
		f.refuseLocked(Refusal{Message: "?", Reason: fmt.Sprintf("%d bytes", len(msg))})
		return true
	}
	id := binary.BigEndian.Uint16(msg)
	e := f.st.table.lookup(id)
	if e == nil || e.handle == nil {
		f.refuseLocked(Refusal{Message: describe(e, id), Reason: "no handler"})
		return true
	}
	header := headerSize(e.msg)
	if len(msg) < header {
		f.refuseLocked(Refusal{Message: e.name(), Reason: "truncated message: header"})
		return true
	}
	if i := peerIndex(msg); i != s.index && header == requestHeader {
		f.refuseLocked(Refusal{Message: e.name(), Reason: fmt.Sprintf("client index %#x is not this connection's", i)})
		return true
	}
	body := msg[header:]
	if e.guard != nil && !e.guard(body) {
		f.refuseLocked(Refusal{Message: e.name(), Reason: "truncated message: count"})
		return true
	}
	q, err := e.decode(body)
	if err != nil {
		f.refuseLocked(Refusal{Message: e.name(), Reason: err.Error()})
		return true
	}
	e.requests++
	if e.access == writes {
		f.tally.writes++
	}
	return f.serveLocked(s, e, q, binary.BigEndian.Uint32(msg[header-4:]))
}

func describe(e *entry, id uint16) string {
	if e == nil {
		return fmt.Sprintf("id %d", id)
	}
	return e.name()
}

// serveLocked runs the handler of e between the faults that are injected before and after it.
func (f *Fake) serveLocked(s *session, e *entry, q message, context uint32) bool {
	c := &call{state: f.st, session: s, context: context}
	fault, hit := f.Faults.match(e, q)
	if hit {
		done, open := f.beforeLocked(c, e, fault)
		if done || !open {
			return open
		}
	}
	if s.lostPings > 0 && e.name() == pingName {
		s.lostPings--
		c.mute = true
	}
	reply := e.handle(c, q)
	if c.abort != "" {
		f.crashLocked(c.abort)
		return false
	}
	if hit && fault.LostReply && reply == nil {
		s.lostPings++ // the reply to a ping is the end of a dump: VPP never loses a detail in the middle of a dump
	}
	if reply != nil && !c.mute {
		s.post(c.reply.id, context, reply)
	}
	c.publish()
	if c.hangup {
		s.finish()
		return false
	}
	if hit {
		return f.afterLocked(s, fault)
	}
	return true
}

// Requests returns the number of received requests by message since the last ResetCounts.
func (f *Fake) Requests() map[string]uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.collectLocked()
	return maps.Clone(f.tally.requests)
}

// Writes returns the number of received requests that change VPP's state since the last ResetCounts.
func (f *Fake) Writes() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tally.writes
}

// ResetCounts sets Requests and Writes to zero and clears Refused and Crashes.
func (f *Fake) ResetCounts() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.collectLocked()
	f.tally = tally{requests: map[string]uint64{}}
}

// Refused returns the messages that the fake did not respond because they are unknown or cannot be decoded.
func (f *Fake) Refused() []Refusal {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Refusal(nil), f.tally.refused...)
}

// Crashes returns the reasons of all crashes, including requests that abort VPP.
func (f *Fake) Crashes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.tally.crashes...)
}

// collectLocked adds the counters of the message table, which a crash deletes, to the tally.
func (f *Fake) collectLocked() {
	if f.st == nil {
		return
	}
	for name, e := range f.st.table.byName {
		if e.requests > 0 {
			f.tally.requests[name] += e.requests
			e.requests = 0
		}
	}
}
