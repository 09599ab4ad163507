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

// holds are the nodes that were known and have no record any more although nobody released them: a database that was wiped,
// or restored from a backup, has forgotten them. They are well and will put their records back; until then, and not for
// longer than a limit, this node goes on as if they were there, so that losing the database costs no packet.
type holds struct {
	limit time.Duration
	now   func() time.Time
	held  map[uint32]hold // by node ID; used by the event loop only

	mu   sync.Mutex
	next time.Time // when the first one ends; zero when there is none
	wake chan struct{}
}

// hold is one node.
type hold struct {
	name string
	end  time.Time
}

func newHolds(limit time.Duration) *holds {
	return &holds{limit: limit, now: time.Now, held: map[uint32]hold{}, wake: make(chan struct{}, 1)}
}

// keep adds to next, which is what the records say now, the nodes of prev that it lacks and that may still come back.
func (h *holds) keep(prev, next Nodes, s *sources) {
	now := h.now()
	for name, n := range prev {
		held, ok := h.held[n.ID]
		if !ok {
			held = hold{name: name, end: now.Add(h.limit)}
		}
		delete(h.held, n.ID)
		if next[name] == nil && now.Before(held.end) && !takenOver(s.records[n.ID]) {
			h.held[n.ID] = held
			next[name] = n
		}
	}
	h.schedule()
}

// takenOver says that the ID was released or is used by another node. One that has no addresses yet does not use it: it may
// have claimed an ID that only seems to be free, and would lose it again.
func takenOver(r *vppnode.VppNode) bool { return r != nil && (isReleased(r) || inUse(r)) }

// drop ends the hold of the node with the ID and returns its name; empty if there is none.
func (h *holds) drop(id uint32) string {
	held, ok := h.held[id]
	if ok {
		delete(h.held, id)
		h.schedule()
	}
	return held.name
}

// has says whether the node is held.
func (h *holds) has(n *Node) bool { return n != nil && h.held[n.ID].name == n.Name }

// over are the nodes whose time is over, in the order of names.
func (h *holds) over() []string {
	now := h.now()
	var names []string
	for id, held := range h.held {
		if !now.Before(held.end) {
			names = append(names, held.name)
			delete(h.held, id)
		}
	}
	h.schedule()
	slices.Sort(names)
	return names
}

// schedule tells the job when the next hold ends.
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

// run pushes an event when a hold ends.
func (h *holds) run(ctx context.Context, push func(controller.Event) error) error {
	for {
		var timer <-chan time.Time
		if end := h.deadline(); !end.IsZero() {
			timer = time.After(max(end.Sub(h.now()), minBackoff)) // not in a tight loop while the event waits in the queue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.wake:
		case <-timer:
			if err := push(&holdOver{}); err != nil && !errors.Is(err, controller.ErrQueueFull) {
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

// Done is NOOP: nobody waits.
func (ev *holdOver) Done(error) {}
