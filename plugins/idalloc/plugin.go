package idalloc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"contiv.dev/vswitch/internal/lifecycle"
	controller "contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/idalloc/idallocation"
)

// stopTimeout bounds Close.
const stopTimeout = 15 * time.Second

// IDAlloc implements API and is a handler of the event loop. It must come before the handlers that use it.
type IDAlloc struct {
	Deps
	store  *store
	worker *worker
	jobs   *lifecycle.Group

	// used by the event loop only
	pools map[string]*pool
	known map[labelID]Allocation // as in the database, or just confirmed by it
	used  map[labelID]uint32     // the IDs that this node has got and uses
	fails map[labelID]error      // the reason why a label has no ID yet
}

var (
	_ API                     = (*IDAlloc)(nil)
	_ controller.EventHandler = (*IDAlloc)(nil)
)

// NewPlugin returns an IDAlloc; Init starts its job.
func NewPlugin(deps Deps) *IDAlloc {
	if deps.PluginName == "" {
		deps.SetName("idalloc")
	}
	if deps.Quarantine == 0 {
		deps.Quarantine = DefaultQuarantine
	}
	return &IDAlloc{
		Deps: deps, pools: map[string]*pool{}, known: map[labelID]Allocation{}, used: map[labelID]uint32{},
		fails: map[labelID]error{},
	}
}

// Init starts the job that accesses the database.
func (p *IDAlloc) Init() error {
	if p.Node == "" || p.EventLoop == nil || p.DB == nil {
		return errors.New("idalloc: Node, EventLoop or DB is missing in Deps")
	}
	p.store = &store{db: p.DB, owner: p.Node, quarantine: p.Quarantine, log: p.Logger()}
	p.worker = newWorker(p.store, p.EventLoop.PushEvent, p.Logger())
	p.jobs = lifecycle.NewGroup(context.Background(), p.Logger()) // Close ends it
	p.jobs.Go("idalloc", p.worker.run)
	if p.HTTPHandlers != nil {
		p.HTTPHandlers.RegisterHTTPHandler(allocationsPath, p.serveAllocations)
		p.HTTPHandlers.RegisterHTTPHandler(releasePath, p.serveRelease, http.MethodPost)
	}
	return nil
}

// Close ends the job. Unfinished requests are lost, as in a crash: labels that are needed are requested again after the start.
func (p *IDAlloc) Close() error {
	if p.jobs == nil {
		return nil
	}
	if err := p.jobs.Stop(stopTimeout); err != nil {
		return fmt.Errorf("idalloc: %w", err)
	}
	return nil
}

// InitPool implements API.
func (p *IDAlloc) InitPool(name string, ids Range, reserved ...uint32) error {
	next, err := newPool(name, ids, reserved)
	if err != nil {
		return fmt.Errorf("idalloc: %w", err)
	}
	if old := p.pools[name]; old != nil && !old.same(next.entry()) {
		return fmt.Errorf("idalloc: pool %s is in use here with the IDs %d to %d", name, old.ids.Min, old.ids.Max)
	}
	p.pools[name] = next
	return nil
}

// GetOrAllocateID implements API.
func (p *IDAlloc) GetOrAllocateID(pool, label string) (uint32, error) {
	in, id := p.pools[pool], labelID{pool, label}
	switch {
	case in == nil:
		return 0, fmt.Errorf("idalloc: pool %s: %w", pool, ErrNoPool)
	case label == "":
		return 0, fmt.Errorf("idalloc: pool %s: the label is empty", pool)
	case p.worker == nil:
		return 0, errors.New("idalloc: Init has not been called")
	}
	pending, release := p.worker.pending(pool, label)
	if a, ok := p.known[id]; ok && !release && in.ids.has(a.ID) {
		p.used[id] = a.ID
		return a.ID, nil
	}
	if !pending || release {
		p.worker.enqueue(&request{pool: in, label: label})
	}
	if err := p.fails[id]; err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("idalloc: pool %s: label %s: %w", pool, label, ErrPending)
}

// ReleaseID implements API.
func (p *IDAlloc) ReleaseID(pool, label string) error {
	in, id := p.pools[pool], labelID{pool, label}
	if in == nil || p.worker == nil {
		return fmt.Errorf("idalloc: pool %s: %w", pool, ErrNoPool)
	}
	delete(p.used, id)
	delete(p.fails, id)
	if a, ok := p.known[id]; ok && a.Owner != p.Node {
		return fmt.Errorf("idalloc: pool %s: label %s: %w: %s", pool, label, ErrNotOwner, a.Owner)
	}
	p.worker.enqueue(&request{pool: in, label: label, release: true})
	return nil
}

// HandlesEvent selects resyncs, changes of allocations, and the events of the job.
func (p *IDAlloc) HandlesEvent(event controller.Event) bool {
	switch ev := event.(type) {
	case *controller.KubeStateChange:
		return ev.Resource == Keyword
	case *Allocated, *released:
		return true
	}
	return event.Method().IsResync()
}

// Resync reads all allocations again. An allocation that this node uses and that is missing in the database stays known and is restored. If
// the database has another ID for a label, this ID is used, and it is known to the handlers that follow.
func (p *IDAlloc) Resync(_ controller.Event, state controller.KubeStateData, _ int, _ controller.ResyncOperations) error {
	before := p.known
	p.known = make(map[labelID]Allocation, len(state[Keyword]))
	for key, value := range state[Keyword] {
		if e, ok := value.(*idallocation.Entry); ok {
			p.setAllocation(key, e)
		}
	}
	for id, was := range p.used {
		if a, ok := p.known[id]; ok {
			p.used[id] = a.ID
			continue
		}
		if a, ok := before[id]; ok {
			p.known[id] = a
		}
		p.putBack(id, was)
	}
	return nil
}

// setAllocation stores an allocation from the database; keys of another kind are ignored.
func (p *IDAlloc) setAllocation(key string, e *idallocation.Entry) (id labelID, ok bool) {
	pool, label, ok := splitLabelKey(key)
	if !ok {
		return labelID{}, false
	}
	id = labelID{pool, label}
	if e.GetLabel() != label || e.GetId() == 0 {
		p.Logger().Error("an allocation in the cluster database is broken and is skipped; delete it", "key", key)
		return id, false
	}
	p.known[id] = allocationOf(e)
	return id, true
}

// putBack requests that the allocation of a label that this node uses is restored.
func (p *IDAlloc) putBack(id labelID, was uint32) {
	if in := p.pools[id.pool]; in != nil && p.worker != nil {
		p.worker.enqueue(&request{pool: in, label: id.label, had: was})
	}
}

// Update handles changes of allocations and the events of the job.
func (p *IDAlloc) Update(event controller.Event, _ controller.UpdateOperations) (string, error) {
	switch ev := event.(type) {
	case *Allocated:
		return p.allocated(ev), nil
	case *released:
		id := labelID{ev.Pool, ev.Label}
		if _, used := p.used[id]; !used { // else the ID is in use again
			delete(p.known, id)
		}
		return fmt.Sprintf("release %s in pool %s", ev.Label, ev.Pool), nil
	case *controller.KubeStateChange:
		if ev.Resource == Keyword {
			return p.changed(ev)
		}
	}
	return "", nil
}

// allocated handles the result of a request.
func (p *IDAlloc) allocated(ev *Allocated) string {
	id := labelID{ev.Pool, ev.Label}
	if ev.Err != nil {
		if wanted, release := p.worker.pending(ev.Pool, ev.Label); wanted && !release { // the request may have been withdrawn meanwhile
			p.fails[id] = ev.Err
		}
		return ""
	}
	delete(p.fails, id)
	p.known[id] = Allocation{Label: ev.Label, ID: ev.ID, Owner: ev.owner}
	if _, used := p.used[id]; used {
		p.used[id] = ev.ID
	}
	return fmt.Sprintf("%s in pool %s has the ID %d", ev.Label, ev.Pool, ev.ID)
}

// changed handles a change in the database.
func (p *IDAlloc) changed(ev *controller.KubeStateChange) (string, error) {
	if e, ok := ev.NewValue.(*idallocation.Entry); ok && e != nil {
		id, ok := p.setAllocation(ev.Key, e)
		was, used := p.used[id]
		if !ok || !used || was == e.GetId() {
			return "", nil
		}
		p.used[id] = e.GetId()
		p.Logger().Warn("a label that this node uses has another ID now, probably because the cluster database lost data",
			"pool", id.pool, "label", id.label, "id", e.GetId(), "oldID", was)
		err := p.EventLoop.PushFollowUp(ev, &Allocated{
			Pool: id.pool, Label: id.label, ID: e.GetId(), PrevID: was, owner: e.GetOwner(),
		})
		return fmt.Sprintf("%s in pool %s has the ID %d instead of %d", id.label, id.pool, e.GetId(), was), err
	}
	pool, label, ok := splitLabelKey(ev.Key)
	if !ok {
		return "", nil
	}
	id := labelID{pool, label}
	if was, used := p.used[id]; used {
		p.Logger().Warn("a label that this node uses was released or lost; this node restores it", "pool", pool, "label", label, "id", was)
		p.putBack(id, was)
		return fmt.Sprintf("restore %s in pool %s", label, pool), nil
	}
	delete(p.known, id)
	return "", nil
}

// Revert does nothing: the allocations of an event that failed remain, and are found when the event is repeated.
func (p *IDAlloc) Revert(controller.Event) error { return nil }
