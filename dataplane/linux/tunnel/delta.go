package tunnel

import "slices"

// mac is a hardware address.
type mac [6]byte

// delta is what is desired and what the kernel has, and the keys for which they may differ.
type delta[K comparable, V comparable] struct {
	desired, actual map[K]V
	todo            map[K]struct{}
}

func newDelta[K comparable, V comparable]() delta[K, V] {
	return delta[K, V]{map[K]V{}, map[K]V{}, map[K]struct{}{}}
}

// want replaces what is desired.
func (d *delta[K, V]) want(all map[K]V) { d.replace(&d.desired, all) }

// found replaces what the kernel is known to have.
func (d *delta[K, V]) found(all map[K]V) { d.replace(&d.actual, all) }

func (d *delta[K, V]) replace(which *map[K]V, all map[K]V) {
	*which = all
	clear(d.todo)
	for k, v := range d.desired {
		if have, ok := d.actual[k]; !ok || have != v {
			d.todo[k] = struct{}{}
		}
	}
	for k := range d.actual {
		if _, ok := d.desired[k]; !ok {
			d.todo[k] = struct{}{}
		}
	}
}

// set changes what is desired of one key.
func (d *delta[K, V]) set(k K, v V) {
	d.desired[k] = v
	if have, ok := d.actual[k]; ok && have == v {
		delete(d.todo, k)
	} else {
		d.todo[k] = struct{}{}
	}
}

// unset makes a key undesired.
func (d *delta[K, V]) unset(k K) {
	delete(d.desired, k)
	if _, ok := d.actual[k]; ok {
		d.todo[k] = struct{}{}
	} else {
		delete(d.todo, k)
	}
}

// pending are the keys to be written and to be removed, each sorted.
func (d *delta[K, V]) pending(compare func(x, y K) int) (put, drop []K) {
	for k := range d.todo {
		if _, ok := d.desired[k]; ok {
			put = append(put, k)
		} else {
			drop = append(drop, k)
		}
	}
	slices.SortFunc(put, compare)
	slices.SortFunc(drop, compare)
	return put, drop
}

// written notes that the kernel has what is desired for a key.
func (d *delta[K, V]) written(k K) {
	delete(d.todo, k)
	if v, ok := d.desired[k]; ok {
		d.actual[k] = v
	} else {
		delete(d.actual, k)
	}
}
