package relay

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/clusterdb/cas"
	"contiv.dev/vswitch/internal/kube/model"
)

// Limits of one write: etcd accepts 128 operations and 1.5 MiB.
const (
	maxOps   = 100
	maxBytes = 512 << 10
)

// table holds the wanted state and the state in etcd. Keys are absolute keys of etcd. It does no I/O and has no clock.
type table struct {
	wake chan struct{} // has a token when next or markerDue may return something new

	mu     sync.Mutex
	want   map[string]string // guarded by mu; nil: not known yet
	have   map[string]stored // guarded by mu; nil: not known
	marker bool              // guarded by mu; etcd has the marker
	// dirty maps the keys that differ to their place in the order of first differences.
	dirty   map[string]uint64 // guarded by mu
	order   []place           // guarded by mu; with gaps: places that are no longer in dirty
	places  uint64            // guarded by mu; number of places so far
	refused map[string]string // guarded by mu; keys whose objects cannot be written, with the reason; want has a closed version or none
	limit   int               // guarded by mu; maximum size of one write
	foreign uint64            // guarded by mu; number of changes that another program made
}

// stored is a value in etcd. gone is true for a value that we have deleted at rev, until the feed of etcd has confirmed this.
type stored struct {
	data string
	rev  int64
	gone bool
}

type place struct {
	key    string
	number uint64
}

func newTable() *table {
	return &table{wake: make(chan struct{}, 1), dirty: map[string]uint64{}, refused: map[string]string{}, limit: maxBytes}
}

// setAll sets the complete wanted state; refused has the keys whose objects cannot be written, with the reason.
func (t *table) setAll(want, refused map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if refused == nil {
		refused = map[string]string{}
	}
	t.want, t.refused = want, refused
	t.compareLocked()
}

// set sets the wanted value of one key.
func (t *table) set(key, data string) { t.put(key, form{data: data, exists: true}) }

// remove marks a key as to be deleted.
func (t *table) remove(key string) { t.put(key, form{}) }

// put sets the wanted form of an object.
func (t *table) put(key string, f form) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.want != nil { // else the first complete state contains the change
		t.putLocked(key, f)
	}
}

// replace sets the wanted form of an object, unless its value is no longer the given one.
func (t *table) replace(key, was string, f form) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now, there := t.want[key]; there && now == was {
		t.putLocked(key, f)
	}
}

func (t *table) putLocked(key string, f form) {
	delete(t.refused, key)
	delete(t.want, key)
	if f.exists {
		t.want[key] = f.data
	}
	if f.refused != "" {
		t.refused[key] = f.refused
	}
	t.refreshLocked(key)
	t.signalLocked()
}

// isRefused reports whether the object of a key cannot be written.
func (t *table) isRefused(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refused[key] != ""
}

// refusedKeys returns the keys of the objects that cannot be written, with the reason.
func (t *table) refusedKeys() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.refused)
}

// shrink halves the size of later writes, because etcd rejects the present one.
func (t *table) shrink() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limit /= 2
}

// each visits the wanted values of a resource, with their keys in events.
func (t *table) each(keyword string, visit func(key, data string)) {
	prefix := clusterdb.KSRPrefix + model.Prefix(keyword)
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, data := range t.want {
		if strings.HasPrefix(key, prefix) {
			visit(strings.TrimPrefix(key, clusterdb.KSRPrefix), data)
		}
	}
}

// load sets the state in etcd. It returns true if there are values but not the marker: a user may be deleting the values at
// this moment.
func (t *table) load(values []cas.Value) (suspicious bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.have = make(map[string]stored, len(values))
	t.marker, t.limit = false, maxBytes
	for _, v := range values {
		t.storeLocked(v.Key, string(v.Value), v.Rev)
	}
	t.compareLocked()
	return len(values) > 0 && !t.marker
}

// invalidate discards the state in etcd, which is no longer known.
func (t *table) invalidate() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.have, t.marker = nil, false
	t.compareLocked()
}

// observe applies changes in etcd, including our own. It reports whether some of them come from another program.
func (t *table) observe(changes []cas.Value) (foreign bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.have == nil {
		return false
	}
	for _, c := range changes {
		had := t.have[c.Key]
		switch {
		case c.Key == markerKey:
			t.marker = c.Value != nil
			foreign = foreign || !t.marker
			continue
		case c.Rev < had.rev:
			continue // we have changed the key since
		case c.Rev == had.rev:
			if had.gone {
				delete(t.have, c.Key)
			}
			continue
		case c.Value == nil:
			delete(t.have, c.Key)
		default:
			t.storeLocked(c.Key, string(c.Value), c.Rev)
		}
		foreign = true
		t.foreign++
		t.refreshLocked(c.Key)
	}
	t.signalLocked()
	return foreign
}

// next returns the writes that are due, up to the limits of one transaction; nil: none is due.
func (t *table) next() []cas.Write {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []cas.Write
	size := 0
	for _, p := range t.order {
		if t.dirty[p.key] != p.number {
			continue
		}
		w := cas.Write{Key: p.key}
		if data, there := t.want[p.key]; there {
			w.Value = []byte(data)
		}
		size += len(w.Key) + len(w.Value)
		if len(out) == maxOps || (len(out) > 0 && size > t.limit) {
			break
		}
		out = append(out, w)
	}
	return out
}

// written records that etcd has accepted the writes of next, at a revision.
func (t *table) written(writes []cas.Write, rev int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range writes {
		if w.Value == nil {
			t.have[w.Key] = stored{rev: rev, gone: true}
		} else {
			t.storeLocked(w.Key, string(w.Value), rev)
		}
		t.refreshLocked(w.Key)
	}
	t.trimLocked()
	t.signalLocked()
}

// markerDue reports whether only the marker is missing in etcd.
func (t *table) markerDue() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.markerDueLocked()
}

func (t *table) markerDueLocked() bool {
	return t.want != nil && t.have != nil && !t.marker && len(t.dirty) == 0
}

// marked records that the marker is written.
func (t *table) marked() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.marker = true
}

// known reports whether the wanted state is known.
func (t *table) known() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.want != nil
}

// storeLocked records a value of etcd. A value that equals the wanted one shares its memory.
func (t *table) storeLocked(key, data string, rev int64) {
	if key == markerKey {
		t.marker = true
		return
	}
	if want := t.want[key]; want == data {
		data = want
	}
	t.have[key] = stored{data: data, rev: rev}
}

// compareLocked finds all differences, in the order of keys.
func (t *table) compareLocked() {
	t.dirty, t.order, t.places = map[string]uint64{}, nil, 0
	if t.want == nil || t.have == nil {
		return
	}
	var keys []string
	for key := range t.want {
		if t.differsLocked(key) {
			keys = append(keys, key)
		}
	}
	for key := range t.have {
		if _, wanted := t.want[key]; !wanted && t.differsLocked(key) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, strings.Compare)
	for _, key := range keys {
		t.refreshLocked(key)
	}
	t.signalLocked()
}

// differsLocked reports whether a key is to be written.
func (t *table) differsLocked(key string) bool {
	want, wanted := t.want[key]
	have, there := t.have[key]
	there = there && !have.gone
	return wanted != there || want != have.data
}

// refreshLocked updates whether a key differs.
func (t *table) refreshLocked(key string) {
	if t.want == nil || t.have == nil {
		return
	}
	_, known := t.dirty[key]
	differs := t.differsLocked(key)
	switch {
	case differs && !known:
		t.places++
		t.dirty[key] = t.places
		t.order = append(t.order, place{key, t.places})
	case !differs && known:
		delete(t.dirty, key)
	}
}

// trimLocked removes the gaps at the head of the order, and all gaps when they are most of it.
func (t *table) trimLocked() {
	gap := func(p place) bool { return t.dirty[p.key] != p.number }
	for len(t.order) > 0 && gap(t.order[0]) {
		t.order = t.order[1:]
	}
	if len(t.order) > 2*len(t.dirty)+maxOps {
		t.order = slices.DeleteFunc(t.order, gap)
	}
}

func (t *table) signalLocked() {
	if len(t.dirty) == 0 && !t.markerDueLocked() {
		return
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}
