package kube

import (
	"maps"
	"sync"

	"contiv.dev/vswitch/plugins/controller/api"
)

// Join merges the events of several sources, each of which has its own part of the cluster's state: the event loop treats a DBResync as
// the whole state. The first one is pushed when every part has delivered its own; after that, a part's resync is pushed together with
// the last state of the other parts.
type Join struct {
	sink EventSink

	mu    sync.Mutex // held while an event is pushed, so that events are pushed in order
	parts []*Part    // guarded by mu
}

// Part is the sink of one source.
type Part struct {
	join     *Join
	identity bool
	known    bool              // guarded by join.mu
	local    bool              // guarded by join.mu; the snapshot is a local copy
	state    api.KubeStateData // guarded by join.mu; nil before known
}

// NewJoin returns a Join that pushes to sink.
func NewJoin(sink EventSink) *Join { return &Join{sink: sink} }

// NewPart adds a part; all parts are added before the first event. identity is true for the part whose local copy makes the joined
// snapshot a local one: the cluster database, from which nodes have their identity.
func (j *Join) NewPart(identity bool) *Part {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := &Part{join: j, identity: identity}
	j.parts = append(j.parts, p)
	return p
}

// PushEvent implements EventSink. After an error nothing has changed; after ErrQueueFull the caller may retry.
func (p *Part) PushEvent(event api.Event) error {
	p.join.mu.Lock()
	defer p.join.mu.Unlock()
	switch ev := event.(type) {
	case *api.DBResync:
		return p.resyncLocked(ev)
	case *api.KubeStateChange:
		return p.changeLocked(ev)
	}
	return p.join.sink.PushEvent(event)
}

func (p *Part) resyncLocked(ev *api.DBResync) error {
	before := *p
	p.known, p.local = true, ev.Local
	p.state = make(api.KubeStateData, len(ev.KubeState))
	for resource, kvs := range ev.KubeState {
		p.state[resource] = maps.Clone(kvs)
	}
	if !p.join.readyLocked() {
		return nil
	}
	all := &api.DBResync{KubeState: api.KubeStateData{}}
	for _, part := range p.join.parts {
		all.Local = all.Local || (part.identity && part.local)
		for resource, kvs := range part.state {
			all.KubeState[resource] = maps.Clone(kvs)
		}
	}
	if err := p.join.sink.PushEvent(all); err != nil {
		p.known, p.local, p.state = before.known, before.local, before.state
		return err
	}
	return nil
}

// changeLocked pushes a change. Before the first joined snapshot it only records the change.
func (p *Part) changeLocked(ev *api.KubeStateChange) error {
	if p.join.readyLocked() {
		if err := p.join.sink.PushEvent(ev); err != nil {
			return err
		}
	}
	if p.state == nil {
		return nil // the first snapshot contains the change
	}
	kvs := p.state[ev.Resource]
	if kvs == nil {
		kvs = api.KeyValuePairs{}
		p.state[ev.Resource] = kvs
	}
	if ev.NewValue == nil {
		delete(kvs, ev.Key)
	} else {
		kvs[ev.Key] = ev.NewValue
	}
	return nil
}

func (j *Join) readyLocked() bool {
	for _, p := range j.parts {
		if !p.known {
			return false
		}
	}
	return true
}
