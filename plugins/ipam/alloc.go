package ipam

import (
	"fmt"
	"math/bits"
	"net/netip"
)

// maxPoolSize bounds the part of a slice that is used for pods, and so the memory of a pool (a bit per address): no cluster runs a million
// pods on a node, but an IPv6 slice has room for many more.
const maxPoolSize = 1 << 20

// pool hands out the pod addresses of one slice, next-fit: it goes on after the address handed out last and wraps around. Not
// for concurrent use.
type pool struct {
	subnet netip.Prefix
	first  netip.Addr
	size   int
	used   int
	next   int // index to try first
	words  []uint64
}

// newPool is a pool for a pod slice with all addresses free.
func newPool(subnet netip.Prefix) *pool {
	size := maxPoolSize
	// gateway, NAT loopback, network and broadcast address are not for pods
	if hostBits := subnet.Addr().BitLen() - subnet.Bits(); hostBits < 32 {
		size = min(size, max(0, 1<<hostBits-4))
	}
	return &pool{
		subnet: subnet.Masked(),
		first:  add(subnet.Masked().Addr(), u128{lo: hostFirstPod}),
		size:   size,
		words:  make([]uint64, (size+63)/64),
	}
}

// allocate takes the next free address.
func (p *pool) allocate() (netip.Addr, error) {
	if p.used >= p.size {
		return netip.Addr{}, fmt.Errorf("%w: all %d addresses of pod subnet %s are in use; delete pods of this node, or give "+
			"nodes larger slices (ipamConfig.podSubnetOneNodePrefixLen)", ErrExhausted, p.size, p.subnet)
	}
	i := p.freeFrom(p.next)
	if i < 0 {
		i = p.freeFrom(0) // there is one, since used < size
	}
	p.set(i)
	p.next = (i + 1) % p.size
	return add(p.first, u128{lo: uint64(i)}), nil
}

// freeFrom is the first free index which is at least i, or -1.
func (p *pool) freeFrom(i int) int {
	for w := i / 64; w < len(p.words); w++ {
		free := ^p.words[w]
		if w == i/64 {
			free &= ^uint64(0) << (i % 64)
		}
		if free == 0 {
			continue
		}
		if found := w*64 + bits.TrailingZeros64(free); found < p.size {
			return found
		}
		return -1
	}
	return -1
}

// index is the place of the address in the pool; ok is false for addresses that the pool does not hand out.
func (p *pool) index(a netip.Addr) (i int, ok bool) {
	if !p.subnet.Contains(a) || a.Less(p.first) {
		return 0, false
	}
	d := diff(a, p.first)
	if d.hi != 0 || d.lo >= uint64(p.size) {
		return 0, false
	}
	return int(d.lo), true
}

// take marks an address as used that was handed out earlier. It reports false if the address is not the pool's or is in use.
func (p *pool) take(a netip.Addr) bool {
	i, ok := p.index(a)
	if !ok || p.words[i/64]&(1<<(i%64)) != 0 {
		return false
	}
	p.set(i)
	return true
}

// release gives an address back; addresses that are not the pool's or not in use are ignored.
func (p *pool) release(a netip.Addr) {
	if i, ok := p.index(a); ok && p.words[i/64]&(1<<(i%64)) != 0 {
		p.words[i/64] &^= 1 << (i % 64)
		p.used--
	}
}

// goOnAfter makes a the address handed out last.
func (p *pool) goOnAfter(a netip.Addr) {
	if i, ok := p.index(a); ok {
		p.next = (i + 1) % p.size
	}
}

func (p *pool) set(i int) {
	p.words[i/64] |= 1 << (i % 64)
	p.used++
}
