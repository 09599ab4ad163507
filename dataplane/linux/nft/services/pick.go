package services

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/lb"
	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// How a backend is selected. Backends are stored in blocks of a few that fit into the registers, so that there are fewer elements: a group
// of 50 has 13 blocks of four, of which the last has two empty slots. The kernel can only select a random number below a constant. So there
// are chains for each capacity (all slots of the group's blocks, with their number rounded up to a power of two). They select a random slot
// and a block, and repeat that until the slot has a backend.

// slotsOf returns the number of backends in a block.
func slotsOf(f table.Family) int {
	if f == table.IPv4 {
		return 4
	}
	return 2
}

// blocks returns the number of blocks of a group.
func blocks(g *lb.Group, slots int) int { return (g.Len() + slots - 1) / slots }

// sameBlock reports whether a block is the same in both groups.
func sameBlock(x, y *lb.Group, block, slots int) bool {
	for i := block * slots; i < (block+1)*slots; i++ {
		if i >= x.Len() && i >= y.Len() {
			return true
		}
		if !x.Same(y, i) {
			return false
		}
	}
	return true
}

// appendBlock appends a block in the kernel's format; empty slots are zero.
func appendBlock(b []byte, g *lb.Group, block, slots int) []byte {
	for i := block * slots; i < (block+1)*slots; i++ {
		if i < g.Len() {
			b = appendBackend(b, g, i)
		} else {
			b = append(b, make([]byte, g.AddrSize()+4)...)
		}
	}
	return b
}

// picker identifies a way to select a backend: one of up to size backends, which are in a shard.
type picker struct {
	outside              bool
	size, shard, seconds uint32
}

// capacity returns the size of the pickers for n backends. More than half of the slots of a capacity have backends, and all slots of the
// next lower capacity do.
func capacity(n, slots int) uint32 {
	if n <= slots {
		return uint32(max(n, 1))
	}
	size := slots
	for size < n {
		size *= 2
	}
	return uint32(size)
}

// standardSize is the size of groups up to which the chains that select from them always exist. When a chain is created or removed, the
// kernel waits for all processors, about 25 ms; elements alone need no wait.
const standardSize = 128

// addStandard adds the elements that exist regardless of services.
func (b *balancer) addStandard() {
	unserved, slots := &service{Service: &lb.Service{}}, slotsOf(b.f.ID)
	for shard := range uint32(shards) {
		for n := 1; n <= standardSize; n++ {
			p := picker{size: capacity(n, slots), shard: shard}
			if int(p.size) != n {
				continue // this capacity follows
			}
			b.hold(unserved, elem{mapPick, pickKey(p)}, p.chain())
			b.standard++
		}
	}
}

// pickKey returns the key that leads to the chain that selects a backend.
func pickKey(p picker) string {
	return string(append(wire.Host32(p.size<<8|p.shard), wire.Host32(p.seconds)...))
}

func pickerOf(e elem) picker {
	first, key := binary.NativeEndian.Uint32([]byte(e.key)), []byte(e.key)
	return picker{outside: e.m == mapPickOutside, size: first >> 8, shard: first & 0xff,
		seconds: binary.NativeEndian.Uint32(key[4:])}
}

func (p picker) chain() string {
	name := "pick"
	if p.outside {
		name = "outside"
	}
	return fmt.Sprintf("%s-%d-%d-%d", name, p.shard, p.size, p.seconds)
}

func (p picker) draw() string            { return p.chain() + "-draw" }
func (p picker) slot(slot uint32) string { return fmt.Sprintf("%s-slot-%d", p.chain(), slot) }

// smaller returns the picker of the next lower capacity, which all groups of p fill completely.
func (p picker) smaller() picker {
	p.size = max(p.size/2, 1)
	return p
}

// first returns the picker of the first backend, which every group has.
func (p picker) first() picker {
	p.size = 1
	return p
}

// plain returns the picker without affinity.
func (p picker) plain() picker {
	p.seconds = 0
	return p
}

// chainRules is a chain that may be needed, with a function that builds its rules.
type chainRules struct {
	name  string
	rules func() []wire.Program
}

// pickChains returns all chains of a picker. Other pickers may share some of them.
func (b *balancer) pickChains(p picker) []chainRules {
	list := b.drawChains(b.drawChains(b.drawChains(nil, p), p.smaller()), p.first())
	if p.seconds == 0 {
		return append(list, chainRules{p.chain(), func() []wire.Program { return b.pickRules(p) }})
	}
	list = append(list, chainRules{p.chain(), func() []wire.Program { return b.affinityRules(p) }})
	return append(list, b.pickChains(p.plain())...)
}

func (b *balancer) drawChains(list []chainRules, p picker) []chainRules {
	list = append(list, chainRules{p.draw(), func() []wire.Program { return b.drawRules(p) }})
	for slot := range p.slots(b) {
		list = append(list, chainRules{p.slot(slot), func() []wire.Program { return b.slotRules(p, slot) }})
	}
	return list
}

// slots returns the number of slots of a block that may have backends.
func (p picker) slots(b *balancer) uint32 { return min(p.size, uint32(slotsOf(b.f.ID))) }

// draws is the number of attempts to select a slot that may be empty. Each attempt finds a backend with a probability of more than one
// half, so at most one connection in 1,000 needs the last attempt, which is restricted to the half of the slots without empty ones.
const draws = 10

// pickRules returns rules that repeat the selection until it finds a backend. A packet sees each element in its current state: with the
// size that a group had before a change and the backends after it, all attempts may find empty slots only. The first backend exists before
// and after the change.
func (b *balancer) pickRules(p picker) []wire.Program {
	c := b.ruleset()
	c.draw(p)
	return c.list
}

func (c *ruleset) draw(p picker) {
	times := draws
	if int(p.size) <= slotsOf(c.f.ID) {
		times = 1 // there are no empty slots
	}
	for range times {
		c.jump(p.draw())
	}
	c.jump(p.smaller().draw())
	c.jump(p.first().draw())
}

func (c *ruleset) jump(chain string) {
	c.ImmediateVerdict(unix.NFT_JUMP, chain)
	c.emit("")
}

// drawRules returns rules that select a random slot.
func (b *balancer) drawRules(p picker) []wire.Program {
	c := b.ruleset()
	slots := p.slots(b)
	for slot := range slots {
		if left := slots - slot; left > 1 {
			c.random(left, wire.Reg1)
			c.Equal(wire.Host32(0), false)
		}
		c.ImmediateVerdict(unix.NFT_GOTO, p.slot(slot))
		c.emit("")
	}
	return c.list
}

// slotRules returns rules that select a random block, and translate to the backend in a slot of it, if there is one.
func (b *balancer) slotRules(p picker, slot uint32) []wire.Program {
	c := b.ruleset()
	block, backend, client, key := c.places(slot)
	c.group(b, p, key, 0)
	c.random((p.size+p.slots(b)-1)/p.slots(b), r32(3))
	c.mapFrom(c.backends(b, p), r32(1), r32(block))
	if slot > 0 {
		c.cmpReg(r32(backend+c.a), wire.Host32(0), true)
	}
	if p.seconds > 0 {
		affinity := c.name(b, mapAffinity)
		c.client(b, p, client)
		c.updateMap(affinity, dynsetDelete, r32(client+1), r32(backend), 0)
		c.updateMap(affinity, unix.NFT_DYNSET_OP_UPDATE, r32(client+1), r32(backend), p.seconds)
	}
	c.translate(r32(backend))
	c.emit(fmt.Sprintf("dnat to slot %d of group . random map @%s", slot, c.backends(b, p)))
	return c.list
}

// places returns the first registers of a block, of the backend selected from it, of the client, which does not overlap with the backend,
// and of the key that leads to the group. (In registers: a backend takes an address and one more, the client an address and three more;
// there are 16.) nft 1.0.6 crashes when it lists an element built from registers of unknown type, so the backend's registers contain a
// value of a known type first.
func (c *ruleset) places(slot uint32) (block, backend, client, key uint32) {
	switch {
	case c.a == 1:
		block, client, key = 3, 12, 3+2*slot
	case slot == 0:
		block, client, key = 0, 8, 8
	default:
		block, client, key = 6, 0, 8
	}
	return block, block + slot*(c.a+1), client, key
}

// group loads masquerade . group for the packet's destination. It uses the registers from key on.
func (c *ruleset) group(b *balancer, p picker, key, to uint32) {
	c.loadKey(key)
	c.mapFrom(c.fronts(b, p), r32(key), r32(to))
}

// client loads masquerade . group . sender.
func (c *ruleset) client(b *balancer, p picker, to uint32) {
	c.group(b, p, to, to)
	c.loadSaddr(r32(to + 3))
}

// affinityRules send a client to its previous backend, if that still exists, otherwise to a random one, which is recorded. The last rules
// are for clients that cannot be recorded for lack of room.
func (b *balancer) affinityRules(p picker) []wire.Program {
	c := b.ruleset()
	affinity := c.name(b, mapAffinity)
	c.group(b, p, 8, 0)
	c.loadSaddr(r32(3))
	c.mapFrom(affinity, r32(1), r32(3))
	c.lookupFrom(c.name(b, mapSticky), r32(1), false)
	c.client(b, p, 8)
	c.updateMap(affinity, unix.NFT_DYNSET_OP_UPDATE, r32(9), r32(3), p.seconds)
	c.translate(r32(3))
	c.emit("group . client map @affinity, if in @sticky")
	c.draw(p)
	c.ImmediateVerdict(unix.NFT_GOTO, p.plain().chain())
	c.emit("")
	return c.list
}
