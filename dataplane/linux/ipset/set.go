package ipset

import (
	"fmt"
	"maps"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// set is one desired set, with the recorded state of the kernel's set: its members are members without lacks and with surplus.
type set struct {
	family table.Family
	id     string
	name   string
	typ    table.SetType
	max    int

	members map[member]why
	invalid map[table.Member]error // desired, but invalid

	known   bool // lacks and surplus are valid
	lacks   map[member]struct{}
	surplus map[member]struct{}
	before  *difference // the difference as recorded before the kernel's sets were listed again; nil: it was unknown
}

// difference is what the kernel's set lacks and has in surplus.
type difference struct{ lacks, surplus map[member]struct{} }

func (d *difference) is(m *set) bool {
	return maps.Equal(d.lacks, m.lacks) && maps.Equal(d.surplus, m.surplus)
}

func newSet(f table.Family, d table.Set) *set {
	m := &set{family: f, id: d.ID, name: Name(f, d.ID), members: map[member]why{}}
	m.describe(d)
	return m
}

func (m *set) describe(d table.Set) {
	if d.Type != m.typ {
		m.invalidate()
	}
	m.typ, m.max = d.Type, d.Max
	if m.max <= 0 {
		m.max = table.DefaultMaxSet
	}
}

// object returns the name of the set in results.
func (m *set) object() string { return fmt.Sprintf("set v%d %s", m.family, m.id) }

// invalidate marks the kernel's members as unknown.
func (m *set) invalidate() { m.known, m.lacks, m.surplus, m.before = false, nil, nil, nil }

// recorded returns the recorded difference; nil if it is unknown.
func (m *set) recorded() *difference {
	if !m.known {
		return nil
	}
	return &difference{m.lacks, m.surplus}
}

// empty records that the kernel's set is empty (or does not exist yet).
func (m *set) empty() {
	m.known, m.surplus = true, map[member]struct{}{}
	m.lacks = make(map[member]struct{}, len(m.members))
	for x := range m.members {
		m.lacks[x] = struct{}{}
	}
}

// synced records that the kernel's set is as desired.
func (m *set) synced() {
	m.known, m.lacks, m.surplus = true, map[member]struct{}{}, map[member]struct{}{}
}

// pending reports whether there is something to do for the set.
func (m *set) pending() bool {
	return !m.known || len(m.lacks) > 0 || len(m.surplus) > 0 || m.invalid != nil || len(m.members) > m.max
}

// fits reports whether the kernel's set can hold the members, regardless of its maximum.
func (m *set) fits(h header) bool { return h.typ == kernelType(m.typ) && h.family == m.family }

// replace makes members the complete desired content.
func (m *set) replace(members []table.Member) {
	old := m.members
	m.members, m.invalid = make(map[member]why, len(members)), nil
	for _, x := range members {
		m.convert(x, func(c member, w why) { m.members[c] |= w })
	}
	if !m.known {
		return
	}
	lacks, surplus := map[member]struct{}{}, map[member]struct{}{}
	inKernel := func(x member) bool {
		if _, ok := old[x]; ok {
			_, lacking := m.lacks[x]
			return !lacking
		}
		_, left := m.surplus[x]
		return left
	}
	for x := range m.members {
		if !inKernel(x) {
			lacks[x] = struct{}{}
		}
	}
	for x := range old {
		if m.members[x] == 0 && inKernel(x) {
			surplus[x] = struct{}{}
		}
	}
	for x := range m.surplus {
		if m.members[x] == 0 {
			surplus[x] = struct{}{}
		}
	}
	m.lacks, m.surplus = lacks, surplus
}

// convert calls use with x in the kernel's format, or records that it is invalid.
func (m *set) convert(x table.Member, use func(member, why)) {
	c, all, err := convert(m.family, m.typ, x)
	switch {
	case err != nil:
		if m.invalid == nil {
			m.invalid = map[table.Member]error{}
		}
		m.invalid[x] = err
	case all:
		for _, h := range halves() {
			use(h, halfOfAll)
		}
	default:
		use(c, explicit)
	}
}

// addMember adds a member.
func (m *set) addMember(x table.Member) {
	m.convert(x, func(c member, w why) {
		before := m.members[c]
		m.members[c] = before | w
		if before != 0 || !m.known {
			return
		}
		if _, ok := m.surplus[c]; ok {
			delete(m.surplus, c)
		} else {
			m.lacks[c] = struct{}{}
		}
	})
}

// unwant removes a member.
func (m *set) unwant(x table.Member) {
	if _, ok := m.invalid[x]; ok {
		if delete(m.invalid, x); len(m.invalid) == 0 {
			m.invalid = nil
		}
		return
	}
	if _, _, err := convert(m.family, m.typ, x); err != nil {
		return
	}
	m.convert(x, func(c member, w why) {
		before := m.members[c]
		if before&^w != 0 || before == 0 {
			if before != 0 {
				m.members[c] = before &^ w
			}
			return
		}
		delete(m.members, c)
		if !m.known {
			return
		}
		if _, ok := m.lacks[c]; ok {
			delete(m.lacks, c)
		} else {
			m.surplus[c] = struct{}{}
		}
	})
}

// impossible returns the reason why the set cannot be programmed as desired, as far as it is known without the kernel.
func (m *set) impossible() error {
	for _, err := range m.invalid {
		return err
	}
	if len(m.members) > m.max {
		return fmt.Errorf("%d members are more than the %d it may have (raise MaxIPSetSize)", len(m.members), m.max)
	}
	if kernelType(m.typ) == "" {
		return fmt.Errorf("sets of type %d are not known here", m.typ)
	}
	return nil
}
