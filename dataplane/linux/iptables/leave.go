package iptables

import (
	"context"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// removals is what is known of chains that are not wanted.
type removals struct {
	stuck   map[string]error // those that could not be removed
	leaving map[string]bool  // those that no packet is on its way to any more
}

// goes reports whether a chain that is not wanted can be removed now. With the variant nft a packet that is on its way to a chain finds it as the
// newest generation of rules has it, and once removed that is empty: the packet would pass. So nothing leads to a chain for a grace period before it
// goes. The legacy variant replaces whole tables, and a packet keeps to one.
func (t *layer) goes(chain string) bool {
	return t.grace == nil || len(t.hooks) == 0 || t.leaving[chain]
}

// removeRest removes what nothing leads to any more, behind a grace period. The rules that are wanted are in place.
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

// surplus are the layer's chains that are not wanted.
func (t *layer) surplus() []string {
	if t.have == nil || t.plan == nil || t.dirty {
		return nil
	}
	return (&differ{plan: t.plan, have: t.have}).surplus()
}
