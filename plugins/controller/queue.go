package controller

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"contiv.dev/vswitch/plugins/controller/api"
)

// Errors of PushEvent and PushFollowUp besides those of the api package.
var (
	// errBlockingFollowUp is returned for a follow-up for which a caller waits: code inside the loop cannot wait.
	errBlockingFollowUp = errors.New("a follow-up cannot be a blocking event")
	// errMalformedEvent is returned for events that break the contract of the api package.
	errMalformedEvent = errors.New("malformed event")
	// errCauseReverted is the argument of Done of a follow-up whose cause was reverted.
	errCauseReverted = errors.New("the event that this one follows up was undone")
)

const (
	// pushWaitLimit bounds how long a blocking event waits for room. If the queue does not move for this long, the loop hangs, for
	// example because a handler breaks the contract and pushes from inside the loop.
	pushWaitLimit = 30 * time.Second
	// startupReserve is the room that is kept for the start-up resync in a queue full of events that wait for it.
	startupReserve = 16
)

// item is an event in a queue.
type item struct {
	ev         api.Event
	followUpTo uint64
	dbResyncs  int // how many DBResync events were pushed before
	last       bool
}

// queue holds the events to be handled. All methods may be called from any goroutine. Only the loop calls the methods in the second half of
// this file.
type queue struct {
	limit  int
	admits func(api.Event) bool // reports whether an event may leave the main queue now; called by next
	wake   chan struct{}        // has a token when there may be a new event

	mu        sync.Mutex
	main      []*item       // guarded by mu
	followUps []*item       // guarded by mu
	reconnect *item         // guarded by mu; there is at most one, and the limit does not apply to it
	current   api.Event     // guarded by mu; the event that is being handled
	pushed    []*item       // guarded by mu; follow-ups of current, not yet queued
	seqNum    uint64        // guarded by mu; of current
	dbResyncs int           // guarded by mu
	closed    bool          // guarded by mu
	room      chan struct{} // guarded by mu; closed and replaced when there is room again or the queue is closed
}

func newQueue(limit int, admits func(api.Event) bool) *queue {
	return &queue{limit: limit, admits: admits, wake: make(chan struct{}, 1), room: make(chan struct{})}
}

// check returns an error if ev breaks the contract of the api package.
func check(ev api.Event) error {
	if ev == nil {
		return fmt.Errorf("%w: nil", errMalformedEvent)
	}
	if v := reflect.ValueOf(ev); !v.Comparable() || (v.Kind() == reflect.Pointer && v.IsNil()) {
		return fmt.Errorf("%w: a %T is nil or cannot be compared (events should be pointers)", errMalformedEvent, ev)
	}
	if _, ok := ev.(api.UpdateEvent); !ok && !ev.Method().IsResync() {
		return fmt.Errorf("%w: %s is an update but not an UpdateEvent", errMalformedEvent, ev.GetName())
	}
	return nil
}

// push queues an event from outside.
func (q *queue) push(ev api.Event) error {
	if err := check(ev); err != nil {
		return err
	}
	var expired <-chan time.Time
	for {
		room, err := q.tryPush(ev)
		if room == nil {
			return err
		}
		if expired == nil {
			timer := time.NewTimer(pushWaitLimit)
			defer timer.Stop()
			expired = timer.C
		}
		select {
		case <-room:
		case <-expired:
			return fmt.Errorf("%w: %s waited for %s", api.ErrQueueFull, ev.GetName(), pushWaitLimit)
		}
	}
}

// tryPush queues ev. If a later attempt may succeed, it returns a channel to wait for.
func (q *queue) tryPush(ev api.Event) (room <-chan struct{}, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, dbResync := ev.(*api.DBResync)
	limit := q.limit
	if dbResync {
		limit += startupReserve
	}
	switch {
	case q.closed:
		return nil, api.ErrClosed
	case len(q.main) < limit:
	case ev.IsBlocking():
		return q.room, nil
	default:
		return nil, api.ErrQueueFull
	}
	q.main = append(q.main, &item{ev: ev, dbResyncs: q.dbResyncs})
	if dbResync {
		q.dbResyncs++
	}
	q.signal()
	return nil, nil
}

// pushLast queues the event after which the loop ends. The limit does not apply to it.
func (q *queue) pushLast(ev api.Event) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return api.ErrClosed
	}
	q.main = append(q.main, &item{ev: ev, dbResyncs: q.dbResyncs, last: true})
	q.signal()
	return nil
}

// pushReconnect queues ev. It replaces a reconnect that has not been handled yet.
func (q *queue) pushReconnect(ev *DataplaneReconnect) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return api.ErrClosed
	}
	q.reconnect = &item{ev: ev}
	q.signal()
	return nil
}

// pushFollowUp queues a follow-up of the event being handled.
func (q *queue) pushFollowUp(cause, ev api.Event) error {
	if err := check(ev); err != nil {
		return err
	}
	if ev.IsBlocking() {
		return fmt.Errorf("%w: %s", errBlockingFollowUp, ev.GetName())
	}
	if err := check(cause); err != nil {
		return fmt.Errorf("cause: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.current == nil || q.current != cause:
		return fmt.Errorf("%w: %s", api.ErrNotHandled, cause.GetName())
	case q.closed:
		return api.ErrClosed
	case len(q.followUps)+len(q.pushed) >= q.limit:
		return api.ErrQueueFull
	}
	q.pushed = append(q.pushed, &item{ev: ev, followUpTo: q.seqNum})
	return nil
}

// length returns the number of events that wait.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.main) + len(q.followUps) + len(q.pushed)
	if q.reconnect != nil {
		n++
	}
	return n
}

// close makes later pushes fail and returns all events that will not be handled.
func (q *queue) close() []*item {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil
	}
	q.closed = true
	rest := slices.Concat(q.followUps, q.pushed, q.main)
	if q.reconnect != nil {
		rest = append(rest, q.reconnect)
	}
	q.followUps, q.pushed, q.main, q.reconnect = nil, nil, nil, nil
	close(q.room)
	q.signal()
	return rest
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// nextFollowUp takes the oldest follow-up.
func (q *queue) nextFollowUp() *item {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.followUps) == 0 {
		return nil
	}
	it := q.followUps[0]
	q.followUps[0] = nil
	q.followUps = q.followUps[1:]
	return it
}

// next takes the next event that is admitted. Before the start-up resync, events that are not admitted keep their place. superseded are the
// changes that the returned snapshot contains, and a reconnect that waits at the start of a full resync; the returned event is handled instead of them.
func (q *queue) next() (it *item, superseded []*item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if it = q.reconnect; it != nil && q.admits(it.ev) {
		q.reconnect = nil
		return it, nil
	}
	i := slices.IndexFunc(q.main, func(it *item) bool { return q.admits(it.ev) })
	if i < 0 {
		return nil, nil
	}
	it = q.main[i]
	if i == 0 {
		q.main[0] = nil
		q.main = q.main[1:]
	} else {
		q.main = slices.Delete(q.main, i, i+1)
		superseded = q.supersededLocked(it, i)
	}
	if q.reconnect != nil && it.ev.Method() == api.FullResync {
		superseded = append(superseded, q.reconnect) // a full resync dumps the dataplane, too
		q.reconnect = nil
	}
	if len(q.main) < q.limit {
		close(q.room)
		q.room = make(chan struct{})
	}
	return it, superseded
}

// supersededLocked removes, from the first n events, the changes of the cluster's state that the snapshot by contains and overtakes in the
// queue: replaying them after the snapshot would restore objects that the snapshot no longer has. The very first snapshot is an exception:
// changes from before it are replayed (see the duties of code that pushes events in doc.go).
func (q *queue) supersededLocked(by *item, n int) (superseded []*item) {
	if _, dbResync := by.ev.(*api.DBResync); !dbResync || by.dbResyncs == 0 {
		return nil
	}
	kept := make([]*item, 0, len(q.main))
	for i, it := range q.main {
		if _, change := it.ev.(*api.KubeStateChange); change && i < n {
			superseded = append(superseded, it)
			continue
		}
		kept = append(kept, it)
	}
	q.main = kept
	return superseded
}

// takeChanges removes and returns the queued changes of the cluster's state, up to the first snapshot.
func (q *queue) takeChanges() (taken []*item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	end := slices.IndexFunc(q.main, func(it *item) bool { _, is := it.ev.(*api.DBResync); return is })
	if end < 0 {
		end = len(q.main)
	}
	kept := make([]*item, 0, len(q.main))
	for i, it := range q.main {
		if _, change := it.ev.(*api.KubeStateChange); change && i < end {
			taken = append(taken, it)
			continue
		}
		kept = append(kept, it)
	}
	if q.main = kept; len(taken) > 0 && len(q.main) < q.limit {
		close(q.room)
		q.room = make(chan struct{})
	}
	return taken
}

// begin sets the event that is being handled, and its number.
func (q *queue) begin(ev api.Event, seqNum uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.current, q.seqNum = ev, seqNum
}

// mark returns the number of follow-ups that have been pushed for the current event so far.
func (q *queue) mark() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.pushed)
}

// end queues the follow-ups of the current event except for the first n, which it returns without queuing them.
func (q *queue) end(n int) (dropped []*item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.current = nil
	dropped = q.pushed[:min(n, len(q.pushed))]
	q.followUps = append(q.followUps, q.pushed[len(dropped):]...)
	q.pushed = nil
	return dropped
}
