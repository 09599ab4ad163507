package ipsetcache

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"contiv.dev/vswitch/dataplane/proto"
)

// Kind is a set's type.
type Kind = proto.IPSetUpdate_IPSetType

// Cache holds IP sets. It is not safe for concurrent use.
type Cache struct {
	sets    map[string]*set
	changed map[string]struct{} // ids of sets that are not as acknowledged
}

// set is a set, or with gone one that is kept until its removal is acknowledged.
type set struct {
	kind      Kind
	gone      bool
	spellings map[string]Member
	members   map[Member]int // how many spellings a member has

	// What the user has acknowledged, and members since then: true added, false removed.
	acked     bool
	ackedKind Kind
	diff      map[Member]bool
}

// Change is the net difference of one set since the user last acknowledged it.
type Change struct {
	ID   string
	Kind Kind
	// Created: the set is new to the user. Recreated: its type changed; Removed is then empty, as nothing of the old set is
	// left. In both cases Added is the complete membership.
	Created, Recreated bool
	// Gone: the set is to go, with all that it had.
	Gone bool
	// Added and Removed are sorted.
	Added, Removed []Member
}

// New is an empty cache.
func New() *Cache { return &Cache{sets: map[string]*set{}, changed: map[string]struct{}{}} }

// OnUpdate takes the messages about IP sets and ignores others. An error names the set and members that were not understood;
// what was understood is taken. The user must then treat rules that refer to the set as failed: without a member, an allow
// rule is too narrow, but a deny rule too wide.
func (c *Cache) OnUpdate(msg any) error {
	switch m := msg.(type) {
	case *proto.IPSetUpdate:
		return c.replace(m)
	case *proto.IPSetDeltaUpdate:
		return c.change(m)
	case *proto.IPSetRemove:
		return c.remove(m.GetId())
	}
	return nil
}

func (c *Cache) replace(m *proto.IPSetUpdate) error {
	s := c.sets[m.GetId()]
	if s == nil {
		s = &set{}
		c.sets[m.GetId()] = s
	}
	if s.gone || s.kind != m.GetType() || s.spellings == nil {
		s.clear()
		s.kind, s.gone = m.GetType(), false
	}
	wanted := make(map[string]struct{}, len(m.GetMembers()))
	for _, text := range m.GetMembers() {
		wanted[text] = struct{}{}
	}
	for text := range s.spellings {
		if _, ok := wanted[text]; !ok {
			s.drop(text)
		}
	}
	var bad []error
	for text := range wanted {
		bad = append(bad, s.add(text))
	}
	c.note(m.GetId(), s)
	return failed(m.GetId(), bad)
}

func (c *Cache) change(m *proto.IPSetDeltaUpdate) error {
	s := c.sets[m.GetId()]
	if s == nil || s.gone {
		return fmt.Errorf("IP set %s: a change of members came for a set that does not exist; it is ignored", m.GetId())
	}
	var bad []error
	for _, text := range m.GetAddedMembers() {
		bad = append(bad, s.add(text))
	}
	for _, text := range m.GetRemovedMembers() {
		s.drop(text)
	}
	c.note(m.GetId(), s)
	return failed(m.GetId(), bad)
}

func (c *Cache) remove(id string) error {
	s := c.sets[id]
	if s == nil || s.gone {
		return fmt.Errorf("IP set %s: the removal of a set that does not exist is ignored", id)
	}
	s.clear()
	s.gone = true
	c.note(id, s)
	return nil
}

func failed(id string, errs []error) error {
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("IP set %s: %w", id, err)
	}
	return nil
}

// add adds a spelling of a member.
func (s *set) add(text string) error {
	if _, known := s.spellings[text]; known {
		return nil
	}
	m, err := ParseMember(s.kind, text)
	if err != nil {
		return fmt.Errorf("member %q: %w", text, err)
	}
	s.spellings[text] = m
	if s.members[m]++; s.members[m] == 1 {
		s.toggle(m, true)
	}
	return nil
}

// drop takes a spelling back. One that is not there is no error: it may not have been understood.
func (s *set) drop(text string) {
	m, known := s.spellings[text]
	if !known {
		return
	}
	delete(s.spellings, text)
	if s.members[m]--; s.members[m] == 0 {
		delete(s.members, m)
		s.toggle(m, false)
	}
}

// toggle notes that m has come or gone; the second time it is as before.
func (s *set) toggle(m Member, added bool) {
	if !s.acked {
		return // all members are new to the user
	}
	if _, back := s.diff[m]; back {
		delete(s.diff, m)
		return
	}
	if s.diff == nil {
		s.diff = map[Member]bool{}
	}
	s.diff[m] = added
}

// clear takes all members back.
func (s *set) clear() {
	for m := range s.members {
		s.toggle(m, false)
	}
	s.spellings, s.members = map[string]Member{}, map[Member]int{}
}

// note decides whether the set counts as changed.
func (c *Cache) note(id string, s *set) {
	same := s.acked && !s.gone && s.kind == s.ackedKind && len(s.diff) == 0
	switch {
	case same:
		delete(c.changed, id)
	case s.gone && !s.acked: // the user never knew it
		delete(c.changed, id)
		delete(c.sets, id)
	default:
		c.changed[id] = struct{}{}
	}
}

// Changed is the ids of the sets that differ from what the user has acknowledged, sorted.
func (c *Cache) Changed() []string { return slices.Sorted(maps.Keys(c.changed)) }

// Change is how the set differs from what the user has acknowledged; false: it does not.
func (c *Cache) Change(id string) (Change, bool) {
	if _, ok := c.changed[id]; !ok {
		return Change{}, false
	}
	s := c.sets[id]
	ch := Change{ID: id, Kind: s.kind, Gone: s.gone, Created: !s.acked, Recreated: s.acked && !s.gone && s.kind != s.ackedKind}
	switch {
	case s.gone:
		ch.Kind = s.ackedKind
	case ch.Created || ch.Recreated:
		ch.Added = slices.Collect(maps.Keys(s.members))
	default:
		for m, added := range s.diff {
			if added {
				ch.Added = append(ch.Added, m)
			} else {
				ch.Removed = append(ch.Removed, m)
			}
		}
	}
	slices.SortFunc(ch.Added, Member.Compare)
	slices.SortFunc(ch.Removed, Member.Compare)
	return ch, true
}

// Ack says that the dataplane now has the set as the cache does.
func (c *Cache) Ack(id string) {
	s := c.sets[id]
	if s == nil {
		return
	}
	delete(c.changed, id)
	if s.gone {
		delete(c.sets, id)
		return
	}
	s.acked, s.ackedKind, s.diff = true, s.kind, nil
}

// Lookup is the set's type and how many members it has; false: there is no such set.
func (c *Cache) Lookup(id string) (kind Kind, members int, ok bool) {
	s := c.sets[id]
	if s == nil || s.gone {
		return 0, 0, false
	}
	return s.kind, len(s.members), true
}

// Members goes through the set's members, in no order; of a set that does not exist there are none.
func (c *Cache) Members(id string) iter.Seq[Member] {
	s := c.sets[id]
	if s == nil || s.gone {
		return func(func(Member) bool) {}
	}
	return maps.Keys(s.members)
}
