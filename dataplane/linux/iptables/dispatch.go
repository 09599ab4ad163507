package iptables

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// A dispatch chain with more than leafSize interfaces is split by the first character in which their names differ, and so are its parts: a
// packet passes a few dozen rules at most, and a new interface changes only one part.
const leafSize = 16

// dispatcher translates one dispatch chain.
type dispatcher struct {
	*lowerer
	flag string // -i or -o
	d    table.Dispatch
	rest string // chain at the end of each part; "": none
}

// dispatch translates a dispatch chain to a piece with its name, and further pieces for the parts.
func (l lowerer) dispatch(d table.Dispatch) ([]*piece, error) {
	if err := word("chain", d.Name, maxChainName); err != nil {
		return nil, err
	}
	p := &dispatcher{lowerer: &l, flag: "-i ", d: d}
	if d.ByOut {
		p.flag = "-o "
	}
	names := slices.Sorted(maps.Keys(d.Chains))
	for _, n := range names {
		if err := word("interface", n, maxIface); err != nil {
			return nil, err
		}
		if strings.HasSuffix(n, "+") {
			return nil, fmt.Errorf("interface %q would match all interfaces with this prefix; the name must not end in \"+\"", n)
		}
		if err := word("chain", d.Chains[n], maxChainName); err != nil {
			return nil, fmt.Errorf("interface %s: %w", n, err)
		}
	}
	root := &piece{name: d.Name}
	p.pieces = []*piece{root}
	if err := p.defaults(); err != nil {
		return nil, err
	}
	p.part(root, names)
	root.fill()
	return l.sealed(), nil
}

// defaults builds the chain of the rules for all other interfaces. Parts are entered by goto, not by jump, so each part ends with a goto to
// this chain.
func (p *dispatcher) defaults() error {
	if len(p.d.Default) == 0 {
		return nil
	}
	def := &piece{name: p.sub("-")}
	if err := p.rules(def, p.d.Default); err != nil {
		return fmt.Errorf("for other interfaces: %w", err)
	}
	if len(def.rules) == 0 {
		return nil
	}
	p.rest = def.name
	p.pieces = append(p.pieces, def)
	return nil
}

// part adds rules for names, which must be sorted, to the piece to.
func (p *dispatcher) part(to *piece, names []string) {
	split, common := len(names) > leafSize, 0
	if split {
		common = commonPrefix(names[0], names[len(names)-1])
	}
	for len(names) > 0 {
		n := 1
		if split {
			n = sameStart(names, common+1)
		}
		if n <= 2 {
			for _, name := range names[:n] {
				p.leaf(to, name)
			}
		} else {
			start := names[0][:common+1]
			sub := &piece{name: p.sub(start)}
			p.pieces = append(p.pieces, sub)
			p.part(sub, names[:n])
			to.add(p.flag+start+"+", "-g "+sub.name)
			to.chains = append(to.chains, sub.name)
		}
		names = names[n:]
	}
	if p.rest != "" {
		to.add("-g " + p.rest)
		to.chains = append(to.chains, p.rest)
	}
}

func (p *dispatcher) leaf(to *piece, name string) {
	to.add(p.flag+name, "-g "+p.d.Chains[name])
	to.chains = append(to.chains, p.d.Chains[name])
}

// sub returns the name of a part.
func (p *dispatcher) sub(part string) string {
	name := p.d.Name + "." + part
	if len(name) <= maxChainName && word("chain", name, maxChainName) == nil {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := base64.RawURLEncoding.EncodeToString(sum[:9])
	return p.d.Name[:min(len(p.d.Name), maxChainName-1-len(hash))] + "." + hash
}

// commonPrefix returns the length of the common prefix of a and b.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// sameStart returns how many of names start with the same n bytes as the first; 1 if the first is shorter.
func sameStart(names []string, n int) int {
	if len(names[0]) < n {
		return 1
	}
	same := 1
	for same < len(names) && strings.HasPrefix(names[same], names[0][:n]) {
		same++
	}
	return same
}
