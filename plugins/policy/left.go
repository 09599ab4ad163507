package policy

import (
	"fmt"
	"slices"

	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/renderer"
)

// putLeft puts the objects that the sweep is going to delete, unless they are in use again.
func (p *Plugin) putLeft(txn renderer.Txn) {
	for id, s := range p.leftSets {
		if _, used := p.sets[id]; !used {
			p.Renderer.PutSet(s, txn)
			p.Renderer.ChangeMembers(model.Members{Set: id, Added: p.leftMembers[id]}, txn)
		}
	}
	for id, policy := range p.leftPolicies {
		if _, used := p.policies[id]; !used {
			p.Renderer.PutPolicy(policy, txn)
		}
	}
}

// renderMembers passes changes of members to the renderer. A set that is deleted keeps its members until the sweep: endpoints use their old
// policies until they have their new ones, and a transaction may begin with its deletes. A set that is used again before the sweep loses its
// old members now, except for those that it has again.
func (p *Plugin) renderMembers(c model.Change, txn renderer.Txn) {
	for _, s := range c.Sets {
		if left, was := p.leftMembers[s.ID]; was {
			p.Renderer.ChangeMembers(model.Members{Set: s.ID, Removed: left}, txn)
			delete(p.leftMembers, s.ID)
		}
	}
	for _, m := range c.Members {
		if slices.Contains(c.SetsGone, m.Set) {
			p.leftMembers[m.Set] = m.Removed
			continue
		}
		p.Renderer.ChangeMembers(m, txn)
	}
}

// sweep deletes the objects that are left and not in use again.
func (p *Plugin) sweep(txn renderer.Txn) string {
	policies, sets := 0, 0
	for id := range p.leftPolicies {
		if _, used := p.policies[id]; !used {
			p.Renderer.DeletePolicy(id, txn)
			policies++
		}
	}
	for id := range p.leftSets {
		if _, used := p.sets[id]; !used {
			p.Renderer.ChangeMembers(model.Members{Set: id, Removed: p.leftMembers[id]}, txn)
			p.Renderer.DeleteSet(id, txn)
			sets++
		}
	}
	clear(p.leftPolicies)
	clear(p.leftSets)
	clear(p.leftMembers)
	return fmt.Sprintf("delete %d policies and %d sets that are not used", policies, sets)
}
