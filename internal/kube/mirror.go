package kube

import (
	"sync"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/controller/api"
)

// mirror holds the known state of the cluster, and its differences from the state that the event loop has received. It does no I/O and has
// no clock.
//
// Until the first snapshot is taken there are no differences. After a local snapshot the differences are only computed when every kind is
// complete: then the whole state is compared with the local one.
type mirror struct {
	limit int           // maximum number of differences; above it a resync is cheaper
	saved bool          // there is a local copy
	wake  chan struct{} // has a token when next may return a new event

	mu       sync.Mutex
	kinds    map[string]*mirrored     // by keyword; guarded by mu
	reported bool                     // a snapshot has been taken; guarded by mu
	base     map[string]proto.Message // content of a local snapshot, until it can be compared; guarded by mu
	order    []string                 // keys of prev in the order of their first change, and gaps; guarded by mu
	prev     map[string]proto.Message // by key of each difference: the value that the loop has received (nil: none); guarded by mu
	resync   bool                     // a snapshot is due; guarded by mu
	unsaved  map[string]bool          // keys that differ from the local copy; guarded by mu
	counts   counts                   // guarded by mu
}

// mirrored holds one kind of objects.
type mirrored struct {
	complete bool
	values   map[string]proto.Message
}

// counts has totals since the start.
type counts struct {
	changed, same, lists uint64
}

func newMirror(keywords []string, limit int) *mirror {
	m := &mirror{
		limit: limit, wake: make(chan struct{}, 1), kinds: map[string]*mirrored{}, prev: map[string]proto.Message{},
		unsaved: map[string]bool{},
	}
	for _, keyword := range keywords {
		m.kinds[keyword] = &mirrored{values: map[string]proto.Message{}}
	}
	return m
}

// set stores the current value of one object; nil: the object does not exist.
func (m *mirror) set(keyword, key string, value proto.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setLocked(m.kinds[keyword], key, value)
	m.overflowLocked()
	m.signal()
}

// replace stores all objects of a kind, which is complete from then on.
func (m *mirror) replace(keyword string, values map[string]proto.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kinds[keyword]
	m.counts.lists++
	for key := range k.values {
		if values[key] == nil {
			m.setLocked(k, key, nil)
		}
	}
	for key, value := range values {
		m.setLocked(k, key, value)
	}
	k.complete = true
	if m.base != nil && m.completeLocked() {
		m.compareLocked()
	}
	m.overflowLocked()
	m.signal()
}

// setLocked changes one value and records the difference. If the new value equals the old one, the old message stays, since others share
// it.
func (m *mirror) setLocked(k *mirrored, key string, value proto.Message) {
	old := k.values[key]
	if equal(old, value) {
		m.counts.same++
		return
	}
	m.counts.changed++
	if value == nil {
		delete(k.values, key)
	} else {
		k.values[key] = value
	}
	if m.saved {
		m.unsaved[key] = true
	}
	if m.reported && m.base == nil && !m.resync {
		m.differLocked(key, old, value)
	}
}

// differLocked records that the value of a key changes from old to value.
func (m *mirror) differLocked(key string, old, value proto.Message) {
	reported, known := m.prev[key]
	switch {
	case !known:
		m.prev[key] = old
		m.order = append(m.order, key)
	case equal(reported, value): // the value is again the one that the loop has
		delete(m.prev, key)
	}
}

// compareLocked converts the difference to a local snapshot into changes.
func (m *mirror) compareLocked() {
	base := m.base
	m.base = nil
	for _, k := range m.kinds {
		for key, value := range k.values {
			if old := base[key]; !equal(old, value) {
				m.differLocked(key, old, value)
			}
			delete(base, key)
		}
	}
	for key, old := range base {
		m.differLocked(key, old, nil)
	}
}

// overflowLocked replaces single changes with a resync when there are too many. It also removes the gaps, keys that no longer differ, from
// order when order becomes too long.
func (m *mirror) overflowLocked() {
	if len(m.prev) > m.limit {
		m.resyncLocked()
	}
	if len(m.order) > 2*len(m.prev)+m.limit {
		kept, seen := m.order[:0], make(map[string]bool, len(m.prev))
		for _, key := range m.order {
			if _, differs := m.prev[key]; differs && !seen[key] {
				seen[key] = true
				kept = append(kept, key)
			}
		}
		m.order = kept
	}
}

func (m *mirror) resyncLocked() {
	m.resync = true
	m.order, m.prev = nil, map[string]proto.Message{}
}

// requestResync makes a snapshot due.
func (m *mirror) requestResync() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reported && m.base == nil {
		m.resyncLocked()
	}
	m.signal()
}

// next returns the next event for the loop; nil when there is none. The caller makes sure that the event is delivered.
func (m *mirror) next() api.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.completeLocked() {
		return nil
	}
	if !m.reported || m.resync {
		m.reported, m.resync = true, false
		return &api.DBResync{KubeState: m.snapshotLocked()}
	}
	for len(m.order) > 0 {
		key := m.order[0]
		m.order[0] = ""
		m.order = m.order[1:]
		prev, differs := m.prev[key]
		if !differs {
			continue
		}
		delete(m.prev, key)
		keyword := model.KeywordOf(key)
		ev := &api.KubeStateChange{Resource: keyword, Key: key, PrevValue: prev}
		if value := m.kinds[keyword].values[key]; value != nil {
			ev.NewValue = value
		}
		return ev
	}
	return nil
}

// local returns a local snapshot, unless a snapshot has been reported already.
func (m *mirror) local(values map[string]proto.Message) *api.DBResync {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reported {
		return nil
	}
	m.reported = true
	m.base = values
	ev := &api.DBResync{Local: true, KubeState: api.KubeStateData{}}
	for keyword := range m.kinds {
		ev.KubeState[keyword] = api.KeyValuePairs{}
	}
	for key, value := range values {
		ev.KubeState[model.KeywordOf(key)][key] = value
	}
	if m.completeLocked() {
		m.compareLocked()
		m.overflowLocked()
		m.signal()
	}
	return ev
}

func (m *mirror) snapshotLocked() api.KubeStateData {
	data := make(api.KubeStateData, len(m.kinds))
	for keyword, k := range m.kinds {
		kvs := make(api.KeyValuePairs, len(k.values))
		for key, value := range k.values {
			kvs[key] = value
		}
		data[keyword] = kvs
	}
	return data
}

// missing returns the kinds that have never been complete.
func (m *mirror) missing() (keywords []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for keyword, k := range m.kinds {
		if !k.complete {
			keywords = append(keywords, keyword)
		}
	}
	return keywords
}

func (m *mirror) completeLocked() bool {
	for _, k := range m.kinds {
		if !k.complete {
			return false
		}
	}
	return true
}

// takeUnsaved returns the values that have changed since the last call (nil: deleted), once all kinds are complete: before that the local
// copy has more than the mirror.
func (m *mirror) takeUnsaved() map[string]proto.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.unsaved) == 0 || !m.completeLocked() {
		return nil
	}
	out := make(map[string]proto.Message, len(m.unsaved))
	for key := range m.unsaved {
		out[key] = m.kinds[model.KeywordOf(key)].values[key]
	}
	m.unsaved = map[string]bool{}
	return out
}

// notSaved marks values that could not be saved as unsaved again.
func (m *mirror) notSaved(values map[string]proto.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range values {
		m.unsaved[key] = true
	}
}

func (m *mirror) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// equal reports whether two values of one key, each of which may be nil, are equal.
func equal(a, b proto.Message) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return proto.Equal(a, b)
}
