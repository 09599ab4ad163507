package iptables

import (
	"context"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// removals holds the state of unwanted chains.
type removals struct {
	stuck   map[string]error // chains that could not be removed
	leaving map[string]bool  // chains that no packet is being sent to any more
}

// goes reports whether an unwanted chain can be removed now. In the variant nft, a packet that jumps to a chain finds the chain's newest
// generation of rules. A removed chain is empty, so the packet would pass. So no rule refers to a chain for a grace period before it is
// removed. The legacy variant replaces whole tables, and a packet uses one table throughout.
func (t *layer) goes(chain string) bool {
	return t.grace == nil || len(t.hooks) == 0 || t.leaving[chain]
}

// removeRest removes chains that no rule refers to any more, after a grace period. The desired rules are in place.
func (b *Backend) removeRest(ctx context.Context, res *table.Result) {
	waited := false
	for _, t := range b.layers {
		t.leaving = map[string]bool{}
		for _, name := range t.surplus() {
			t.leaving[name] = t.stuck[name] == nil
		}
		if len(t.leaving) > 0 && !waited {
			b.env.grace()
			waited = true
		}
	}
	if waited {
		b.applyLayers(ctx, b.layers, res)
	}
	for _, t := range b.layers {
		t.leaving = nil
	}
}

// surplus returns the layer's unwanted chains.
func (t *layer) surplus() []string {
	if t.have == nil || t.plan == nil || t.dirty {
		return nil
	}
	return (&differ{plan: t.plan, have: t.have}).surplus()
}
