package delta

import (
	"iter"
	"maps"
)

// Tracker tracks objects of one kind. It is created by New or NewComparable and is not safe for concurrent use. It must not be changed while
// one of its iterators runs, except by the results of the function that is passed to Apply.
type Tracker[K comparable, V any] struct {
	equal   func(desired, actual V) bool
	desired map[K]V
	actual  map[K]V
	updates keys[K] // desired, and not equal in actual
	deletes keys[K] // in actual, not desired
}

// New returns a tracker; equal reports whether an object in the dataplane is as desired.
func New[K comparable, V any](equal func(desired, actual V) bool) *Tracker[K, V] {
	return &Tracker[K, V]{
		equal: equal, desired: map[K]V{}, actual: map[K]V{}, updates: newKeys[K](), deletes: newKeys[K](),
	}
}

// NewComparable returns a tracker of values that are compared with ==.
func NewComparable[K, V comparable]() *Tracker[K, V] {
	return New[K](func(desired, actual V) bool { return desired == actual })
}

// classify puts k on the correct list after either side has changed.
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

// replace replaces one of the sides by all.
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

// InSync reports whether nothing is pending.
func (t *Tracker[K, V]) InSync() bool { return len(t.updates.m)+len(t.deletes.m) == 0 }

// Desired returns the desired side.
func (t *Tracker[K, V]) Desired() Desired[K, V] { return Desired[K, V]{t} }

// Dataplane returns the actual side, as far as the caller has reported it.
func (t *Tracker[K, V]) Dataplane() Dataplane[K, V] { return Dataplane[K, V]{t} }

// PendingUpdates returns the objects to be created or changed.
func (t *Tracker[K, V]) PendingUpdates() PendingUpdates[K, V] { return PendingUpdates[K, V]{t} }

// PendingDeletions returns the objects to be removed.
func (t *Tracker[K, V]) PendingDeletions() PendingDeletions[K, V] { return PendingDeletions[K, V]{t} }

// Desired is the desired side of a tracker.
type Desired[K comparable, V any] struct{ t *Tracker[K, V] }

// Set sets the desired value of k to v.
func (d Desired[K, V]) Set(k K, v V) {
	d.t.desired[k] = v
	d.t.classify(k)
}

// Delete removes k from the desired objects.
func (d Desired[K, V]) Delete(k K) {
	delete(d.t.desired, k)
	d.t.classify(k)
}

// ReplaceAll replaces all desired objects by all.
func (d Desired[K, V]) ReplaceAll(all iter.Seq2[K, V]) { d.t.replace(&d.t.desired, all) }

// Get returns the desired value of k.
func (d Desired[K, V]) Get(k K) (V, bool) { v, ok := d.t.desired[k]; return v, ok }

// Iter iterates over all desired objects, in no particular order.
func (d Desired[K, V]) Iter() iter.Seq2[K, V] { return maps.All(d.t.desired) }

// Len returns the number of desired objects.
func (d Desired[K, V]) Len() int { return len(d.t.desired) }

// Dataplane is the actual side of a tracker.
type Dataplane[K comparable, V any] struct{ t *Tracker[K, V] }

// Set records that k is present with value v.
func (d Dataplane[K, V]) Set(k K, v V) {
	d.t.actual[k] = v
	d.t.classify(k)
}

// Delete records that k is absent.
func (d Dataplane[K, V]) Delete(k K) {
	delete(d.t.actual, k)
	d.t.classify(k)
}

// ReplaceAll records that exactly the objects in all are present: the result of a complete listing. A listing that may fail half-way must be
// collected first.
func (d Dataplane[K, V]) ReplaceAll(all iter.Seq2[K, V]) { d.t.replace(&d.t.actual, all) }

// Get returns the actual value of k.
func (d Dataplane[K, V]) Get(k K) (V, bool) { v, ok := d.t.actual[k]; return v, ok }

// Iter iterates over all actual objects, in no particular order.
func (d Dataplane[K, V]) Iter() iter.Seq2[K, V] { return maps.All(d.t.actual) }

// Len returns the number of actual objects.
func (d Dataplane[K, V]) Len() int { return len(d.t.actual) }

// Outcome is the result for one pending entry, returned by the function that is passed to Apply.
type Outcome bool

// The outcomes.
const (
	Keep Outcome = false // not written: stays pending
	Done Outcome = true  // written: the dataplane is as desired
)

// PendingUpdates holds the objects to be created or changed.
type PendingUpdates[K comparable, V any] struct{ t *Tracker[K, V] }

// Apply calls write for each pending object, in no particular order.
func (p PendingUpdates[K, V]) Apply(write func(k K, desired V) Outcome) {
	for k := range p.t.updates.m {
		if v := p.t.desired[k]; write(k, v) == Done {
			p.t.actual[k] = v
			delete(p.t.updates.m, k)
		}
	}
	p.t.updates.shrink()
}

// Iter iterates over the pending objects and their desired values, in no particular order.
func (p PendingUpdates[K, V]) Iter() iter.Seq2[K, V] { return pick(p.t.updates.m, p.t.desired) }

// Len returns the number of pending updates.
func (p PendingUpdates[K, V]) Len() int { return len(p.t.updates.m) }

// PendingDeletions holds the objects to be removed.
type PendingDeletions[K comparable, V any] struct{ t *Tracker[K, V] }

// Apply calls remove for each object to be removed, with its actual value, in no particular order.
func (p PendingDeletions[K, V]) Apply(remove func(k K, actual V) Outcome) {
	for k := range p.t.deletes.m {
		if remove(k, p.t.actual[k]) == Done {
			delete(p.t.actual, k)
			delete(p.t.deletes.m, k)
		}
	}
	p.t.deletes.shrink()
}

// Iter iterates over the objects to be removed and their actual values, in no particular order.
func (p PendingDeletions[K, V]) Iter() iter.Seq2[K, V] { return pick(p.t.deletes.m, p.t.actual) }

// Len returns the number of pending deletions.
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
