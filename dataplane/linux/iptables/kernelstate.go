package iptables

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// kernelState is the content of one table, as printed by iptables-save, as far as it concerns us.
type kernelState struct {
	chains map[string][]ruleHash // our chains; a rule without a hash has the zero hash
	alien  map[string]bool       // chains that are not ours
	hooks  map[string]hookState  // the kernel's own chains
}

// hookState holds our rules in one of the kernel's own chains.
type hookState struct {
	ours []hookRule // in order
}

// hookRule is one of these rules.
type hookRule struct {
	position int // counted from 0 among all rules
	hash     ruleHash
	text     string // arguments of -A or -D after the chain's name
}

func newKernelState() *kernelState {
	return &kernelState{chains: map[string][]ruleHash{}, alien: map[string]bool{}, hooks: map[string]hookState{}}
}

// same reports whether our chains and rules are equal. Rules of others in the kernel's own chains do not matter.
func (s *kernelState) same(o *kernelState) bool {
	return maps.EqualFunc(s.chains, o.chains, func(x, y []ruleHash) bool { return slices.Equal(x, y) }) &&
		maps.EqualFunc(s.hooks, o.hooks, func(x, y hookState) bool {
			return slices.EqualFunc(x.ours, y.ours, func(a, b hookRule) bool { return a.hash == b.hash })
		})
}

// saveParser parses the output of iptables-save -t.
type saveParser struct {
	prefixes []string
	known    func(chain string) bool // reports chains that are ours regardless of their names

	begun, complete bool
	err             error
	chains          map[string]*savedChain
	hooks           map[string]hookState
	lengths         map[string]int // of the kernel's own chains
}

type savedChain struct {
	hashes []ruleHash
	others int // rules without a hash
}

func newSaveParser(prefixes []string, known func(chain string) bool) *saveParser {
	return &saveParser{
		prefixes: prefixes, known: known,
		chains: map[string]*savedChain{}, hooks: map[string]hookState{}, lengths: map[string]int{},
	}
}

// incompatible occurs in the output of iptables-nft-save for a table with rules that iptables cannot express.
const incompatible = "is incompatible"

func (p *saveParser) line(l []byte) {
	switch {
	case len(l) == 0:
	case l[0] == '#':
		if bytes.Contains(l, []byte(incompatible)) {
			p.err = fmt.Errorf("iptables-save: %s (remove what the nft program has put into it)", bytes.TrimSpace(l[1:]))
		}
	case l[0] == '*':
		p.begun, p.complete = true, false
	case l[0] == ':':
		p.chain(string(l[1:]))
	case bytes.HasPrefix(l, []byte("-A ")):
		p.rule(l[3:])
	case bytes.Equal(l, []byte("COMMIT")):
		p.complete = true
	}
}

// chain parses a line ":name policy [packets:bytes]"; only the kernel's own chains have a policy.
func (p *saveParser) chain(l string) {
	name, rest, _ := strings.Cut(l, " ")
	policy, _, _ := strings.Cut(rest, " ")
	if policy == "-" {
		p.chains[name] = &savedChain{}
	} else {
		p.lengths[name] = 0
	}
}

func (p *saveParser) rule(l []byte) {
	name, args, _ := bytes.Cut(l, []byte(" "))
	hash := findHash(args)
	if c := p.chains[string(name)]; c != nil {
		c.hashes = append(c.hashes, hash)
		if hash == (ruleHash{}) {
			c.others++
		}
		return
	}
	hook := string(name)
	if hash != (ruleHash{}) || p.jumpsToOurs(args) {
		h := p.hooks[hook]
		h.ours = append(h.ours, hookRule{position: p.lengths[hook], hash: hash, text: string(args)})
		p.hooks[hook] = h
	}
	p.lengths[hook]++
}

// findHash returns the hash in the first comment of a rule's arguments, zero if there is none.
func findHash(args []byte) (h ruleHash) {
	const flag = "--comment "
	i := bytes.Index(args, []byte(flag))
	if i < 0 {
		return h
	}
	args = bytes.TrimPrefix(args[i+len(flag):], []byte(`"`))
	args, ok := bytes.CutPrefix(args, []byte(hashPrefix))
	if !ok || len(args) < len(h) {
		return h
	}
	if end := args[len(h):]; len(end) > 0 && end[0] != '"' && end[0] != ' ' {
		return h
	}
	copy(h[:], args)
	return h
}

// jumpsToOurs reports whether the name of a rule's target has one of our prefixes.
func (p *saveParser) jumpsToOurs(args []byte) bool {
	for _, flag := range []string{" -j ", " -g "} {
		if i := bytes.LastIndex(append([]byte(" "), args...), []byte(flag)); i >= 0 {
			target, _, _ := strings.Cut(string(args[i+len(flag)-1:]), " ")
			return p.prefixed(target)
		}
	}
	return false
}

func (p *saveParser) prefixed(name string) bool {
	for _, prefix := range p.prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// state returns the parsed state. A table that does not exist yet is empty.
func (p *saveParser) state() (*kernelState, error) {
	if p.err != nil {
		return nil, p.err
	}
	if p.begun && !p.complete {
		return nil, errors.New("iptables-save: the output ends in the middle")
	}
	s := newKernelState()
	s.hooks = p.hooks
	for name, c := range p.chains {
		switch {
		case p.prefixed(name), p.known(name), len(c.hashes) > 0 && c.others == 0:
			s.chains[name] = c.hashes
		case c.others > 0:
			s.alien[name] = true
		}
	}
	return s, nil
}
