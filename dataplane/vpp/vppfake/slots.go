package vppfake

// slots is a VPP pool: the element that was freed last is reused first.
type slots[T any] struct {
	elems []slot[T]
	free  []int
}

type slot[T any] struct {
	value *T
	old   *T // the former element: VPP does not clear it
}

func (p *slots[T]) add(v *T) int {
	if n := len(p.free); n > 0 {
		at := p.free[n-1]
		p.free = p.free[:n-1]
		p.elems[at] = slot[T]{value: v}
		return at
	}
	p.elems = append(p.elems, slot[T]{value: v})
	return len(p.elems) - 1
}

func (p *slots[T]) remove(v *T) {
	for at := range p.elems {
		if p.elems[at].value == v {
			p.elems[at] = slot[T]{old: v}
			p.free = append(p.free, at)
			return
		}
	}
}

func (p *slots[T]) len() int { return len(p.elems) - len(p.free) }

// all iterates over the elements in order; they may be removed meanwhile.
func (p *slots[T]) all() func(yield func(*T) bool) {
	return func(yield func(*T) bool) {
		for _, e := range p.elems {
			if e.value != nil && !yield(e.value) {
				return
			}
		}
	}
}

// at returns the element that a reader gets without checking whether the element is free; nil beyond the end.
func (p *slots[T]) at(index int) *T {
	if index >= len(p.elems) {
		return nil
	}
	if e := p.elems[index]; e.value != nil {
		return e.value
	}
	return p.elems[index].old
}
