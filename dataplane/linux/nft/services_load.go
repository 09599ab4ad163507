package nft

import (
	"encoding/binary"
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// load notes what the kernel has in the family's table of services.
func (b *balancer) load(l lister) error {
	present, flags, err := l.tableFlags()
	if err != nil {
		return err
	}
	b.forget()
	if !present {
		return nil
	}
	b.present = true
	if flags != 0 {
		b.rebuild = true
		return nil
	}
	for _, read := range []func(lister) error{b.loadMaps, b.loadChains, b.loadElems, b.loadGroups} {
		if err := read(l); err != nil || b.rebuild {
			return err
		}
	}
	return nil
}

// loadMaps compares what there is of sets and maps. If anything is not as it should be, the table is made again.
func (b *balancer) loadMaps(l lister) error {
	found := map[string]listedSet{}
	if err := l.sets(func(s listedSet) { found[s.name] = s }); err != nil {
		return err
	}
	for _, d := range b.defs {
		s, there := found[d.name]
		b.rebuild = b.rebuild || !there || s.flags != d.flags || s.keyType != d.keyType || s.keyLen != d.keyLen ||
			s.dataType != d.dataType
	}
	b.rebuild = b.rebuild || len(found) != len(b.defs)
	return nil
}

// loadChains reads the hashes of all rules.
func (b *balancer) loadChains(l lister) error {
	var list []listedChain
	if err := l.chains(func(c listedChain) { list = append(list, c) }); err != nil {
		return err
	}
	hooks := 0
	for _, c := range list {
		if c.hook {
			hooks++
			b.rebuild = b.rebuild || !slices.ContainsFunc(serviceHooks(), func(h serviceHook) bool {
				return h.name == c.name && h.typ == c.typ && h.num == c.num && h.priority == c.priority
			})
		}
		hashes := []ruleHash{}
		if err := l.rules(c.name, func(r listedRule) { hashes = append(hashes, hashOf(r.udata)) }); err != nil {
			return err
		}
		b.rules[c.name] = hashes
	}
	b.rebuild = b.rebuild || hooks != len(serviceHooks())
	return nil
}

// loadElems reads the small maps, affinity excepted, which is the kernel's own.
func (b *balancer) loadElems(l lister) error {
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
		err := l.elements(d.name, func(el listedElem) {
			e, value := elem{d.id, string(el.key)}, string(el.data)
			if d.dataType == dataVerdict {
				value = el.chain
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

// loadPods reads the nets of pods: keys at which a net begins, or one has ended.
func (b *balancer) loadPods(l lister) error {
	type mark struct {
		key string
		end bool
	}
	var marks []mark
	err := l.elements(b.defs[mapPods].name, func(e listedElem) {
		m := mark{string(e.key), e.flags&unix.NFT_SET_ELEM_INTERVAL_END != 0}
		if m.end && allZero(e.key) {
			return // the kernel's own, where no net begins at the lowest address
		}
		marks = append(marks, m)
	})
	if err != nil {
		return err
	}
	want := map[mark]bool{}
	for i := range b.pods.list {
		one := &b.pods.list[i]
		want[mark{string(one.first[:b.pods.size]), false}] = true
		if after, more := b.pods.next(one.last); more {
			want[mark{string(after[:b.pods.size]), true}] = true
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

// loadGroups reads the backends, and notes of each group which are missing or too many.
func (b *balancer) loadGroups(l lister) error {
	seen, slots := map[uint64][]bool{}, slotsOf(b.f.id)
	var value []byte
	read := func(shard uint32, e listedElem) {
		if len(e.key) != 12 {
			return
		}
		id, i := binary.BigEndian.Uint64(e.key), int(binary.NativeEndian.Uint32(e.key[8:]))
		if shardOf(id) != shard {
			b.rebuild = true // none of us has put it there
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
			if string(value) == string(e.data) {
				if seen[id] == nil {
					seen[id] = make([]bool, blocks(st.want, slots))
				}
				seen[id][i] = true
				return
			}
		}
		st.repair.surplus = append(st.repair.surplus, string(e.key))
	}
	for shard, d := range b.defs[mapBackends:] {
		if err := l.elements(d.name, func(e listedElem) { read(uint32(shard), e) }); err != nil {
			return err
		}
	}
	for id, st := range b.groups {
		b.settle(id, st, seen[id])
	}
	return nil
}

// settle notes what a group lacks, or that it is as desired.
func (b *balancer) settle(id uint64, st *groupState, seen []bool) {
	if st.repair == nil {
		return
	}
	if st.want != nil {
		for i := range blocks(st.want, slotsOf(b.f.id)) {
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
