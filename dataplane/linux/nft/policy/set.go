package policy

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
)

const maxSetName = 255

// set is the state of a set: the desired state, and the differences to the kernel's set.
type set struct {
	f    *family
	id   string
	name string // the kernel's name

	wanted bool
	spec   table.Set
	members

	users map[*node]struct{} // chains that name it

	present bool          // in the kernel
	typ     table.SetType // the type in the kernel
	// The members that the kernel's set lacks (true) and its surplus members (false). Only recorded while the set is present with the right
	// type.
	ops map[table.Member]bool
	// The kernel's set has elements that do not correspond to members: it is emptied and filled again.
	refill bool

	// The prefixes of a set that is not in the kernel, since the rules that name it contain them; nil: the set is in the kernel.
	inlined *wire.Spans

	broken, kernelErr error
}

// members holds the members of a set, depending on its type.
type members struct {
	flat map[table.Member]struct{} // of sets of addresses, with or without ports
	nets netTrie                   // of sets of prefixes
	odd  map[table.Member]struct{} // invalid members
}

func (s *set) Key() string { return fmt.Sprintf("set v%d %s", s.f.ID, s.id) }

func (s *set) Fail(err error) { s.kernelErr = err }

func (s *set) Failed() bool { return s.kernelErr != nil }

func (s *set) Touch() { s.f.dirtySets[s] = struct{}{} }

// interval reports whether the elements of such sets are intervals.
func interval(t table.SetType) bool { return t == table.SetNet }

// keyType returns the type and size of the keys of a family's set.
func keyType(f *family, t table.SetType) (typ, size uint32) {
	size = uint32(wire.AddressBytes(f.ID))
	if t == table.SetIPAndPort {
		return (f.AddrType<<wire.TypeBits|wire.TypeProto)<<wire.TypeBits | wire.TypePort, size + 8
	}
	return f.AddrType, size
}

// keyOf appends a member of a set without intervals in the kernel's format: fields start at multiples of four bytes.
func keyOf(k []byte, t table.SetType, m table.Member) []byte {
	k = append(k, m.Net.Addr().AsSlice()...)
	if t == table.SetIPAndPort {
		k = append(k, m.Proto, 0, 0, 0)
		k = binary.BigEndian.AppendUint16(k, m.Port)
		k = append(k, 0, 0)
	}
	return k
}

// normal returns a member in the form used for comparison; ok is false if such a set cannot have it.
func (s *set) normal(m table.Member) (_ table.Member, ok bool) {
	if !wire.OfFamily(s.f.ID, m.Net) {
		return m, false
	}
	m.Net = m.Net.Masked()
	if s.spec.Type != table.SetIPAndPort {
		m.Proto, m.Port = 0, 0
	}
	return m, s.spec.Type == table.SetNet || m.Net.IsSingleIP()
}

func (s *set) count() int { return len(s.flat) + s.nets.size + len(s.odd) }

// replace makes s a set of this type with these members.
func (s *set) replace(spec table.Set, members []table.Member) {
	if spec.Type != s.spec.Type {
		s.flat, s.nets, s.odd = nil, netTrie{}, nil
		s.ops = nil
		s.refill = s.present && s.typ == spec.Type
	}
	s.wanted, s.spec, s.odd = true, spec, nil
	if s.count() == 0 {
		s.change(members, nil)
		return
	}
	keep := make(map[table.Member]struct{}, len(members))
	for _, m := range members {
		if norm, ok := s.normal(m); ok {
			keep[norm] = struct{}{}
		}
	}
	var gone []table.Member
	s.eachMember(func(m table.Member) {
		if _, ok := keep[m]; !ok {
			gone = append(gone, m)
		}
	})
	s.change(members, gone)
}

// change adds and removes members. Adding an existing member or removing a missing one has no effect.
func (s *set) change(add, remove []table.Member) {
	for _, m := range remove {
		norm, ok := s.normal(m)
		switch {
		case !ok:
			delete(s.odd, norm)
		case s.spec.Type == table.SetNet:
			if removed, covered := s.nets.remove(norm.Net); removed && !covered {
				s.differ(norm, false)
				s.eachInside(norm, func(in table.Member) { s.differ(in, true) })
			}
		default:
			if _, there := s.flat[norm]; there {
				delete(s.flat, norm)
				s.differ(norm, false)
			}
		}
	}
	for _, m := range add {
		s.add(m)
	}
}

func (s *set) add(m table.Member) {
	norm, ok := s.normal(m)
	switch {
	case !ok:
		if s.odd == nil {
			s.odd = map[table.Member]struct{}{}
		}
		s.odd[norm] = struct{}{}
	case s.spec.Type == table.SetNet:
		if added, covered := s.nets.insert(norm.Net); added && !covered {
			s.differ(norm, true)
			s.eachInside(norm, func(in table.Member) { s.differ(in, false) })
		}
	default:
		if _, there := s.flat[norm]; !there {
			if s.flat == nil {
				s.flat = map[table.Member]struct{}{}
			}
			s.flat[norm] = struct{}{}
			s.differ(norm, true)
		}
	}
}

// differ records that the kernel's set lacks one more element, or has one more surplus element.
func (s *set) differ(m table.Member, lacks bool) {
	if !s.present || s.typ != s.spec.Type || s.refill {
		return
	}
	if was, ok := s.ops[m]; ok && was != lacks {
		delete(s.ops, m)
		return
	}
	if s.ops == nil {
		s.ops = map[table.Member]bool{}
	}
	s.ops[m] = lacks
}

func (s *set) eachMember(f func(table.Member)) {
	for m := range s.flat {
		f(m)
	}
	s.nets.root.each(func(p netip.Prefix) { f(table.Member{Net: p}) })
}

// eachElement calls f for the elements that the kernel's set must have: members that no other member covers.
func (s *set) eachElement(f func(table.Member)) {
	for m := range s.flat {
		f(m)
	}
	s.nets.root.outermost(func(p netip.Prefix) { f(table.Member{Net: p}) })
}

func (s *set) eachInside(m table.Member, f func(table.Member)) {
	s.nets.inside(m.Net, func(p netip.Prefix) { f(table.Member{Net: p}) })
}

// fault returns the reason why a set cannot be programmed, nil if it can.
func (s *set) fault() error {
	limit := s.spec.Max
	if limit == 0 {
		limit = table.DefaultMaxSet
	}
	switch {
	case s.kernelErr != nil:
		return s.kernelErr
	case s.spec.Type > table.SetNet:
		return fmt.Errorf("unknown type %d", s.spec.Type)
	case len(s.name) > maxSetName || s.id == "":
		return fmt.Errorf("its ID has %d characters", len(s.id))
	case len(s.odd) > 0:
		for m := range s.odd {
			return fmt.Errorf("%d members are not of its type or family, %s among them", len(s.odd), m.Net)
		}
	case s.count() > limit:
		return fmt.Errorf("it has %d members, more than the %d that it may have; raise its limit (MaxIPSetSize)", s.count(), limit)
	}
	return nil
}

// effective reports whether the kernel must have the set.
func (s *set) effective() bool { return s.wanted && s.broken == nil && s.inlined == nil }

// compare records the differences of the kernel's elements to the desired ones.
func (s *set) compare(there map[table.Member]struct{}) {
	s.ops = nil
	s.eachElement(func(m table.Member) {
		if _, ok := there[m]; ok {
			delete(there, m)
		} else {
			s.differ(m, true)
		}
	})
	for m := range there {
		s.differ(m, false)
	}
}
