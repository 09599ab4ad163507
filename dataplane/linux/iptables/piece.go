package iptables

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
)

// piece is one chain in iptables' format. A chain of the model becomes one piece, or several if it needs helpers. Pieces are immutable once
// they are sealed.
type piece struct {
	name   string
	rules  []string   // arguments of -A after the chain's name, without the hash comment
	hashes []ruleHash // of each rule, see hashRules
	chains []string   // that rules jump or go to, by name
	sets   []setRef   // that rules refer to
}

// setRef is a set, and its name in the kernel, which rules use.
type setRef struct{ id, name string }

// ruleHash identifies a rule and its position in its chain: it depends on the chain's name and all rules before. Equal hashes at a position
// mean equal chains up to there, so a chain read from the kernel can be compared without parsing it.
type ruleHash [16]byte

// hashPrefix starts the comment that contains a rule's hash.
const hashPrefix = "cv:"

// hashRules returns the hashes of a chain's rules: 96 bits of SHA-256 over the chain's name, the previous hash and the rule.
func hashRules(chain string, rules []string) []ruleHash {
	if len(rules) == 0 {
		return nil
	}
	out := make([]ruleHash, len(rules))
	h := sha256.New()
	h.Write([]byte(chain))
	var sum [sha256.Size]byte
	for i, r := range rules {
		h.Write([]byte{0})
		h.Write([]byte(r))
		base64.RawURLEncoding.Encode(out[i][:], h.Sum(sum[:0])[:12])
		h.Reset()
		h.Write(out[i][:])
	}
	return out
}

// fill adds a rule without effect to an empty chain. The rule's hash marks the chain as ours, regardless of its name.
func (p *piece) fill() {
	if len(p.rules) == 0 {
		p.rules = []string{"-j RETURN"}
	}
}

// seal completes a piece.
func (p *piece) seal() {
	p.hashes = hashRules(p.name, p.rules)
	slices.Sort(p.chains)
	p.chains = slices.Compact(p.chains)
	slices.SortFunc(p.sets, func(a, b setRef) int { return strings.Compare(a.id, b.id) })
	p.sets = slices.Compact(p.sets)
}

// same reports whether two lists of hashes identify the same rules.
func same(a, b []ruleHash) bool {
	return len(a) == len(b) && (len(a) == 0 || a[len(a)-1] == b[len(b)-1])
}

// stub returns the replacement of a chain that cannot be programmed: it drops everything. In the nat layer, which cannot drop, it
// translates nothing.
func stub(l layerName, chain string) *piece {
	p := &piece{name: chain}
	if l != "nat" {
		p.rules = []string{commentArg("this chain cannot be programmed, see the agent's log") + " -j DROP"}
	}
	p.fill()
	p.seal()
	return p
}
