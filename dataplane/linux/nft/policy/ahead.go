package policy

import (
	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// ahead creates new sets, with their members, in separate transactions, and removes them from the plans. It is used for amounts that are
// too large for one transaction. Rules never use a partially filled set: those that refer to it are written later.
func (b *Backend) ahead(plans [2]*plan) (writes int, err error) {
	for _, p := range plans {
		if p.clear || p.f.rebuild {
			continue
		}
		var rest []*set
		for _, s := range p.sets {
			if s.present || !s.effective() {
				rest = append(rest, s)
				continue
			}
			n, err := b.makeSet(p, s)
			writes += n
			if err != nil {
				return writes, err
			}
		}
		p.sets = rest
	}
	return writes, nil
}

// makeSet creates one set: first the set itself, then its members in chunks.
func (b *Backend) makeSet(p *plan, s *set) (writes int, err error) {
	t := b.view.NewBatch()
	if p.create {
		t.NewTable(p.f.Proto)
	}
	newSet(t, s)
	add := t.Elements(s.f.Proto, unix.NFT_MSG_NEWSETELEM, s.name, s)
	flush := func() {
		add.Close()
		if err == nil && !t.Empty() {
			err = b.view.Commit(t)
		}
		if err == nil && p.create {
			p.create, p.f.present = false, true
		}
		writes += t.Writes
		t = b.view.NewBatch()
		add = t.Elements(s.f.Proto, unix.NFT_MSG_NEWSETELEM, s.name, s)
	}
	s.eachElement(func(m table.Member) {
		addMember(add, s, m)
		if len(t.B) > b.maxBatch {
			flush()
		}
	})
	flush()
	if err != nil {
		b.view.Invalidate() // it may be partially filled: read the kernel's state
		return writes, err
	}
	s.present, s.typ, s.ops, s.refill = true, s.spec.Type, nil, false
	return writes, nil
}
