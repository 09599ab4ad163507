package services

import (
	"encoding/binary"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
)

// load records the kernel's state of the family's table of services.
func (b *balancer) load(l wire.Lister) error {
	present, flags, err := l.TableFlags()
	if err != nil {
		return err
	}
	b.markAbsent()
	if !present {
		return nil
	}
	b.present = true
	if flags != 0 {
		b.rebuild = true
		return nil
	}
	for _, read := range []func(wire.Lister) error{b.loadMaps, b.loadChains, b.loadElems, b.loadGroups} {
		if err := read(l); err != nil || b.rebuild {
			return err
		}
	}
	return nil
}

// loadMaps compares the existing sets and maps with the desired ones. If there is any difference, the table is created again.
func (b *balancer) loadMaps(l wire.Lister) error {
	found := map[string]wire.Set{}
	if err := l.Sets(func(s wire.Set) { found[s.Name] = s }); err != nil {
		return err
	}
	for _, d := range b.defs {
		s, there := found[d.name]
		b.rebuild = b.rebuild || !there || s.Flags != d.flags || s.KeyType != d.keyType || s.KeyLen != d.keyLen ||
			s.DataType != d.dataType
	}
	b.rebuild = b.rebuild || len(found) != len(b.defs)
	return nil
}

// loadChains reads the hashes of all rules.
func (b *balancer) loadChains(l wire.Lister) error {
	var list []wire.Chain
	if err := l.Chains(func(c wire.Chain) { list = append(list, c) }); err != nil {
		return err
	}
	hooks := 0
	for _, c := range list {
		if c.Hook {
			hooks++
			b.rebuild = b.rebuild || !slices.ContainsFunc(serviceHooks(), func(h serviceHook) bool {
				return h.name == c.Name && h.typ == c.Type && h.num == c.Hooknum && h.priority == c.Priority
			})
		}
		hashes := []wire.Hash{}
		if err := l.Rules(c.Name, func(r wire.Rule) { hashes = append(hashes, wire.HashOf(r.UserData)) }); err != nil {
			return err
		}
		b.rules[c.Name] = hashes
	}
	b.rebuild = b.rebuild || hooks != len(serviceHooks())
	return nil
}

// loadElems reads the small maps, except affinity, which only the kernel writes.
func (b *balancer) loadElems(l wire.Lister) error {
	there := map[elem]string{}
	for _, d := range b.defs[:mapBackends] {
		switch d.id {
		case mapAffinity:
			continue
		case mapPods:
			if err := b.loadPods(l); err != nil {
				return err
			}
			continue
		}
		err := l.Elements(d.name, func(el wire.Elem) {
			e, value := elem{d.id, string(el.Key)}, string(el.Value)
			if d.dataType == wire.TypeVerdict {
				value = el.Chain
			}
			there[e] = value
		})
		if err != nil {
			return err
		}
	}
	b.elems.Dataplane().ReplaceAll(maps.All(there))
	return nil
}

// loadPods reads the prefixes of pods: the keys at which a prefix begins, and those after its end.
func (b *balancer) loadPods(l wire.Lister) error {
	type mark struct {
		key string
		end bool
	}
	var marks []mark
	err := l.Elements(b.defs[mapPods].name, func(e wire.Elem) {
		m := mark{string(e.Key), e.Flags&unix.NFT_SET_ELEM_INTERVAL_END != 0}
		if m.end && allZero(e.Key) {
			return // added by the kernel, if no prefix begins at the lowest address
		}
		marks = append(marks, m)
	})
	if err != nil {
		return err
	}
	want := map[mark]bool{}
	for i := range b.pods.List {
		one := &b.pods.List[i]
		want[mark{string(one.First[:b.pods.Size]), false}] = true
		if after, more := b.pods.Next(one.Last); more {
			want[mark{string(after[:b.pods.Size]), true}] = true
		}
	}
	same := len(want) == len(marks)
	for _, m := range marks {
		same = same && want[m]
	}
	switch {
	case same:
		b.podsThere = b.podsKey()
	case len(marks) > 0:
		b.podsThere = "something else"
	}
	return nil
}

func allZero(key []byte) bool {
	for _, x := range key {
		if x != 0 {
			return false
		}
	}
	return true
}

// loadGroups reads the backends, and records for each group the missing and surplus blocks.
func (b *balancer) loadGroups(l wire.Lister) error {
	seen, slots := map[uint64][]bool{}, slotsOf(b.f.ID)
	var value []byte
	read := func(shard uint32, e wire.Elem) {
		if len(e.Key) != 12 {
			return
		}
		id, i := binary.BigEndian.Uint64(e.Key), int(binary.NativeEndian.Uint32(e.Key[8:]))
		if shardOf(id) != shard {
			b.rebuild = true // not written by us
			return
		}
		st := b.groups[id]
		if st == nil {
			st = &groupState{}
			b.groups[id] = st
			b.changed[id] = struct{}{}
		}
		if st.repair == nil {
			st.repair = &repair{}
		}
		if st.want != nil && i < blocks(st.want, slots) {
			value = appendBlock(value[:0], st.want, i, slots)
			if string(value) == string(e.Value) {
				if seen[id] == nil {
					seen[id] = make([]bool, blocks(st.want, slots))
				}
				seen[id][i] = true
				return
			}
		}
		st.repair.surplus = append(st.repair.surplus, string(e.Key))
	}
	for shard, d := range b.defs[mapBackends:] {
		if err := l.Elements(d.name, func(e wire.Elem) { read(uint32(shard), e) }); err != nil {
			return err
		}
	}
	for id, st := range b.groups {
		b.settle(id, st, seen[id])
	}
	return nil
}

// settle records the missing blocks of a group, or that the group is as desired.
func (b *balancer) settle(id uint64, st *groupState, seen []bool) {
	if st.repair == nil {
		return
	}
	if st.want != nil {
		for i := range blocks(st.want, slotsOf(b.f.ID)) {
			if seen == nil || !seen[i] {
				st.repair.missing = append(st.repair.missing, i)
			}
		}
		if len(st.repair.missing)+len(st.repair.surplus) == 0 {
			st.have, st.repair = st.want, nil
			delete(b.changed, id)
		}
	}
}
