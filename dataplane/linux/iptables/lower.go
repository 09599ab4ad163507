package iptables

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// lowerer translates chains of the model to iptables. It has no side effects: the output depends only on the input.
type lowerer struct {
	family  table.Family
	layer   table.Layer
	scratch [2]uint32 // single mark bits: all lists so far hold; the current list holds
	random  bool      // iptables supports --random-fully
	helpers string    // prefix of the names of helper chains
	setName func(id string) string

	pieces []*piece
}

// chain translates a chain to a piece with its name, and helpers.
func (l lowerer) chain(c table.Chain) ([]*piece, error) {
	if err := word("chain", c.Name, maxChainName); err != nil {
		return nil, err
	}
	p := &piece{name: c.Name}
	l.pieces = []*piece{p}
	if err := l.rules(p, c.Rules); err != nil {
		return nil, err
	}
	p.fill()
	return l.sealed(), nil
}

// hook translates the rules of a hook to a piece with the kernel chain's name, and helpers.
func (l lowerer) hook(kernelChain string, rules []table.Rule) ([]*piece, error) {
	p := &piece{name: kernelChain}
	l.pieces = []*piece{p}
	if err := l.rules(p, rules); err != nil {
		return nil, err
	}
	return l.sealed(), nil
}

func (l *lowerer) sealed() []*piece {
	for _, p := range l.pieces {
		p.seal()
	}
	return l.pieces
}

func (l *lowerer) rules(p *piece, rules []table.Rule) error {
	for i, r := range rules {
		if err := l.rule(p, r); err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return nil
}

// rule appends r to p.
func (l *lowerer) rule(p *piece, r table.Rule) error {
	if err := l.checkActions(r); err != nil {
		return err
	}
	c, err := l.conditions(r.Match)
	if err != nil {
		return err
	}
	if c.never {
		return nil
	}
	p.sets = append(p.sets, c.sets...)
	if r.Comment != "" {
		c.always(commentArg(r.Comment))
	}
	actions := r.Actions
	if !repeatable(r, c, l.scratch) {
		// The conditions must be evaluated only once. A helper chain that is entered by goto (not jump) ends as this chain would.
		if actions, err = l.helper(r); err != nil {
			return err
		}
	}
	if len(c.lists) == 1 && !c.lists[0].not && onceIsTwice(actions) {
		for _, alternative := range c.lists[0].any {
			if err := l.emit(p, append(slices.Clip(c.args), alternative), r.Match, actions); err != nil {
				return err
			}
		}
		return nil
	}
	if err := l.lists(p, c); err != nil {
		return err
	}
	return l.emit(p, c.args, r.Match, actions)
}

// onceIsTwice reports whether running the actions twice for a packet has the same effect as running them once.
func onceIsTwice(actions []table.Action) bool {
	if len(actions) == 0 {
		return true
	}
	v := actions[0].Verb
	return len(actions) == 1 && v != table.Log && v != table.Jump
}

// ofConnection reports whether a match has conditions on the connection of a packet.
func ofConnection(m table.Match) bool {
	return m.CT != 0 || m.DNATed || len(m.CTOrigDst)+len(m.CTOrigSrc)+len(m.CTReplSrc) > 0
}

// repeatable reports whether the rule's conditions, evaluated again before each action, still hold if they held the first time.
func repeatable(r table.Rule, c *conditions, scratch [2]uint32) bool {
	m := r.Match
	for i, a := range r.Actions {
		if i == len(r.Actions)-1 {
			break
		}
		touched := uint32(0)
		switch a.Verb {
		case table.SetMark:
			touched = a.Mark | a.Mask
		case table.NoTrack:
			if ofConnection(m) {
				return false
			}
		case table.Jump:
			if ofConnection(m) {
				return false
			}
			touched = ^uint32(0)
		}
		if touched&m.MarkMask != 0 || len(c.lists) > 0 && touched&scratch[0] != 0 {
			return false
		}
	}
	return true
}

// helper creates a chain of r's actions, and returns the action that enters it. Its name is a hash of its content.
func (l *lowerer) helper(r table.Rule) ([]table.Action, error) {
	h := &piece{}
	// Protocol determines how ports are written and how connections are rejected.
	if err := l.emit(h, nil, table.Match{Protocol: r.Match.Protocol, NotProtocol: r.Match.NotProtocol}, r.Actions); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(strings.Join(h.rules, "\n")))
	h.name = l.helpers + "x-" + base64.RawURLEncoding.EncodeToString(sum[:12])
	if len(h.name) > maxChainName {
		h.name = h.name[:maxChainName]
	}
	if !slices.ContainsFunc(l.pieces, func(p *piece) bool { return p.name == h.name }) {
		l.pieces = append(l.pieces, h)
	}
	verb := table.Jump
	if ends(r.Actions[len(r.Actions)-1].Verb) {
		verb = table.Goto
	}
	return []table.Action{{Verb: verb, Chain: h.name}}, nil
}

// lists appends to p the rules that leave the first scratch bit set if all of c's lists hold, and adds this bit as a condition.
func (l *lowerer) lists(p *piece, c *conditions) error {
	if len(c.lists) == 0 {
		return nil
	}
	all, this := l.scratch[0], l.scratch[1]
	if err := l.checkScratch(c); err != nil {
		return err
	}
	// The first list that is not negated sets the bit directly.
	start, first := all, slices.IndexFunc(c.lists, func(o list) bool { return !o.not })
	if first >= 0 {
		start = 0
	}
	p.add("", setMark(start, all|this))
	if first >= 0 {
		for _, alternative := range c.lists[first].any {
			p.add(c.lists[first].need, alternative, setMark(all, all))
		}
	}
	clean := true // the bit of the current list is not set
	for i, o := range c.lists {
		switch {
		case i == first:
		case o.not:
			for _, alternative := range o.any {
				p.add(o.need, alternative, setMark(0, all))
			}
		default:
			if !clean {
				p.add("", setMark(0, this))
			}
			for _, alternative := range o.any {
				p.add(o.need, alternative, setMark(this, this))
			}
			p.add(fmt.Sprintf("-m mark --mark 0x0/%#x", this), setMark(0, all))
			clean = false
		}
	}
	c.args = append(c.args, fmt.Sprintf("-m mark --mark %#x/%#x", all, all))
	return nil
}

func (l *lowerer) checkScratch(c *conditions) error {
	all, this := l.scratch[0], l.scratch[1]
	switch {
	case all == 0 || this == 0 || all&this != 0:
		return fmt.Errorf("has lists that need two scratch mark bits; IptablesMarkMask has too few bits")
	case c.markMask&(all|this) != 0:
		return fmt.Errorf("has lists, and matches on the mark bits %#x which lists use", c.markMask&(all|this))
	}
	return nil
}

func setMark(value, mask uint32) string {
	return fmt.Sprintf("-j MARK --set-xmark %#x/%#x", value, mask)
}

func (p *piece) add(args ...string) {
	var words []string
	for _, a := range args {
		if a != "" {
			words = append(words, a)
		}
	}
	p.rules = append(p.rules, strings.Join(words, " "))
}

// emit appends a rule with the conditions of args for each action.
func (l *lowerer) emit(p *piece, args []string, m table.Match, actions []table.Action) error {
	start := len(p.rules)
	if len(actions) == 0 {
		p.add(args...)
	}
	for _, a := range actions {
		switch a.Verb {
		case table.Jump, table.Goto:
			p.chains = append(p.chains, a.Chain)
		case table.Reject:
			l.reject(p, args, m)
			continue
		}
		t, err := l.target(a, m)
		if err != nil {
			return err
		}
		p.add(append(slices.Clip(args), t)...)
	}
	for _, r := range p.rules[start:] {
		if len(r) > maxRule || strings.Count(r, " ") >= maxWords {
			return fmt.Errorf("is too long for iptables (%d bytes, %d words)", len(r), strings.Count(r, " ")+1)
		}
	}
	return nil
}
