package kit

import "contiv.dev/vswitch/dataplane/scheduler"

// Item returns a descriptor with the fields that all descriptors of items have in common.
func Item[V comparable](name string, rank int) scheduler.Descriptor[V] {
	return scheduler.Descriptor[V]{
		Name: name, Rank: rank,
		Equal:           func(_ string, desired, applied V) bool { return desired == applied },
		ImpliedByParent: true,
	}
}

// DiffList puts the items that are new or different and deletes those that are gone. The common head and tail of the lists
// is skipped, so the cost of a typical change depends on the size of the change only.
func DiffList[M, I comparable](from, to []M, item func(M) I, key func(I) string, put func(I), del func(key string)) {
	same := func(a, b M) bool { return a == b || item(a) == item(b) }
	for len(from) > 0 && len(to) > 0 && same(from[0], to[0]) {
		from, to = from[1:], to[1:]
	}
	for len(from) > 0 && len(to) > 0 && same(from[len(from)-1], to[len(to)-1]) {
		from, to = from[:len(from)-1], to[:len(to)-1]
	}
	old := make(map[string]I, len(from))
	for _, m := range from {
		i := item(m)
		old[key(i)] = i
	}
	for _, m := range to {
		i := item(m)
		k := key(i)
		if was, ok := old[k]; !ok || was != i {
			put(i)
		}
		delete(old, k)
	}
	for key := range old {
		del(key)
	}
}
