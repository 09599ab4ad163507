package idalloc

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"contiv.dev/vswitch/plugins/idalloc/idallocation"
)

// pool defines the IDs of a pool. It is immutable.
type pool struct {
	name     string
	ids      Range
	reserved map[uint32]bool
}

func newPool(name string, ids Range, reserved []uint32) (*pool, error) {
	if name == "" || strings.ContainsAny(name, "/") {
		return nil, fmt.Errorf("pool %q: the name must not be empty and must not have a slash", name)
	}
	if ids.Min == 0 || ids.Max < ids.Min {
		return nil, fmt.Errorf("pool %s: the range %d to %d has no ID from 1", name, ids.Min, ids.Max)
	}
	p := &pool{name: name, ids: ids, reserved: map[uint32]bool{}}
	for _, id := range reserved {
		if ids.has(id) {
			p.reserved[id] = true
		}
	}
	return p, nil
}

func (r Range) has(id uint32) bool { return id >= r.Min && id <= r.Max }

// size returns the number of IDs from Min to Max.
func (r Range) size() uint64 { return uint64(r.Max) - uint64(r.Min) + 1 }

// entry returns the stored form.
func (p *pool) entry() *idallocation.Entry {
	return &idallocation.Entry{Name: p.name, Range: &idallocation.Entry_Range{
		MinId: p.ids.Min, MaxId: p.ids.Max, Reserved: slices.Sorted(maps.Keys(p.reserved)),
	}}
}

// same reports whether the stored form is equal. The order of reserved IDs does not matter, nor do those outside the range.
func (p *pool) same(e *idallocation.Entry) bool {
	r := e.GetRange()
	other, err := newPool(p.name, Range{Min: r.GetMinId(), Max: r.GetMaxId()}, r.GetReserved())
	return err == nil && other.ids == p.ids && maps.Equal(other.reserved, p.reserved)
}

// candidates returns up to n IDs that are not taken. It starts at an ID that is computed from the label, and wraps around.
func (p *pool) candidates(label string, n int, taken map[uint32]bool) []uint32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(label)) // never fails
	start := mix(h.Sum64()) % p.ids.size()
	out := make([]uint32, 0, n)
	for i := uint64(0); i < p.ids.size() && len(out) < n; i++ {
		id := p.ids.Min + uint32((start+i)%p.ids.size())
		if !p.reserved[id] && !taken[id] {
			out = append(out, id)
		}
	}
	return out
}

// mix distributes the hashes of similar labels (the finalizer of MurmurHash3).
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
