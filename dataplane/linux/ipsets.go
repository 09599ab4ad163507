package intdataplane

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// ipsetsManager maintains one family's members of the sets that the messages name. A set that cannot be programmed (too many members, an
// invalid member, or rejected by the kernel) is isolated: it is reported as not usable, so that policies that need it are rendered to
// block. A set with too many or invalid members is also removed from the kernel. Other sets are not affected.
type ipsetsManager struct {
	family table.Family
	max    int
	out    setSink
	log    *slog.Logger

	sets map[string]*ipset
	// changed is called for sets that became usable or unusable, or changed their type.
	changed func(id string)
}

type ipset struct {
	kind    table.SetType
	members map[table.Member]struct{}
	bad     map[string]error // invalid members of the messages, with the error
	refused error            // by the kernel
	shown   bool             // the backend has the set
}

func newIPSetsManager(f table.Family, max int, out setSink, log *slog.Logger) *ipsetsManager {
	return &ipsetsManager{family: f, max: max, out: out, log: log, sets: map[string]*ipset{}, changed: func(string) {}}
}

// OnUpdate takes *proto.IPSetUpdate, *proto.IPSetDeltaUpdate and *proto.IPSetRemove.
func (m *ipsetsManager) OnUpdate(msg any) {
	switch msg := msg.(type) {
	case *proto.IPSetUpdate:
		m.replace(msg)
	case *proto.IPSetDeltaUpdate:
		m.change(msg)
	case *proto.IPSetRemove:
		m.remove(msg.GetId())
	}
}

// CompleteDeferredWork does nothing: the backend batches.
func (m *ipsetsManager) CompleteDeferredWork() error { return nil }

func (m *ipsetsManager) replace(msg *proto.IPSetUpdate) {
	id := msg.GetId()
	s := &ipset{kind: table.SetType(msg.GetType()), bad: map[string]error{},
		members: make(map[table.Member]struct{}, len(msg.GetMembers()))}
	for _, text := range msg.GetMembers() {
		if member, ok := m.parse(s, text); ok {
			s.members[member] = struct{}{}
		}
	}
	old := m.sets[id]
	if old != nil {
		s.shown = old.shown
	}
	m.sets[id] = s
	if m.fault(s) == nil {
		m.show(id, s)
	} else {
		m.hide(id, s)
	}
	if old == nil || old.kind != s.kind || (m.fault(old) == nil) != (m.fault(s) == nil) {
		m.changed(id)
	}
	m.report(id, old, s)
}

// parse parses a member. It returns false if the member is invalid or not of this family.
func (m *ipsetsManager) parse(s *ipset, text string) (table.Member, bool) {
	member, err := parseMember(s.kind, text)
	if err != nil {
		s.bad[text] = err
		return table.Member{}, false
	}
	return member, familyOf(member.Net.Addr()) == m.family
}

func (m *ipsetsManager) change(msg *proto.IPSetDeltaUpdate) {
	s := m.sets[msg.GetId()]
	if s == nil {
		m.log.Warn("change of an IP set that is not known is ignored", "set", msg.GetId())
		return
	}
	before := m.fault(s)
	var add, remove []table.Member
	for _, text := range msg.GetAddedMembers() {
		if member, ok := m.parse(s, text); ok {
			s.members[member] = struct{}{}
			add = append(add, member)
		}
	}
	for _, text := range msg.GetRemovedMembers() {
		delete(s.bad, text)
		member, err := parseMember(s.kind, text)
		if err == nil && familyOf(member.Net.Addr()) == m.family {
			delete(s.members, member)
			remove = append(remove, member)
		}
	}
	// Members are added before they are removed: a member in both lists ends up removed.
	add = slices.DeleteFunc(add, func(a table.Member) bool { _, stays := s.members[a]; return !stays })
	m.follow(msg.GetId(), s, before, add, remove)
}

// follow updates the backend after a change of the set; before is the set's fault before the change.
func (m *ipsetsManager) follow(id string, s *ipset, before error, add, remove []table.Member) {
	after := m.fault(s)
	switch {
	case after != nil:
		m.hide(id, s)
	case before != nil:
		m.show(id, s)
	case len(add)+len(remove) > 0:
		m.out.ChangeSet(m.family, id, add, remove)
	}
	if (before == nil) != (after == nil) {
		m.changed(id)
		what := "an IP set can be programmed again"
		if after != nil {
			what = "an IP set cannot be programmed any more"
		}
		m.log.Info(what, "set", id, "family", int(m.family), "error", after)
	}
}

func (m *ipsetsManager) remove(id string) {
	s := m.sets[id]
	if s == nil {
		m.log.Warn("removal of an IP set that is not known is ignored", "set", id)
		return
	}
	m.hide(id, s)
	delete(m.sets, id)
	m.changed(id)
}

func (m *ipsetsManager) show(id string, s *ipset) {
	m.out.ReplaceSet(m.family, table.Set{ID: id, Type: s.kind, Max: m.max}, slices.Collect(maps.Keys(s.members)))
	s.shown = true
}

func (m *ipsetsManager) hide(id string, s *ipset) {
	if s.shown {
		m.out.DeleteSet(m.family, id)
		s.shown = false
	}
}

// fault returns the reason why a set cannot be used, or nil. A set that the kernel rejected is not a fault here: the backend keeps it and
// retries.
func (m *ipsetsManager) fault(s *ipset) error {
	switch {
	case s.kind > table.SetNet:
		return fmt.Errorf("unknown set type %d", s.kind)
	case len(s.members) > m.max:
		return fmt.Errorf("%d members are more than MaxIPSetSize %d; rules that need the set block instead", len(s.members), m.max)
	case len(s.bad) > 0:
		text := slices.Min(slices.Collect(maps.Keys(s.bad)))
		return fmt.Errorf("member %q: %w", text, s.bad[text])
	}
	return nil
}

func (m *ipsetsManager) report(id string, old, s *ipset) {
	if err := m.fault(s); err != nil && (old == nil || m.fault(old) == nil) {
		m.log.Error("IP set cannot be programmed", "set", id, "family", int(m.family), "error", err)
	}
}

// lookup returns the type of a set, and whether rules may refer to it.
func (m *ipsetsManager) lookup(id string) (table.SetType, bool) {
	s := m.sets[id]
	if s == nil || s.refused != nil || m.fault(s) != nil {
		return 0, false
	}
	return s.kind, true
}

// refusedByKernel records the sets that the last Apply could not program. It reports whether anything has changed.
func (m *ipsetsManager) refusedByKernel(refused map[string]error) bool {
	changed := false
	for id, s := range m.sets {
		err := refused[id]
		if (err == nil) != (s.refused == nil) {
			changed = true
			s.refused = err
			m.changed(id)
			if err != nil {
				m.log.Warn("the kernel rejected an IP set", "set", id, "family", int(m.family), "error", err)
			} else {
				m.log.Info("the kernel accepts an IP set again", "set", id, "family", int(m.family))
			}
			continue
		}
		s.refused = err
	}
	return changed
}

// faults returns the sets that cannot be used, each with its reason.
func (m *ipsetsManager) faults() map[string]string {
	out := map[string]string{}
	for id, s := range m.sets {
		if err := m.fault(s); err != nil {
			out[id] = err.Error()
		} else if s.refused != nil {
			out[id] = s.refused.Error()
		}
	}
	return out
}
