package vppfake

import (
	"fmt"
	"math/rand/v2"
	glob "path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.fd.io/govpp/api"
)

// Fault describes which requests fail and how. A request is affected if Message matches its name, Match (if set) returns true, and Nth or
// Probability selects it; with neither, every matching request is affected.
type Fault struct {
	// Message is a message name or a pattern for path.Match: "ip_route_add_del_v2", "*_dump", "*".
	Message string
	// WritesOnly excludes requests that change no state.
	WritesOnly bool
	// Match inspects the request; nil: any request.
	Match func(api.Message) bool
	// Nth is the number, from 1, of the only matching request that fails.
	Nth int
	// Probability is the probability that a matching request fails.
	Probability float64
	// Times ends the fault after this number of hits; 0: never.
	Times int

	// Delay keeps VPP's main thread busy for this time before the request is handled.
	Delay time.Duration
	// Retval returns this error and does nothing. It is not for dumps: their replies have no field for it.
	Retval int32
	// LostReply applies the request and sends no reply; for a dump, the reply to the next ping is not sent either.
	LostReply bool
	// Disconnect closes the connection, the request is not applied.
	Disconnect bool
	// ApplyThenDisconnect applies the request and closes the connection without a reply.
	ApplyThenDisconnect bool
	// Freeze stops the fake before the request is handled, see Fake.Freeze.
	Freeze bool
	// Crash crashes VPP before the request is applied, see Fake.Crash.
	Crash bool
}

// Rule is an active Fault.
type Rule struct {
	faults *Faults
	fault  Fault
	seen   int
	hits   int
}

// Faults is the set of active faults. If several affect the same request, the one added first counts.
type Faults struct {
	mu    sync.Mutex
	rng   *rand.Rand
	rules []*Rule
}

// Add activates a fault. A Fault without an effect or with an invalid pattern is an error in the test: Add panics.
func (x *Faults) Add(f Fault) *Rule {
	if _, err := glob.Match(f.Message, ""); err != nil || f.Message == "" {
		panic(fmt.Sprintf("vppfake: fault with message pattern %q: %v", f.Message, err))
	}
	if f.Delay == 0 && f.Retval == 0 && !f.LostReply && !f.Disconnect && !f.ApplyThenDisconnect && !f.Freeze && !f.Crash {
		panic("vppfake: fault without effect")
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	r := &Rule{faults: x, fault: f}
	x.rules = append(x.rules, r)
	return r
}

// Clear ends all faults.
func (x *Faults) Clear() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rules = nil
}

// Remove ends the fault.
func (r *Rule) Remove() {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	r.faults.rules = slices.DeleteFunc(r.faults.rules, func(o *Rule) bool { return o == r })
}

// Hits returns the number of requests that the fault has affected.
func (r *Rule) Hits() int {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	return r.hits
}

// match returns the fault that affects request q of entry e.
func (x *Faults) match(e *entry, q message) (Fault, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range x.rules {
		if r.hitLocked(e, q) {
			return r.fault, true
		}
	}
	return Fault{}, false
}

func (r *Rule) hitLocked(e *entry, q message) bool {
	f := &r.fault
	if f.Times > 0 && r.hits >= f.Times {
		return false
	}
	if f.WritesOnly && e.access != writes {
		return false
	}
	if ok, _ := glob.Match(f.Message, e.name()); !ok {
		return false
	}
	if f.Match != nil && !f.Match(q) {
		return false
	}
	r.seen++
	switch {
	case f.Nth > 0 && r.seen != f.Nth:
		return false
	case f.Probability > 0 && r.faults.rng.Float64() >= f.Probability:
		return false
	}
	r.hits++
	return true
}

// beforeLocked applies the part of the fault that comes before the handler. done: the handler must not run; open: the session is alive.
func (f *Fake) beforeLocked(c *call, e *entry, fault Fault) (done, open bool) {
	if fault.Freeze {
		f.life.frozen = true
	}
	if fault.Delay > 0 {
		f.stallLocked(fault.Delay)
	}
	if fault.Freeze || fault.Delay > 0 {
		st := f.st
		if !f.waitLocked(c.session) || f.st != st {
			return true, false
		}
	}
	switch {
	case fault.Crash:
		f.crashLocked("injected at " + e.name())
		return true, false
	case fault.Disconnect:
		c.session.finish()
		return true, false
	case fault.Retval != 0 && e.fail != nil:
		c.session.postRetval(f.st.table.byName[e.fail().GetMessageName()].id, c.context, e.fail(), fault.Retval)
		return true, true
	}
	c.mute = fault.LostReply || fault.ApplyThenDisconnect
	return false, true
}

// afterLocked applies the part of the fault that comes after the handler.
func (f *Fake) afterLocked(s *session, fault Fault) (open bool) {
	if fault.ApplyThenDisconnect {
		s.finish()
		return false
	}
	return true
}

// ParseFault parses a Fault in the notation of scripts: the message pattern, then effects and conditions, for example "ip_route_add_del_v2
// nth=3 retval=-7" or "* writes p=0.1 disconnect". Effects: retval=N delay=D lost disconnect applydisconnect freeze crash. Conditions: nth=N
// p=F times=N writes.
func ParseFault(text string) (Fault, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return Fault{}, fmt.Errorf("empty fault")
	}
	f := Fault{Message: words[0]}
	for _, word := range words[1:] {
		if err := f.parse(word); err != nil {
			return Fault{}, fmt.Errorf("fault %q: %w", text, err)
		}
	}
	return f, nil
}

func (f *Fault) parse(word string) (err error) {
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "nth":
		f.Nth, err = strconv.Atoi(value)
	case "p":
		f.Probability, err = strconv.ParseFloat(value, 64)
	case "times":
		f.Times, err = strconv.Atoi(value)
	case "writes":
		f.WritesOnly = true
	case "retval":
		var n int64
		n, err = strconv.ParseInt(value, 10, 32)
		f.Retval = int32(n)
	case "delay":
		f.Delay, err = time.ParseDuration(value)
	case "lost":
		f.LostReply = true
	case "disconnect":
		f.Disconnect = true
	case "applydisconnect":
		f.ApplyThenDisconnect = true
	case "freeze":
		f.Freeze = true
	case "crash":
		f.Crash = true
	default:
		err = fmt.Errorf("unknown word %q", word)
	}
	return err
}
