package ipam

import (
	"fmt"
	"math/bits"
	"net/netip"
)

// maxPoolSize limits the part of a slice that is used for pods, and so the memory of a pool (one bit per address): no node runs a million
// pods, but an IPv6 slice has room for many more.
const maxPoolSize = 1 << 20

// pool allocates the pod addresses of one slice, next-fit: it continues after the last allocated address and wraps around. Not safe for
// concurrent use.
type pool struct {
	subnet netip.Prefix
	first  netip.Addr
	size   int
	used   int
	next   int // the index to try first
	words  []uint64
}

// newPool returns a pool for a pod slice, with all addresses free.
func newPool(subnet netip.Prefix) *pool {
	size := maxPoolSize
	// gateway, NAT loopback, network and broadcast address are not available to pods
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

// allocate allocates the next free address.
func (p *pool) allocate() (netip.Addr, error) {
	if p.used >= p.size {
		return netip.Addr{}, fmt.Errorf("%w: all %d addresses of pod subnet %s are in use; delete pods of this node, or give "+
			"nodes larger slices (ipamConfig.podSubnetOneNodePrefixLen)", ErrExhausted, p.size, p.subnet)
	}
	i := p.freeFrom(p.next)
	if i < 0 {
		i = p.freeFrom(0) // a free address exists, since used < size
	}
	p.set(i)
	p.next = (i + 1) % p.size
	return add(p.first, u128{lo: uint64(i)}), nil
}

// freeFrom returns the first free index that is at least i, or -1.
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

// index returns the index of the address in the pool; ok is false for addresses that the pool does not allocate.
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

// take marks an address that was allocated earlier as used. It returns false if the address does not belong to the pool or is in use.
func (p *pool) take(a netip.Addr) bool {
	i, ok := p.index(a)
	if !ok || p.words[i/64]&(1<<(i%64)) != 0 {
		return false
	}
	p.set(i)
	return true
}

// release releases an address; addresses that do not belong to the pool or are not in use are ignored.
func (p *pool) release(a netip.Addr) {
	if i, ok := p.index(a); ok && p.words[i/64]&(1<<(i%64)) != 0 {
		p.words[i/64] &^= 1 << (i % 64)
		p.used--
	}
}

// goOnAfter makes a the last allocated address.
func (p *pool) goOnAfter(a netip.Addr) {
	if i, ok := p.index(a); ok {
		p.next = (i + 1) % p.size
	}
}

func (p *pool) set(i int) {
	p.words[i/64] |= 1 << (i % 64)
	p.used++
}
