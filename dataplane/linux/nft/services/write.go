package services

import (
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/delta"
	"contiv.dev/vswitch/dataplane/linux/nft/wire"
)

// write adds the differences to a transaction.
func (b *balancer) write(t *wire.Batch, over uint64) {
	b.leave, b.gone = nil, nil
	t.B = slices.Grow(t.B, b.size())
	if b.rebuild || b.nothing() {
		if b.present {
			t.DelTable(b.f.Proto)
			t.Writes++
		}
		b.markAbsent()
		if b.nothing() {
			return
		}
	}
	if !b.present {
		t.NewTable(b.f.Proto)
		for i := range b.defs {
			b.newMap(t, &b.defs[i])
		}
	}
	b.writeChains(t, over)
	b.writePods(t)
	b.writeElems(t)
	b.writeGroups(t)
	for _, name := range b.gone { // all rules before the first chain is removed: the chains refer to each other
		t.Begin(b.f.Proto, unix.NFT_MSG_DELRULE, 0, nil)
		t.String(unix.NFTA_RULE_CHAIN, name)
		t.End()
	}
	for _, name := range b.gone {
		t.Begin(b.f.Proto, unix.NFT_MSG_DELCHAIN, 0, nil)
		t.String(unix.NFTA_CHAIN_NAME, name)
		t.End()
		t.Writes++
	}
}

// size returns the approximate number of bytes that write needs.
func (b *balancer) size() int {
	const each, perGroup = 80, 60 // an element; the overhead of a group's message
	n := (b.elems.PendingUpdates().Len() + b.elems.PendingDeletions().Len()) * (each + perGroup)
	for id := range b.changed {
		if st := b.groups[id]; st.want != nil {
			n += perGroup + blocks(st.want, slotsOf(b.f.ID))*each
		}
	}
	return n
}

// nothing reports whether the kernel must have no table: there is no service of this family.
func (b *balancer) nothing() bool { return len(b.held) == b.standard }

// markAbsent records that the kernel has nothing.
func (b *balancer) markAbsent() {
	b.present, b.rebuild, b.chainsDirty, b.podsThere = false, false, true, ""
	clear(b.rules)
	clear(b.leaving)
	b.elems.Dataplane().ReplaceAll(maps.All(map[elem]string(nil)))
	for id, st := range b.groups {
		st.have, st.repair = nil, nil
		b.changed[id] = struct{}{}
	}
}

func (b *balancer) newMap(t *wire.Batch, d *mapDef) {
	t.Begin(b.f.Proto, unix.NFT_MSG_NEWSET, unix.NLM_F_CREATE|unix.NLM_F_EXCL, nil)
	t.String(unix.NFTA_SET_NAME, d.name)
	t.Uint32(unix.NFTA_SET_FLAGS, d.flags)
	t.Uint32(unix.NFTA_SET_KEY_TYPE, d.keyType)
	t.Uint32(unix.NFTA_SET_KEY_LEN, d.keyLen)
	if d.dataType != 0 {
		t.Uint32(unix.NFTA_SET_DATA_TYPE, d.dataType)
		t.Uint32(unix.NFTA_SET_DATA_LEN, d.dataLen)
	}
	if d.maxSize > 0 {
		at := t.Nest(unix.NFTA_SET_DESC)
		t.Uint32(unix.NFTA_SET_DESC_SIZE, d.maxSize)
		t.EndNest(at)
	}
	t.Sets++
	t.Uint32(unix.NFTA_SET_ID, t.Sets)
	t.End()
	t.Writes++
}

// desiredChains returns the rules of all chains.
func (b *balancer) desiredChains() map[string][]wire.Program {
	want := maps.Clone(b.static)
	for name, l := range b.chains {
		want[name] = l.programs
	}
	return want
}

// prepare adds to a transaction the chains that the next transaction's elements refer to. A packet uses one generation of rules throughout,
// but not of elements: if it found a new element of a verdict map while it uses the previous rules, it would find the new chain empty, and
// its processing would end.
func (b *balancer) prepare(t *wire.Batch) {
	if b.present && !b.rebuild && !b.nothing() && b.chainsDirty {
		b.made = b.makeChains(t, b.desiredChains())
	}
}

// prepared records that the kernel has what prepare wrote.
func (b *balancer) prepared() {
	for name, programs := range b.made {
		b.rules[name] = hashesOf(programs)
	}
	b.made = nil
}

// makeChains adds messages that create missing chains, and replace rules that differ. It returns the chains that it writes.
func (b *balancer) makeChains(t *wire.Batch, want map[string][]wire.Program) map[string][]wire.Program {
	write := map[string][]wire.Program{}
	for name, programs := range want {
		if have, there := b.rules[name]; !there || !wire.SameHashes(programs, have) {
			write[name] = programs
		}
	}
	names := slices.Sorted(maps.Keys(write))
	for _, name := range names {
		if _, there := b.rules[name]; there {
			t.Begin(b.f.Proto, unix.NFT_MSG_DELRULE, 0, nil)
			t.String(unix.NFTA_RULE_CHAIN, name)
			t.End()
			continue
		}
		b.newChain(t, name)
	}
	for _, name := range names { // after all chains exist: they refer to each other
		for i := range write[name] {
			t.NewRule(b.f.Proto, name, &write[name][i], nil)
		}
	}
	return write
}

func hashesOf(programs []wire.Program) []wire.Hash {
	hashes := make([]wire.Hash, len(programs))
	for i := range programs {
		hashes[i] = programs[i].Hash
	}
	return hashes
}

func (b *balancer) newChain(t *wire.Batch, name string) {
	t.Begin(b.f.Proto, unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE|unix.NLM_F_EXCL, nil)
	t.String(unix.NFTA_CHAIN_NAME, name)
	for _, h := range serviceHooks() {
		if h.name == name {
			at := t.Nest(unix.NFTA_CHAIN_HOOK)
			t.Uint32(unix.NFTA_HOOK_HOOKNUM, h.num)
			t.Uint32(unix.NFTA_HOOK_PRIORITY, uint32(h.priority))
			t.EndNest(at)
			t.Uint32(unix.NFTA_CHAIN_POLICY, wire.CodeAccept)
			t.String(unix.NFTA_CHAIN_TYPE, h.typ)
		}
	}
	t.End()
	t.Writes++
}

// writePods replaces the prefixes of pods.
func (b *balancer) writePods(t *wire.Batch) {
	if b.podsThere == b.podsKey() {
		return
	}
	name := b.defs[mapPods].name
	if b.podsThere != "" {
		t.Begin(b.f.Proto, unix.NFT_MSG_DELSETELEM, 0, nil)
		t.String(unix.NFTA_SET_ELEM_LIST_SET, name)
		t.End()
	}
	list := t.Elements(b.f.Proto, unix.NFT_MSG_NEWSETELEM, name, nil)
	for i := range b.pods.List {
		list.Span(b.pods, &b.pods.List[i])
	}
	list.Close()
	t.Writes++
}

// heldElem is an element with its holder.
type heldElem struct {
	elem
	*holder
}

// writeElems writes the elements that differ: removals first, then additions.
func (b *balancer) writeElems(t *wire.Batch) {
	var del [numMaps][]elem
	var add [numMaps][]heldElem
	for e := range b.elems.PendingDeletions().Iter() {
		del[e.m] = append(del[e.m], e)
	}
	for e := range b.elems.PendingUpdates().Iter() {
		if _, there := b.elems.Dataplane().Get(e); there {
			del[e.m] = append(del[e.m], e)
		}
		add[e.m] = append(add[e.m], heldElem{e, b.held[e]})
	}
	for m := range numMaps {
		list := t.Elements(b.f.Proto, unix.NFT_MSG_DELSETELEM, b.defs[m].name, nil)
		for _, e := range del[m] {
			at := list.Begin()
			list.KeyAttr([]byte(e.key))
			t.EndNest(at)
			t.Writes++
		}
		list.Close()
	}
	for m := range numMaps {
		b.addElems(t, m, add[m])
	}
}

// addElems adds elements; the object of each message is the service that needs the elements.
func (b *balancer) addElems(t *wire.Batch, m mapID, elems []heldElem) {
	slices.SortFunc(elems, func(x, y heldElem) int { return strings.Compare(x.owner.Name, y.owner.Name) })
	list := t.Elements(b.f.Proto, unix.NFT_MSG_NEWSETELEM, b.defs[m].name, nil)
	for _, e := range elems {
		if list.Blame != wire.Object(e.owner) {
			list.Close()
			list.Blame = e.owner
		}
		at := list.Begin()
		list.KeyAttr([]byte(e.key))
		switch {
		case b.defs[m].dataType == wire.TypeVerdict:
			t.Verdict(unix.NFTA_SET_ELEM_DATA, unix.NFT_GOTO, e.kernelValue(m))
		case b.defs[m].dataType != 0:
			value := t.Nest(unix.NFTA_SET_ELEM_DATA)
			t.Bytes(unix.NFTA_DATA_VALUE, []byte(e.value))
			t.EndNest(value)
		}
		t.EndNest(at)
		t.Writes++
	}
	list.Close()
}

// kernelValue returns the value of the kernel's element.
func (c *holder) kernelValue(m mapID) string {
	if m == mapSources {
		return sourcesChain(c.value)
	}
	return c.value
}

// writeGroups writes the backends that differ.
func (b *balancer) writeGroups(t *wire.Batch) {
	var byShard [shards][]uint64
	for id := range b.changed {
		byShard[shardOf(id)] = append(byShard[shardOf(id)], id)
	}
	for i, ids := range byShard {
		name := b.defs[int(mapBackends)+i].name
		b.deleteBackends(t, t.Elements(b.f.Proto, unix.NFT_MSG_DELSETELEM, name, nil), ids)
		b.addBackends(t, t.Elements(b.f.Proto, unix.NFT_MSG_NEWSETELEM, name, nil), ids)
	}
}

func (b *balancer) deleteBackends(t *wire.Batch, del *wire.Elements, ids []uint64) {
	for _, id := range ids {
		b.groups[id].eachGone(id, slotsOf(b.f.ID), func(k []byte) {
			at := del.Begin()
			del.KeyAttr(k)
			t.EndNest(at)
			t.Writes++
		})
	}
	del.Close()
}

func (b *balancer) addBackends(t *wire.Batch, add *wire.Elements, ids []uint64) {
	var key, value []byte
	slots := slotsOf(b.f.ID)
	for _, id := range ids {
		st := b.groups[id]
		if st.want == nil {
			continue
		}
		add.Close()
		add.Blame = st.owner
		st.eachNew(slots, func(block int) {
			key, value = appendBlockKey(key[:0], id, block), appendBlock(value[:0], st.want, block, slots)
			at := add.Begin()
			add.KeyAttr(key)
			data := t.Nest(unix.NFTA_SET_ELEM_DATA)
			t.Bytes(unix.NFTA_DATA_VALUE, value)
			t.EndNest(data)
			t.EndNest(at)
			t.Writes++
		})
	}
	add.Close()
}

// eachGone calls each for the keys of blocks that the kernel has but must not have.
func (st *groupState) eachGone(id uint64, slots int, each func(key []byte)) {
	if st.repair != nil {
		for _, key := range st.repair.surplus {
			each([]byte(key))
		}
		return
	}
	if st.have == nil {
		return
	}
	var key []byte
	for i := range blocks(st.have, slots) {
		if st.want == nil || !sameBlock(st.want, st.have, i, slots) {
			key = appendBlockKey(key[:0], id, i)
			each(key)
		}
	}
}

// eachNew calls each for the blocks that the kernel lacks.
func (st *groupState) eachNew(slots int, each func(block int)) {
	if st.repair != nil {
		for _, i := range st.repair.missing {
			each(i)
		}
		return
	}
	for i := range blocks(st.want, slots) {
		if st.have == nil || !sameBlock(st.want, st.have, i, slots) {
			each(i)
		}
	}
}

// done records that the kernel has executed what was written.
func (b *balancer) done() {
	if b.nothing() {
		b.markAbsent()
		clear(b.changed)
		clear(b.groups)
		return
	}
	b.present, b.podsThere = true, b.podsKey()
	b.elems.PendingUpdates().Apply(func(elem, string) delta.Outcome { return delta.Done })
	b.elems.PendingDeletions().Apply(func(elem, string) delta.Outcome { return delta.Done })
	for id := range b.changed {
		st := b.groups[id]
		if st.have, st.repair = st.want, nil; st.have == nil {
			delete(b.groups, id)
		}
	}
	clear(b.changed)
	if !b.chainsDirty {
		return
	}
	b.chainsDirty = false
	for name, programs := range b.desiredChains() {
		b.rules[name] = hashesOf(programs)
	}
}
