package nodesync

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	controller "contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

// holds tracks the nodes that were known and have no record any more although they were not released: a database that was wiped, or
// restored from a backup, has lost their records. They are healthy and will put their records back. Until then, and at most for a limited
// time, this node treats them as present, so that the loss of the database loses no packet.
type holds struct {
	limit time.Duration
	now   func() time.Time
	held  map[string]hold // by node name; used by the event loop only

	mu   sync.Mutex
	next time.Time // guarded by mu; the time at which the first hold ends; zero when there is none
	wake chan struct{}
}

// hold is one held node. Its ID may also be claimed by another node that does not use it yet.
type hold struct {
	id  uint32
	end time.Time
}

func newHolds(limit time.Duration) *holds {
	return &holds{limit: limit, now: time.Now, held: map[string]hold{}, wake: make(chan struct{}, 1)}
}

// keep adds nodes to next, which holds the nodes according to the records: the nodes of prev that are missing in next and may still come
// back.
func (h *holds) keep(prev, next Nodes, s *sources) {
	now := h.now()
	for name, n := range prev {
		held, ok := h.held[name]
		if !ok || held.id != n.ID {
			held = hold{id: n.ID, end: now.Add(h.limit)}
		}
		delete(h.held, name)
		if next[name] == nil && now.Before(held.end) && !takenOver(s.records[n.ID]) {
			h.held[name] = held
			next[name] = n
		}
	}
	h.schedule()
}

// takenOver reports whether the ID was released or is used by another node. A node that has no addresses yet does not use the ID: it may
// have claimed an ID that only seems to be free, and would lose it again.
func takenOver(r *vppnode.VppNode) bool { return r != nil && (isReleased(r) || inUse(r)) }

// drop ends the holds of nodes with the ID and returns their names.
func (h *holds) drop(id uint32) (names []string) {
	for name, held := range h.held {
		if held.id == id {
			delete(h.held, name)
			names = append(names, name)
		}
	}
	h.schedule()
	slices.Sort(names)
	return names
}

// has reports whether the node is held.
func (h *holds) has(n *Node) bool {
	if n == nil {
		return false
	}
	held, ok := h.held[n.Name]
	return ok && held.id == n.ID
}

// over returns the names of the nodes whose hold has ended, in order.
func (h *holds) over() []string {
	now := h.now()
	var names []string
	for name, held := range h.held {
		if !now.Before(held.end) {
			names = append(names, name)
			delete(h.held, name)
		}
	}
	h.schedule()
	slices.Sort(names)
	return names
}

// schedule sets the time at which the next hold ends, for the job.
func (h *holds) schedule() {
	var first time.Time
	for _, held := range h.held {
		if first.IsZero() || held.end.Before(first) {
			first = held.end
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.next.Equal(first) {
		return
	}
	h.next = first
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *holds) deadline() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next
}

// run pushes an event when a hold ends, once for each end time: the event may wait in the queue for a long time, or be refused after a
// fatal error.
func (h *holds) run(ctx context.Context, push func(controller.Event) error) error {
	var reported time.Time
	for {
		end := h.deadline()
		var timer <-chan time.Time
		if !end.IsZero() && !end.Equal(reported) {
			timer = time.After(max(end.Sub(h.now()), minBackoff)) // the minimum prevents a busy loop while the queue has no room for the event
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.wake:
		case <-timer:
			err := push(&holdOver{})
			switch {
			case err == nil:
				reported = end
			case !errors.Is(err, controller.ErrQueueFull):
				return nil // the event loop has ended
			}
		}
	}
}

// holdOver is the event for nodes whose hold has ended.
type holdOver struct{}

var _ controller.UpdateEvent = (*holdOver)(nil)

// GetName implements controller.Event.
func (ev *holdOver) GetName() string { return "Missing Nodes Given Up" }

// String implements controller.Event.
func (ev *holdOver) String() string {
	return ev.GetName() + ": they have not put their records back into the cluster database"
}

// Method returns Update.
func (ev *holdOver) Method() controller.EventMethodType { return controller.Update }

// TransactionType returns BestEffort.
func (ev *holdOver) TransactionType() controller.UpdateTransactionType { return controller.BestEffort }

// Direction returns Reverse: nodes are removed.
func (ev *holdOver) Direction() controller.UpdateDirectionType { return controller.Reverse }

// IsBlocking returns false.
func (ev *holdOver) IsBlocking() bool { return false }

// Done does nothing: no caller waits for the event.
func (ev *holdOver) Done(error) {}
