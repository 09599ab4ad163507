package iptables

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
)

// rewriteMax is the maximum length of chains that are rewritten completely if the kernel's state was not read just before. Rewriting does
// not depend on the kernel's state.
const rewriteMax = 256

// restore is an input for iptables-restore, with the changes that it makes.
type restore struct {
	text   bytes.Buffer
	owners []owner // of each line

	chains  map[string][]ruleHash // new contents
	deletes []string
	hooks   map[string]*piece
	writes  int
}

// owner describes the object that a line is for.
type owner struct {
	unit   string // a chain of the model
	hook   string // a chain of the kernel
	delete string // a chain that is removed
}

// differ compares a plan with the kernel's state.
type differ struct {
	plan  *plan
	have  *kernelState
	fresh bool // have was just read
	mode  InsertMode

	// While the cause of a failure is searched for, only some objects are changed; missing chains that they need are created as stubs.
	only    map[string]bool // units; nil: all
	noHooks bool
	stub    func(chain string) *piece
	// goes selects the unwanted chains to remove; nil: all.
	goes func(chain string) bool
}

// run returns the input, or nil if there is nothing to do.
func (d *differ) run(l layerName) *restore {
	r := &restore{chains: map[string][]ruleHash{}, hooks: map[string]*piece{}}
	r.line(owner{}, "*", string(l))
	changed := d.changed(r)
	gone := d.surplus()
	for _, name := range gone {
		r.line(owner{delete: name}, ":", name, " - [0:0]") // emptied first, so that they do not refer to each other
	}
	for _, c := range changed {
		d.rules(r, c)
	}
	if !d.noHooks {
		d.hooks(r)
	}
	for _, name := range gone {
		r.line(owner{delete: name}, "-X ", name)
		r.deletes = append(r.deletes, name)
		r.writes++
	}
	if len(changed)+len(gone)+len(r.hooks) == 0 {
		return nil
	}
	r.line(owner{}, "COMMIT")
	return r
}

// change is a chain to write: the rules from index keep on.
type change struct {
	owner owner
	piece *piece
	keep  int
	have  int // rules that the kernel has
}

// changed returns the chains that differ, and declares those that are new or rewritten.
func (d *differ) changed(r *restore) []change {
	var out []change
	missing := map[string]bool{}
	for _, u := range d.plan.units {
		if d.only != nil && !d.only[u.name] {
			continue
		}
		for _, p := range u.pieces {
			if c, ok := d.compare(r, owner{unit: u.name}, p); ok {
				out = append(out, c)
				for _, to := range p.chains {
					missing[to] = true
				}
			}
		}
	}
	if d.only == nil {
		return out
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		if _, there := d.have.chains[name]; !there && r.chains[name] == nil {
			if c, ok := d.compare(r, owner{}, d.stub(name)); ok {
				out = append(out, c)
			}
		}
	}
	return out
}

func (d *differ) compare(r *restore, o owner, p *piece) (change, bool) {
	if _, done := r.chains[p.name]; done {
		return change{}, false // a helper of several units
	}
	have, there := d.have.chains[p.name]
	if there && same(have, p.hashes) && intact(have, p.hashes) {
		return change{}, false
	}
	c := change{owner: o, piece: p, have: len(have)}
	if there && d.fresh {
		for c.keep < min(len(have), len(p.hashes)) && have[c.keep] == p.hashes[c.keep] {
			c.keep++
		}
	} else {
		c.have = 0
		r.line(o, ":", p.name, " - [0:0]")
		r.writes++
	}
	r.chains[p.name] = p.hashes
	if r.chains[p.name] == nil {
		r.chains[p.name] = []ruleHash{}
	}
	return c, true
}

// intact reports whether all hashes are equal. Comparing the last hash suffices for rules that we wrote, but not for changes by another
// program.
func intact(have, want []ruleHash) bool {
	if len(have) == 0 || &have[0] == &want[0] {
		return true // recorded when it was written
	}
	return slices.Equal(have, want)
}

// rules writes the part of a chain that differs.
func (d *differ) rules(r *restore, c change) {
	p := c.piece
	for i := c.keep; i < len(p.rules); i++ {
		if i < c.have {
			r.line(c.owner, fmt.Sprintf("-R %s %d ", p.name, i+1), hashArg(p.hashes[i]), p.rules[i])
		} else {
			r.line(c.owner, "-A ", p.name, " ", hashArg(p.hashes[i]), p.rules[i])
		}
		r.writes++
	}
	for i := c.have; i > len(p.rules); i-- {
		r.line(c.owner, fmt.Sprintf("-D %s %d", p.name, i))
		r.writes++
	}
}

// hashArg returns the comment with the hash, which is the first in each rule.
func hashArg(h ruleHash) string { return `-m comment --comment "` + hashPrefix + string(h[:]) + `" ` }

// hooks writes our rules into the kernel's chains, unless they are already there in the right position.
func (d *differ) hooks(r *restore) {
	names := map[string]bool{}
	for name := range d.plan.hooks {
		names[name] = true
	}
	for name := range d.have.hooks {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if d.plan.badHooks[name] != nil {
			continue
		}
		want := d.plan.hooks[name]
		if want == nil {
			want = &piece{name: name}
		}
		if d.have.hooks[name].inOrder(want.hashes, d.mode) {
			continue
		}
		o := owner{hook: name}
		for _, old := range d.have.hooks[name].ours {
			r.line(o, "-D ", name, " ", old.text) // by its text: the position may belong to another rule by now
			r.writes++
		}
		for i := range want.rules {
			if d.mode == Insert {
				i = len(want.rules) - 1 - i
				r.line(o, "-I ", name, " ", hashArg(want.hashes[i]), want.rules[i])
			} else {
				r.line(o, "-A ", name, " ", hashArg(want.hashes[i]), want.rules[i])
			}
			r.writes++
		}
		r.hooks[name] = want
	}
}

// inOrder reports whether our rules are as desired and, in insert mode, the first of all.
func (h hookState) inOrder(want []ruleHash, mode InsertMode) bool {
	if len(h.ours) != len(want) {
		return false
	}
	for i, o := range h.ours {
		if o.hash != want[i] || mode == Insert && o.position != i {
			return false
		}
	}
	return true
}

// surplus returns the chains that are ours and not wanted.
func (d *differ) surplus() []string {
	var out []string
	for name := range d.have.chains {
		if d.plan.pieces[name] == nil && (d.goes == nil || d.goes(name)) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (r *restore) line(o owner, parts ...string) {
	for _, p := range parts {
		r.text.WriteString(p)
	}
	r.text.WriteByte('\n')
	r.owners = append(r.owners, o)
}

// applyTo records the input's changes in have.
func (r *restore) applyTo(have *kernelState) {
	for name, hashes := range r.chains {
		have.chains[name] = hashes
	}
	for _, name := range r.deletes {
		delete(have.chains, name)
	}
	for name, p := range r.hooks {
		var h hookState
		for i, hash := range p.hashes {
			h.ours = append(h.ours, hookRule{position: i, hash: hash, text: hashArg(hash) + p.rules[i]})
		}
		have.hooks[name] = h
	}
}
