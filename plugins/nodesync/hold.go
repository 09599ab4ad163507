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

// holds are the nodes that were known and have no record any more although nothing released them: a database that was wiped, or restored
// from a backup, has forgotten them. They are healthy and will put their records back; until then, and not for longer than a limit, this
// node goes on as if they were there, so that losing the database costs no packet.
type holds struct {
	limit time.Duration
	now   func() time.Time
	held  map[string]hold // by node name; used by the event loop only

	mu   sync.Mutex
	next time.Time // when the first one ends; zero when there is none
	wake chan struct{}
}

// hold is one node. Another one may have its ID too, one that does not use it yet.
type hold struct {
	id  uint32
	end time.Time
}

func newHolds(limit time.Duration) *holds {
	return &holds{limit: limit, now: time.Now, held: map[string]hold{}, wake: make(chan struct{}, 1)}
}

// keep adds to next, which is what the records say now, the nodes of prev that it lacks and that may still come back.
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

// takenOver says that the ID was released or is used by another node. One that has no addresses yet does not use it: it may
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

// over are the nodes whose time is over, in the order of names.
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

// schedule informs the job when the next hold ends.
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

// run pushes an event when a hold ends, once: it may wait in the queue for long, or be refused after a fatal error.
func (h *holds) run(ctx context.Context, push func(controller.Event) error) error {
	var told time.Time
	for {
		end := h.deadline()
		var timer <-chan time.Time
		if !end.IsZero() && !end.Equal(told) {
			timer = time.After(max(end.Sub(h.now()), minBackoff)) // not in a tight loop while there is no room for the event
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.wake:
		case <-timer:
			err := push(&holdOver{})
			switch {
			case err == nil:
				told = end
			case !errors.Is(err, controller.ErrQueueFull):
				return nil // the event loop has ended
			}
		}
	}
}

// holdOver says that some nodes do not come back.
type holdOver struct{}

var _ controller.UpdateEvent = (*holdOver)(nil)

// GetName implements controller.Event.
func (ev *holdOver) GetName() string { return "Missing Nodes Given Up" }

// String implements controller.Event.
func (ev *holdOver) String() string {
	return ev.GetName() + ": they have not put their records back into the cluster database"
}

// Method is Update.
func (ev *holdOver) Method() controller.EventMethodType { return controller.Update }

// TransactionType is BestEffort.
func (ev *holdOver) TransactionType() controller.UpdateTransactionType { return controller.BestEffort }

// Direction is Reverse: things go.
func (ev *holdOver) Direction() controller.UpdateDirectionType { return controller.Reverse }

// IsBlocking returns false.
func (ev *holdOver) IsBlocking() bool { return false }

// Done is NOOP: nothing waits.
func (ev *holdOver) Done(error) {}
