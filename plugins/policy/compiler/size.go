package compiler

import (
	"math"
	"slices"

	"contiv.dev/vswitch/plugins/policy/model"
)

// A set over its limit is in no dataplane: a rule that allows by it matches nothing, and one that denies or passes by it denies whatever meets its
// other conditions. Its members are still counted, so that it comes back when it has become small enough.

// sizes is what the compiler does about large sets.
type sizes struct {
	limit   int
	version int // changes with what Large returns
}

// room is how far below its limit a set comes back, so that one whose size is about its limit is not written again and again.
const room = 16

// SetLimit changes how many members a set may have. It is for a compiler without policies.
func (c *Compiler) SetLimit(n int) {
	if n > 0 {
		c.large.limit = n
	}
}

// judgeSize decides whether a set is over its limit, and marks the policies whose rules change by that.
func (c *Compiler) judgeSize(s *set) {
	over := s.count > c.large.limit || s.over && s.count > Room(c.large.limit)
	if s.refs == 0 || over == s.over {
		return
	}
	if over { // what remains pending is the removal of what has been reported
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

// closeLarge is the policy as dataplanes get it.
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

// reportLarge notes which sets of a policy are over their limit.
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

// Large is what those sets of policies mean that are over their limit, as of the last Flush. It is another one when the version is.
func (c *Compiler) Large() (byPolicy map[model.PolicyID][]string, version int) {
	byPolicy = map[model.PolicyID][]string{}
	for id, p := range c.policies {
		if len(p.large) > 0 {
			byPolicy[id] = p.large
		}
	}
	return byPolicy, c.large.version
}

// LargeVersion is the version of Large.
func (c *Compiler) LargeVersion() int { return c.large.version }

// Larger is what those sets mean, by policy, that have more than n members, as of the last Flush.
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

// NewForAll is a compiler without objects that makes the sets of all policies, those that select no pod of this node as well, whatever the size of the sets.
func NewForAll() *Compiler {
	c := New()
	c.large.limit, c.all = math.MaxInt, true
	return c
}

// CopyForAll is a Copy that makes the sets of all policies, those that select no pod of this node as well, whatever the size of the sets.
func (c *Compiler) CopyForAll() *Compiler {
	n := c.Copy()
	n.large.limit, n.all = math.MaxInt, true
	return n
}

// MayExceed is false if no set can have more than n members: there are not as many addresses of pods and nodes, and networks in policies.
func (c *Compiler) MayExceed(n, networks int) bool {
	count := networks
	for _, p := range c.pods {
		count += len(p.addrs)
	}
	for _, node := range c.nodes.byName {
		count += len(node.addrs)
	}
	return count > n
}

// Room is below which size a set that was over its limit n comes back.
func Room(n int) int { return n - n/room }
