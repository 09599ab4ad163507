package services

import (
	"slices"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
)

// writeChains adds the messages for chains and their rules, and records which chains start to leave and which are removed. A chain is
// removed after a grace period: otherwise a packet that jumps to it would find it empty, and its processing would end.
func (b *balancer) writeChains(t *wire.Batch, over uint64) {
	if !b.chainsDirty && len(b.leaving) == 0 {
		return
	}
	want := b.desiredChains()
	b.makeChains(t, want)
	for name := range b.rules {
		_, wanted := want[name]
		ticket, leaves := b.leaving[name]
		switch {
		case wanted:
			delete(b.leaving, name)
		case !leaves:
			b.leave = append(b.leave, name)
		case ticket <= over:
			b.gone = append(b.gone, name)
		}
	}
	slices.Sort(b.gone)
}

// left records which chains were removed, and begins the grace period of the next ones.
func (b *balancer) left(g *wire.Grace) {
	for _, name := range b.gone {
		delete(b.rules, name)
		delete(b.leaving, name)
	}
	if len(b.leave) > 0 {
		ticket := g.Begin()
		for _, name := range b.leave {
			b.leaving[name] = ticket
		}
	}
	b.leave, b.gone = nil, nil
}
