package intdataplane

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/bits"
	"slices"
)

// markPool assigns each interface a unique number inside a field of the packet mark. A number is a hash of the name, so that a restarted
// driver assigns the same numbers unless two names collide.
type markPool struct {
	mask, reserved uint32
	taken          map[uint32]string
	byName         map[string]uint32
}

func newMarkPool(mask, reserved uint32) *markPool {
	return &markPool{mask: mask, reserved: reserved, taken: map[uint32]string{}, byName: map[string]uint32{}}
}

// assign gives a mark to each of names and removes the marks of all other names. The error lists the names for which no number is left.
func (p *markPool) assign(names []string) (map[string]uint32, error) {
	for name, mark := range p.byName {
		if !slices.Contains(names, name) {
			delete(p.taken, mark)
			delete(p.byName, name)
		}
	}
	var without []string
	for _, name := range slices.Sorted(slices.Values(names)) {
		if _, has := p.byName[name]; has {
			continue
		}
		mark, found := p.find(name)
		if !found {
			without = append(without, name)
			continue
		}
		p.taken[mark], p.byName[name] = name, mark
	}
	if len(without) > 0 {
		err := fmt.Errorf("RulesConfig.IptablesMarkEndpoint %#x has too few bits: no mark is left for %v; add bits", p.mask, without)
		return maps.Clone(p.byName), err
	}
	return maps.Clone(p.byName), nil
}

func (p *markPool) find(name string) (uint32, bool) {
	size := uint32(1)<<bits.OnesCount32(p.mask) - 1 // 0 means no mark
	h := fnv.New32a()
	h.Write([]byte(name))
	start := h.Sum32() % size
	for i := range size {
		mark := spread((start+i)%size+1, p.mask)
		if _, used := p.taken[mark]; !used && mark != p.reserved {
			return mark, true
		}
	}
	return 0, false
}

// spread puts the bits of n into the bits of mask, lowest first.
func spread(n, mask uint32) uint32 {
	var out uint32
	for m := mask; m != 0; m &= m - 1 {
		if n&1 != 0 {
			out |= m & -m
		}
		n >>= 1
	}
	return out
}
