package compiler

import (
	"crypto/sha256"
	"encoding/base64"
	"net/netip"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/ipaddr"
	"contiv.dev/vswitch/plugins/policy/model"
)

// addressClass says which addresses of its pods a set has. A packet from or to an address that several pods claim is denied if it would be for one
// of the pods.
type addressClass uint8

const (
	unshared   addressClass = iota // those that no other pod claims: for rules that allow or pass
	anyAddress                     // all: for rules that deny
	shared                         // those that several pods claim: for denying what a rule does not pass because of that
)

// set is a set to which rules refer.
type set struct {
	model.Set
	from     *selection // of choice
	choice   *choice    // the choice whose pods are the members; nil: the members are nodes or nets
	nodes    *nodeChoice
	nets     []netip.Prefix
	port     string // kind Ports
	protocol model.Protocol
	refs     int
	class    addressClass
	holders  map[model.Member]int // the number of pods that add a member; nil if class is unshared
	reported bool
	count    int  // the number of members
	over     bool // it has more members than the limit, and is not in the output
	unbuilt  bool // it is always over the limit; its members were not computed
	// pending is the difference between the members and the reported members: 1 is added, -1 is removed.
	pending map[model.Member]int
}

// note records that a member was added (1) or removed (-1).
func (s *set) note(m model.Member, by int) {
	if s.class != unshared && !s.hold(m, by) {
		return
	}
	s.count += by
	if !s.over {
		s.report(m, by)
	}
}

// hold changes the number of pods that add a member, and reports whether the member was added or removed because of that.
func (s *set) hold(m model.Member, by int) (changed bool) {
	if s.holders == nil {
		s.holders = map[model.Member]int{}
	}
	before := s.holders[m]
	if s.holders[m] += by; s.holders[m] == 0 {
		delete(s.holders, m)
	}
	return before == 0 || before+by == 0
}

// report makes the change of a member pending.
func (s *set) report(m model.Member, by int) {
	if s.pending == nil {
		s.pending = map[model.Member]int{}
	}
	if n := s.pending[m] + by; n == 0 {
		delete(s.pending, m)
	} else {
		s.pending[m] = n
	}
}

// each calls yield for all members.
func (s *set) each(yield func(model.Member)) {
	if s.class == unshared {
		s.parts(yield)
		return
	}
	for m := range s.holders {
		yield(m)
	}
}

// parts calls yield for everything that is in the set; it may yield a member more than once if class is not unshared.
func (s *set) parts(yield func(model.Member)) {
	for _, n := range s.nets {
		yield(model.Member{Net: n})
	}
	if s.nodes != nil {
		for a := range s.nodes.addrs {
			yield(model.Member{Net: ipaddr.HostPrefix(a)})
		}
	}
	if s.choice != nil {
		for p := range s.choice.pods.all() {
			p.members(s, yield)
		}
	}
}

func (s *set) take(p *pod, by int) { p.members(s, func(m model.Member) { s.note(m, by) }) }

// difference returns the pending changes, sorted, and clears them.
func (s *set) difference() model.Members {
	d := model.Members{Set: s.ID}
	for m, n := range s.pending {
		if n > 0 {
			d.Added = append(d.Added, m)
		} else {
			d.Removed = append(d.Removed, m)
		}
	}
	s.pending = nil
	slices.SortFunc(d.Added, model.Member.Compare)
	slices.SortFunc(d.Removed, model.Member.Compare)
	return d
}

// setID returns the name of a set: a hash of its meaning.
func setID(kind model.SetKind, meaning string) model.SetID {
	prefix := map[model.SetKind]string{model.Networks: "n-", model.Addresses: "a-", model.Ports: "p-"}[kind]
	sum := sha256.Sum256([]byte(prefix + meaning))
	return model.SetID(prefix + base64.RawURLEncoding.EncodeToString(sum[:16]))
}

// networks returns the set of networks.
func (c *Compiler) networks(nets []netip.Prefix) *set {
	texts := make([]string, len(nets))
	for i, n := range nets {
		texts[i] = n.String()
	}
	return c.intern(model.Networks, "networks "+strings.Join(texts, ", "), func(s *set) { s.nets = nets })
}

// addresses returns the set of the addresses of the selected pods.
func (c *Compiler) addresses(from *selection, namespace string, namespaces, pods *selector, class addressClass) *set {
	ch := from.choose(namespace, namespaces, pods)
	defer from.release(ch)
	return c.intern(model.Addresses, ch.text()+class.text(), func(s *set) {
		s.class = class
		s.join(from, ch)
	})
}

// text is a part of a set's meaning.
func (c addressClass) text() string {
	switch c {
	case anyAddress:
		return ", with addresses that several pods claim"
	case shared:
		return ", only addresses that several pods claim"
	}
	return ""
}

// nodesWith returns the set of the addresses of the nodes that a selector selects.
func (c *Compiler) nodesWith(sel *selector) *set {
	meaning := "nodes"
	if sel.text != "" {
		meaning += " with " + sel.text
	}
	return c.intern(model.Addresses, meaning, func(s *set) {
		s.nodes = c.nodes.choose(sel)
		s.nodes.set = s
	})
}

// ports returns the set of a named port of the selected pods.
func (c *Compiler) ports(from *selection, namespace string, namespaces, pods *selector, name string, protocol model.Protocol, class addressClass) *set {
	ch := from.choose(namespace, namespaces, pods)
	defer from.release(ch)
	meaning := "port " + quote(name) + "/" + protocol.String() + " of "
	if from == c.locals {
		meaning += "this node's "
	}
	return c.intern(model.Ports, meaning+ch.text()+class.text(), func(s *set) {
		s.port, s.protocol, s.class = name, protocol, class
		s.join(from, ch)
	})
}

func (s *set) join(from *selection, ch *choice) {
	s.from, s.choice = from, ch
	ch.sets = append(ch.sets, s)
}

// intern returns the set with a meaning and adds a reference to it. A new set is filled first.
func (c *Compiler) intern(kind model.SetKind, meaning string, fill func(s *set)) *set {
	id := setID(kind, meaning)
	s := c.sets[id]
	if s == nil {
		s = &set{Set: model.Set{ID: id, Kind: kind, Meaning: meaning}}
		fill(s)
		s.parts(func(m model.Member) { s.note(m, 1) })
		c.sets[id] = s
	}
	s.refs++
	c.dirtySets[s] = struct{}{}
	return s
}

// drop releases a reference. Flush handles a set without references.
func (c *Compiler) drop(s *set) {
	s.refs--
	c.dirtySets[s] = struct{}{}
}
