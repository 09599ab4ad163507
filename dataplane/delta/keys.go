package delta

// keys is a set of keys that is cheap to walk: a Go map keeps the capacity of its largest size, and a walk costs that capacity. After a cold
// start with 100,000 objects every later walk over one pending change would cost as much.
type keys[K comparable] struct {
	m    map[K]struct{}
	peak int // maximum number of keys since m was made
}

// smallRoom is the size up to which the map is not replaced by a smaller one.
const smallRoom = 64

func newKeys[K comparable]() keys[K] { return keys[K]{m: map[K]struct{}{}} }

func (s *keys[K]) add(k K) {
	s.m[k] = struct{}{}
	s.peak = max(s.peak, len(s.m))
}

func (s *keys[K]) remove(k K) {
	delete(s.m, k)
	s.shrink()
}

// shrink moves the keys to a smaller map when few are left. It costs less than the removals before it.
func (s *keys[K]) shrink() {
	if s.peak <= smallRoom || len(s.m) > s.peak/8 {
		return
	}
	m := make(map[K]struct{}, len(s.m))
	for k := range s.m {
		m[k] = struct{}{}
	}
	s.m, s.peak = m, len(m)
}
