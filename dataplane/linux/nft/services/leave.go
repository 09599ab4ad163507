package services

import (
	"slices"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
)

// writeChains makes chains and their rules, and notes which begin to leave and which go. A chain goes behind a grace period: a packet that is on its
// way to it would find it empty, and be done.
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

// left notes which chains have gone, and begins the grace period of those that go next.
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
