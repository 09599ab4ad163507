package windataplane

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/windows/hns"
)

// ipset is a set in the cache. HNS has no sets, so the members become a part of the rules.
type ipset struct {
	kind    proto.IPSetUpdate_IPSetType
	members map[proto.SetMember]struct{}
	bad     map[string]error // members that are invalid
	// Derived from the members on the first request.
	lists map[family]netList
	ports map[family][]ended
}

// nets returns the addresses of a family.
func (s *ipset) nets(f family) netList {
	if list, made := s.lists[f]; made {
		return list
	}
	var nets []netip.Prefix
	for m := range s.members {
		if familyOf(m.Net) == f {
			nets = append(nets, m.Net)
		}
	}
	s.lists[f] = netsOf(nets)
	return s.lists[f]
}

// ended returns the ports of a family, each with its addresses.
func (s *ipset) ended(f family) []ended {
	if list, made := s.ports[f]; made {
		return list
	}
	type port struct {
		protocol uint16
		number   uint16
	}
	by := map[port][]netip.Prefix{}
	for m := range s.members {
		if familyOf(m.Net) == f {
			key := port{uint16(m.Protocol), m.Port}
			by[key] = append(by[key], m.Net)
		}
	}
	var list []ended
	for key, nets := range by {
		list = append(list, ended{protocol: key.protocol, nets: netsOf(nets),
			ports: portList{hns.PortRange{First: key.number, Last: key.number}}})
	}
	slices.SortFunc(list, func(a, b ended) int {
		return cmp.Or(cmp.Compare(a.protocol, b.protocol), cmp.Compare(a.ports[0].First, b.ports[0].First))
	})
	s.ports[f] = list
	return list
}

func (s *ipset) changed() {
	s.lists, s.ports = map[family]netList{}, map[family][]ended{}
}

// ipSetsManager keeps the cache of IP sets. A set with an invalid member, or with too many members, cannot be used: the rules that need it are
// closed.
type ipSetsManager struct {
	max     int
	log     *slog.Logger
	sets    map[string]*ipset
	changed func(id string) // called for sets whose users must be rendered again
}

func newIPSetsManager(max int, log *slog.Logger) *ipSetsManager {
	return &ipSetsManager{max: max, log: log, sets: map[string]*ipset{}, changed: func(string) {}}
}

// OnUpdate handles *proto.IPSetUpdate, *proto.IPSetDeltaUpdate and *proto.IPSetRemove.
func (m *ipSetsManager) OnUpdate(msg any) {
	switch msg := msg.(type) {
	case *proto.IPSetUpdate:
		m.replace(msg)
	case *proto.IPSetDeltaUpdate:
		m.change(msg)
	case *proto.IPSetRemove:
		if m.sets[msg.GetId()] == nil {
			m.log.Warn("removal of an IP set that is not known is ignored", "set", msg.GetId())
			return
		}
		delete(m.sets, msg.GetId())
		m.changed(msg.GetId())
	}
}

// CompleteDeferredWork does nothing: sets are in HNS only as a part of rules.
func (m *ipSetsManager) CompleteDeferredWork() error { return nil }

func (m *ipSetsManager) replace(msg *proto.IPSetUpdate) {
	s := &ipset{kind: msg.GetType(), members: make(map[proto.SetMember]struct{}, len(msg.GetMembers())), bad: map[string]error{}}
	s.changed()
	for _, text := range msg.GetMembers() {
		s.add(text)
	}
	old := m.sets[msg.GetId()]
	if old != nil && old.kind == s.kind && maps.Equal(old.members, s.members) && len(old.bad)+len(s.bad) == 0 {
		return
	}
	m.sets[msg.GetId()] = s
	m.report(msg.GetId(), s)
	m.changed(msg.GetId())
}

// add reports whether the member is new.
func (s *ipset) add(text string) bool {
	member, err := proto.ParseMember(s.kind, text)
	if err != nil {
		s.bad[text] = err
		return true
	}
	before := len(s.members)
	s.members[member] = struct{}{}
	return len(s.members) > before
}

func (s *ipset) remove(text string) bool {
	if _, is := s.bad[text]; is {
		delete(s.bad, text)
		return true
	}
	member, err := proto.ParseMember(s.kind, text)
	before := len(s.members)
	if err == nil {
		delete(s.members, member)
	}
	return len(s.members) < before
}

func (m *ipSetsManager) change(msg *proto.IPSetDeltaUpdate) {
	s := m.sets[msg.GetId()]
	if s == nil {
		m.log.Warn("change of an IP set that is not known is ignored", "set", msg.GetId())
		return
	}
	news := false
	for _, text := range msg.GetAddedMembers() {
		news = s.add(text) || news
	}
	for _, text := range msg.GetRemovedMembers() {
		news = s.remove(text) || news
	}
	if !news {
		return
	}
	s.changed()
	m.report(msg.GetId(), s)
	m.changed(msg.GetId())
}

// fault returns why a set cannot be used, nil if it can.
func (m *ipSetsManager) fault(s *ipset) error {
	switch {
	case s.kind > proto.IPSetUpdate_NET || s.kind < 0:
		return fmt.Errorf("unknown set type %d", s.kind)
	case len(s.members) > m.max:
		return fmt.Errorf("%d members are more than MaxIPSetSize %d", len(s.members), m.max)
	case len(s.bad) > 0:
		text := slices.Min(slices.Collect(maps.Keys(s.bad)))
		return fmt.Errorf("member %q: %w", text, s.bad[text])
	}
	return nil
}

func (m *ipSetsManager) report(id string, s *ipset) {
	if err := m.fault(s); err != nil {
		m.log.Error("IP set cannot be used; rules that need it block instead", "set", id, "error", err)
	}
}

func (m *ipSetsManager) lookup(id string) (*ipset, bool) {
	s := m.sets[id]
	if s == nil || m.fault(s) != nil {
		return nil, false
	}
	return s, true
}
