package delta

// keys is a set of keys that is cheap to go through: a Go map keeps the room of its largest size, and a walk costs that room.
// After a cold start with 100,000 objects every later walk over one pending change would pay for it.
type keys[K comparable] struct {
	m    map[K]struct{}
	peak int // most keys since m was made
}

// smallRoom is a size that is not worth shrinking.
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

// shrink moves the keys to a smaller map when few are left. Its cost is below that of the removals before it.
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
