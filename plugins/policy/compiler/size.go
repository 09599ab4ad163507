package compiler

import (
	"math"
	"slices"

	"contiv.dev/vswitch/plugins/policy/model"
)

// A set over its limit is in no dataplane: a rule that refers to it matches nothing if it allows, and if it denies or passes, it denies all
// packets that meet its other conditions. The members of the set are still counted, so that it is used again when it has become small
// enough.

// sizes is the state of the handling of large sets.
type sizes struct {
	limit   int
	version int // changes when the result of Large changes
}

// room determines how far below its limit a set must be to be used again, so that a set whose size is near the limit is not written
// repeatedly.
const room = 16

// SetLimit sets the maximum number of members of a set. It must be called before policies are added.
func (c *Compiler) SetLimit(n int) {
	if n > 0 {
		c.large.limit = n
	}
}

// checkSize decides whether a set is over its limit, and marks the policies whose rules change because of that.
func (c *Compiler) checkSize(s *set) {
	over := s.unbuilt || s.count > c.large.limit || s.over && s.count > Room(c.large.limit)
	if s.refs == 0 || over == s.over {
		return
	}
	if over { // the remaining pending changes are the removals of the reported members
		s.each(func(m model.Member) { s.report(m, -1) })
	} else {
		s.each(func(m model.Member) { s.report(m, 1) })
	}
	s.over = over
	for _, p := range c.policies {
		if slices.Contains(p.sets, s) {
			p.changed = true
			c.dirtyPolicies[p] = struct{}{}
		}
	}
}

// closeLarge returns the policy for dataplanes, without sets over the limit.
func closeLarge(p *policy) model.Policy {
	large := map[model.SetID]bool{}
	for _, s := range p.sets {
		if s.over {
			large[s.ID] = true
		}
	}
	if len(large) == 0 {
		return p.made
	}
	return model.Policy{ID: p.id, Ingress: closeRules(p.made.Ingress, large), Egress: closeRules(p.made.Egress, large)}
}

func closeRules(rules []model.Rule, large map[model.SetID]bool) (out []model.Rule) {
	for _, r := range rules {
		is := false
		for _, id := range []*model.SetID{&r.Source, &r.Dest, &r.DestPort} {
			if large[*id] {
				*id, is = "", true
			}
		}
		switch {
		case !is:
			out = append(out, r)
		case r.Action != model.Allow:
			r.Action = model.Deny
			out = append(out, r)
		}
	}
	return out
}

// reportLarge records which sets of a policy are over their limit.
func (c *Compiler) reportLarge(p *policy) {
	var large []string
	for _, s := range p.sets {
		if s.over && !slices.Contains(large, s.Meaning) {
			large = append(large, s.Meaning)
		}
	}
	slices.Sort(large)
	if !slices.Equal(large, p.large) {
		p.large = large
		c.large.version++
	}
}

// Large returns the meanings of the sets that are over their limit, by policy, as of the last Flush. The result has changed if the version
// has.
func (c *Compiler) Large() (byPolicy map[model.PolicyID][]string, version int) {
	byPolicy = map[model.PolicyID][]string{}
	for id, p := range c.policies {
		if len(p.large) > 0 {
			byPolicy[id] = p.large
		}
	}
	return byPolicy, c.large.version
}

// LargeVersion returns the version of Large.
func (c *Compiler) LargeVersion() int { return c.large.version }

// Larger returns the meanings of the sets that have more than n members, by policy, as of the last Flush.
func (c *Compiler) Larger(n int) map[model.PolicyID][]string {
	byPolicy := map[model.PolicyID][]string{}
	for id, p := range c.policies {
		var large []string
		for _, s := range p.sets {
			if s.count > n && !slices.Contains(large, s.Meaning) {
				large = append(large, s.Meaning)
			}
		}
		if slices.Sort(large); len(large) > 0 {
			byPolicy[id] = large
		}
	}
	return byPolicy
}

// NewForAll returns a compiler without objects that compiles the sets of all policies, also of those that select no pod of this node,
// whatever the size of the sets.
func NewForAll() *Compiler {
	c := New()
	c.large.limit, c.all = math.MaxInt, true
	return c
}

// CopyForAll returns a Copy that compiles the sets of all policies, also of those that select no pod of this node, whatever the size of the
// sets.
func (c *Compiler) CopyForAll() *Compiler {
	n := c.Copy()
	n.large.limit, n.all = math.MaxInt, true
	return n
}

// MayExceed returns false if no set can have more than n members, because the addresses of pods and nodes and the networks in policies are
// not that many.
func (c *Compiler) MayExceed(n, networks int) bool {
	count := networks
	for _, p := range c.pods {
		count += len(p.ips)
	}
	for _, node := range c.nodes.byName {
		count += len(node.addrs)
	}
	return count > n
}

// Room returns the size up to which a set that was over its limit n is used again.
func Room(n int) int { return n - n/room }
