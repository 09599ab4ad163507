package delta

import (
	"iter"
	"maps"
)

// Tracker tracks objects of one kind. It is made by New or NewComparable and not safe for concurrent use. Nothing of it may
// be changed while one of its iterators runs, except by what an Apply's function returns.
type Tracker[K comparable, V any] struct {
	equal   func(desired, actual V) bool
	desired map[K]V
	actual  map[K]V
	updates keys[K] // desired, and not equal in actual
	deletes keys[K] // in actual, not desired
}

// New makes a tracker; equal says whether an object in the dataplane is as desired.
func New[K comparable, V any](equal func(desired, actual V) bool) *Tracker[K, V] {
	return &Tracker[K, V]{
		equal: equal, desired: map[K]V{}, actual: map[K]V{}, updates: newKeys[K](), deletes: newKeys[K](),
	}
}

// NewComparable makes a tracker of values that are compared with ==.
func NewComparable[K, V comparable]() *Tracker[K, V] {
	return New[K](func(desired, actual V) bool { return desired == actual })
}

// classify puts k on the list where it belongs after either side has changed.
func (t *Tracker[K, V]) classify(k K) {
	want, wanted := t.desired[k]
	is, exists := t.actual[k]
	if wanted && !(exists && t.equal(want, is)) {
		t.updates.add(k)
	} else {
		t.updates.remove(k)
	}
	if exists && !wanted {
		t.deletes.add(k)
	} else {
		t.deletes.remove(k)
	}
}

// replace makes all one of the sides.
func (t *Tracker[K, V]) replace(side *map[K]V, all iter.Seq2[K, V]) {
	before := *side
	*side = make(map[K]V, len(before))
	for k, v := range all {
		(*side)[k] = v
	}
	for k := range *side {
		t.classify(k)
	}
	for k := range before {
		if _, still := (*side)[k]; !still {
			t.classify(k)
		}
	}
}

// InSync says that nothing is pending.
func (t *Tracker[K, V]) InSync() bool { return len(t.updates.m)+len(t.deletes.m) == 0 }

// Desired is what is wanted.
func (t *Tracker[K, V]) Desired() Desired[K, V] { return Desired[K, V]{t} }

// Dataplane is what is there, as far as known.
func (t *Tracker[K, V]) Dataplane() Dataplane[K, V] { return Dataplane[K, V]{t} }

// PendingUpdates are the objects to be made or changed.
func (t *Tracker[K, V]) PendingUpdates() PendingUpdates[K, V] { return PendingUpdates[K, V]{t} }

// PendingDeletions are the objects to be removed.
func (t *Tracker[K, V]) PendingDeletions() PendingDeletions[K, V] { return PendingDeletions[K, V]{t} }

// Desired is the wanted side of a tracker.
type Desired[K comparable, V any] struct{ t *Tracker[K, V] }

// Set wants k to be v.
func (d Desired[K, V]) Set(k K, v V) {
	d.t.desired[k] = v
	d.t.classify(k)
}

// Delete wants k no more.
func (d Desired[K, V]) Delete(k K) {
	delete(d.t.desired, k)
	d.t.classify(k)
}

// ReplaceAll wants exactly all.
func (d Desired[K, V]) ReplaceAll(all iter.Seq2[K, V]) { d.t.replace(&d.t.desired, all) }

// Get is what is wanted for k.
func (d Desired[K, V]) Get(k K) (V, bool) { v, ok := d.t.desired[k]; return v, ok }

// Iter goes through all that is wanted, in no order.
func (d Desired[K, V]) Iter() iter.Seq2[K, V] { return maps.All(d.t.desired) }

// Len is how many objects are wanted.
func (d Desired[K, V]) Len() int { return len(d.t.desired) }

// Dataplane is the side of a tracker that is there.
type Dataplane[K comparable, V any] struct{ t *Tracker[K, V] }

// Set notes that k is there as v.
func (d Dataplane[K, V]) Set(k K, v V) {
	d.t.actual[k] = v
	d.t.classify(k)
}

// Delete notes that k is not there.
func (d Dataplane[K, V]) Delete(k K) {
	delete(d.t.actual, k)
	d.t.classify(k)
}

// ReplaceAll notes that exactly all is there: the result of a complete listing. A listing that may fail half-way has to be
// collected first.
func (d Dataplane[K, V]) ReplaceAll(all iter.Seq2[K, V]) { d.t.replace(&d.t.actual, all) }

// Get is what is there as k.
func (d Dataplane[K, V]) Get(k K) (V, bool) { v, ok := d.t.actual[k]; return v, ok }

// Iter goes through all that is there, in no order.
func (d Dataplane[K, V]) Iter() iter.Seq2[K, V] { return maps.All(d.t.actual) }

// Len is how many objects are there.
func (d Dataplane[K, V]) Len() int { return len(d.t.actual) }

// Outcome is what an Apply's function says about one pending entry.
type Outcome bool

// The outcomes.
const (
	Keep Outcome = false // not written: stays pending
	Done Outcome = true  // written: the dataplane is as desired
)

// PendingUpdates are the objects to be made or changed.
type PendingUpdates[K comparable, V any] struct{ t *Tracker[K, V] }

// Apply calls write with each pending object, in no order.
func (p PendingUpdates[K, V]) Apply(write func(k K, desired V) Outcome) {
	for k := range p.t.updates.m {
		if v := p.t.desired[k]; write(k, v) == Done {
			p.t.actual[k] = v
			delete(p.t.updates.m, k)
		}
	}
	p.t.updates.shrink()
}

// Iter goes through the pending objects and what they should be, in no order.
func (p PendingUpdates[K, V]) Iter() iter.Seq2[K, V] { return pick(p.t.updates.m, p.t.desired) }

// Len is how many updates are pending.
func (p PendingUpdates[K, V]) Len() int { return len(p.t.updates.m) }

// PendingDeletions are the objects to be removed.
type PendingDeletions[K comparable, V any] struct{ t *Tracker[K, V] }

// Apply calls remove with each object that is to go and what it is, in no order.
func (p PendingDeletions[K, V]) Apply(remove func(k K, actual V) Outcome) {
	for k := range p.t.deletes.m {
		if remove(k, p.t.actual[k]) == Done {
			delete(p.t.actual, k)
			delete(p.t.deletes.m, k)
		}
	}
	p.t.deletes.shrink()
}

// Iter goes through the objects that are to go and what they are, in no order.
func (p PendingDeletions[K, V]) Iter() iter.Seq2[K, V] { return pick(p.t.deletes.m, p.t.actual) }

// Len is how many deletions are pending.
func (p PendingDeletions[K, V]) Len() int { return len(p.t.deletes.m) }

func pick[K comparable, V any](keys map[K]struct{}, from map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for k := range keys {
			if !yield(k, from[k]) {
				return
			}
		}
	}
}
