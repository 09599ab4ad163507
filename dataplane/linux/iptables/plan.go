package iptables

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// source is a desired chain as the caller passed it.
type source struct {
	chain    table.Chain
	dispatch *table.Dispatch

	lowered bool
	pieces  []*piece // the first has the chain's name; helpers follow
	err     error    // why there are no pieces
}

// lower translates the chain to pieces: the first time, and again if names of sets have changed.
func (s *source) lower(l lowerer) {
	if s.lowered && !slices.ContainsFunc(s.pieces, func(p *piece) bool { return p.renamed(l.setName) }) {
		return
	}
	s.lowered = true
	if s.dispatch != nil {
		s.pieces, s.err = l.dispatch(*s.dispatch)
	} else {
		s.pieces, s.err = l.chain(s.chain)
	}
}

// renamed reports whether the name of a set that the piece refers to has changed.
func (p *piece) renamed(name func(id string) string) bool {
	return slices.ContainsFunc(p.sets, func(s setRef) bool { return name(s.id) != s.name })
}

// fingerprint returns a value that identifies the pieces.
func (s *source) fingerprint() string {
	var b []byte
	for _, p := range s.pieces {
		b = append(append(b, p.name...), 0)
		if n := len(p.hashes); n > 0 {
			b = append(b, p.hashes[n-1][:]...)
		}
	}
	return string(b)
}

// refused is a chain that the kernel rejected.
type refused struct {
	fingerprint string
	err         error
}

// plan is the desired contents of a table: the chains that the hooks refer to, directly or indirectly. A chain that cannot be programmed is
// replaced by a stub, so that chains that refer to it can be programmed.
type plan struct {
	units  []*unit // in order: a unit follows those that it refers to
	pieces map[string]*piece
	hooks  map[string]*piece // by the kernel chain's name
	broken map[string]error  // by chain
	// badHooks cannot be programmed. The kernel's rules there remain unchanged.
	badHooks map[string]error
}

// unit is a chain with its helpers.
type unit struct {
	name   string
	pieces []*piece
}

// planner computes a plan.
type planner struct {
	*plan
	lower    lowerer
	layer    layerName
	chains   map[string]*source
	alien    map[string]bool
	refused  map[string]refused
	usable   func(set string) bool
	visiting map[string]bool
	useless  map[string]bool // chains that cannot even be stubs
}

var (
	errUndefined = errors.New("is not defined, but referred to")
	errLoop      = errors.New("is part of a loop of jumps")
	errAlien     = errors.New("exists, and is not ours (remove it, or choose a name that begins with our prefix)")
)

func (p *planner) run(hooks map[table.Hook][]table.Rule) *plan {
	p.plan = &plan{
		pieces: map[string]*piece{}, hooks: map[string]*piece{}, broken: map[string]error{}, badHooks: map[string]error{},
	}
	p.visiting, p.useless = map[string]bool{}, map[string]bool{}
	for _, h := range slices.Sorted(maps.Keys(hooks)) {
		if len(hooks[h]) == 0 {
			continue
		}
		if err := p.hook(h, hooks[h]); err != nil {
			p.badHooks[hookNames[h]] = err
		}
	}
	return p.plan
}

func (p *planner) hook(h table.Hook, rules []table.Rule) error {
	if !hasHook(p.lower.layer, h) {
		return fmt.Errorf("the %s layer does not have this hook", p.layer)
	}
	pieces, err := p.lower.hook(hookNames[h], rules)
	if err != nil {
		return err
	}
	if err := p.references(pieces, false); err != nil {
		return err
	}
	for _, helper := range pieces[1:] {
		p.add(&unit{helper.name, []*piece{helper}})
	}
	p.hooks[hookNames[h]] = pieces[0]
	return nil
}

func (p *planner) add(u *unit) {
	for _, x := range u.pieces {
		p.pieces[x.name] = x
	}
	p.units = append(p.units, u)
}

// visit adds a chain to the plan, after the chains that it refers to. It returns an error if no rule may refer to the chain.
func (p *planner) visit(name string) error {
	switch {
	case p.visiting[name]:
		return errLoop
	case p.useless[name]:
		return p.broken[name]
	case p.pieces[name] != nil:
		return nil
	}
	p.visiting[name] = true
	defer delete(p.visiting, name)
	pieces, err := p.contents(name)
	if err == nil || pieces != nil {
		u := &unit{name: name, pieces: pieces}
		if err != nil {
			p.broken[name] = err
			u.pieces = []*piece{stub(p.layer, name)}
		}
		p.add(u)
		return nil
	}
	p.broken[name] = err
	if bad := word("chain", name, maxChainName); bad != nil || p.alien[name] {
		p.useless[name] = true
		return err
	}
	p.add(&unit{name, []*piece{stub(p.layer, name)}})
	return nil
}

// contents returns a chain's pieces, and an error if they must not be programmed.
func (p *planner) contents(name string) ([]*piece, error) {
	src := p.chains[name]
	switch {
	case src == nil:
		return nil, errUndefined
	case p.alien[name]:
		return nil, errAlien
	}
	src.lower(p.lower)
	if src.err != nil {
		return nil, src.err
	}
	if err := p.references(src.pieces, src.dispatch != nil); err != nil {
		return nil, err
	}
	if r, ok := p.refused[name]; ok && r.fingerprint == src.fingerprint() {
		return src.pieces, r.err
	}
	return src.pieces, nil
}

// references visits the chains that pieces refer to, and checks the sets they need. With standIn, an undefined chain becomes a stub: one
// interface without a chain must not block all others.
func (p *planner) references(pieces []*piece, standIn bool) error {
	own := make(map[string]bool, len(pieces))
	for _, x := range pieces {
		own[x.name] = true
	}
	var errs error
	for _, x := range pieces {
		for _, set := range x.sets {
			if !p.usable(set.id) {
				errs = errors.Join(errs, fmt.Errorf("needs set %s, which is not there", set.id))
			}
		}
		for _, chain := range x.chains {
			if own[chain] && chain != pieces[0].name {
				continue
			}
			if p.chains[chain] == nil && !standIn {
				errs = errors.Join(errs, fmt.Errorf("leads to %s, which is not defined", chain))
				continue
			}
			if err := p.visit(chain); err != nil {
				errs = errors.Join(errs, fmt.Errorf("leads to %s: %w", chain, err))
			}
		}
	}
	return errs
}
