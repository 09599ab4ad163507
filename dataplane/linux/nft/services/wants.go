package services

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"strings"
	"time"

	"contiv.dev/vswitch/dataplane/delta"
	"contiv.dev/vswitch/dataplane/linux/balance"
	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// balancer is one family's table: what is desired in it, and what the kernel has.
type balancer struct {
	f    wire.Family
	defs []mapDef

	held    map[elem]*holder             // what services have in maps
	elems   *delta.Tracker[elem, string] // what follows from that, and what is
	groups  map[uint64]*groupState       // lists of backends
	changed map[uint64]struct{}          // groups that may differ
	chains  map[string]*leaf             // that elements lead to, by name
	pods    wire.Spans
	static  map[string][]wire.Program
	// standard is how many elements there always are.
	standard int

	present, rebuild bool
	chainsDirty      bool                      // chains may differ
	podsThere        string                    // the kernel's, as podsKey has them
	rules            map[string][]wire.Hash    // of the kernel's chains
	made             map[string][]wire.Program // that the transaction under way is to make
	leaving          map[string]uint64         // chains that nothing leads to any more, and the grace periods behind which they go
	leave, gone      []string                  // chains that begin to leave, or go, with the transaction under way
}

// elem is an element of a map or set, of backends excepted.
type elem struct {
	m   mapID
	key string
}

// holder is the service that has an element, and with which value. No two services have one frontend (plugins/service/owners); while
// one passes from a service to another, the service that was set last has it. Elements that are shared have one value.
type holder struct {
	value string
	owner *service
	users int // of a shared element
}

func (m mapID) shared() bool {
	return m == mapPick || m == mapPickOutside || m == mapHairpin || m == mapClusterIPs
}

// groupState is a group as desired and as programmed; nil: not there.
type groupState struct {
	want, have *balance.Group
	owner      *service
	repair     *repair // the kernel's is neither
}

// repair is what to do to a group that was found in disorder.
type repair struct {
	surplus []string // keys
	missing []int    // blocks
}

// leaf is a chain that elements lead to, by others or at once. It is there as long as one does.
type leaf struct {
	users    int
	programs []wire.Program
}

func newBalancer(id table.Family) *balancer {
	b := &balancer{f: wire.FamilyOf(id), held: map[elem]*holder{}, elems: delta.NewComparable[elem, string](),
		groups: map[uint64]*groupState{}, changed: map[uint64]struct{}{}, chains: map[string]*leaf{},
		rules: map[string][]wire.Hash{}, leaving: map[string]uint64{}}
	b.defs = mapDefs(b.f)
	b.pods = wire.Spans{Size: wire.AddressBytes(id)}
	b.static = b.staticChains()
	b.addStandard()
	return b
}

// add and remove note what a service wants.
func (b *balancer) add(svc *service) {
	elems, groups := b.wants(svc)
	for e, value := range elems {
		b.hold(svc, e, value)
	}
	for _, g := range groups {
		st := b.groups[g.ID]
		if st == nil {
			st = &groupState{}
			b.groups[g.ID] = st
		}
		st.want, st.owner = g, svc
		b.changed[g.ID] = struct{}{}
	}
}

func (b *balancer) remove(svc *service) {
	elems, groups := b.wants(svc)
	for e := range elems {
		b.release(svc, e)
	}
	for _, g := range groups {
		if st := b.groups[g.ID]; st != nil && st.owner == svc {
			st.want = nil
			b.changed[g.ID] = struct{}{}
		}
	}
}

// wants are the elements and groups of a service in this family.
func (b *balancer) wants(svc *service) (map[elem]string, []*balance.Group) {
	w := needs{elems: map[elem]string{}, groups: map[uint64]*balance.Group{}, affinity: svc.Affinity,
		slots: slotsOf(b.f.ID)}
	for i := range svc.Ports {
		if svc.Ports[i].Family == b.f.ID {
			for j := range svc.Ports[i].Frontends {
				w.frontend(&svc.Ports[i].Frontends[j])
			}
		}
	}
	return w.elems, w.list
}

// needs collects what a service wants.
type needs struct {
	elems    map[elem]string
	groups   map[uint64]*balance.Group
	list     []*balance.Group
	affinity time.Duration
	slots    int
}

func (w *needs) put(m mapID, key, value string) {
	if _, has := w.elems[elem{m, key}]; !has {
		w.elems[elem{m, key}] = value
	}
}

func (w *needs) frontend(f *balance.Frontend) {
	key := frontKey(f.Key)
	if f.Cluster {
		w.put(mapClusterIPs, string(f.Addr.AsSlice()), "")
	}
	w.target(key, f.Inside, f.Masquerade, mapFrontends, mapReject, mapDrop, false)
	if f.Outside != f.Inside {
		w.target(key, f.Outside, f.Masquerade, mapOutside, mapRejectOutside, mapDropOutside, true)
	}
	if f.Restricted {
		w.put(mapSources, key, joinNets(f.Sources))
	}
}

func (w *needs) target(key string, g *balance.Group, m balance.Masquerade, to, reject, drop mapID, outside bool) {
	switch g.Verdict {
	case balance.Reject:
		w.put(reject, key, "")
		return
	case balance.Drop:
		w.put(drop, key, "")
		return
	}
	p := picker{outside: outside, size: capacity(g.Len(), w.slots), shard: shardOf(g.ID),
		seconds: uint32(w.affinity / time.Second)}
	pick := mapPick
	if outside {
		pick = mapPickOutside
	}
	w.put(to, key, frontValue(g, m))
	w.put(pick, pickKey(p), p.chain())
	if w.groups[g.ID] != nil {
		return
	}
	w.groups[g.ID] = g
	w.list = append(w.list, g)
	w.put(mapCounts, groupKey(g.ID), countValue(p))
	for _, a := range g.Own() {
		w.put(mapHairpin, string(append(a.AsSlice(), a.AsSlice()...)), "")
	}
	if w.affinity > 0 {
		for i := range g.Len() {
			w.put(mapSticky, string(appendBackend(appendGroup(nil, g.ID), g, i)), "")
		}
	}
}

func joinNets(nets []netip.Prefix) string {
	texts := make([]string, len(nets))
	for i, n := range nets {
		texts[i] = n.String()
	}
	return strings.Join(texts, ",")
}

// sourcesChain is the chain that lets in what comes from some nets.
func sourcesChain(nets string) string {
	h := fnv.New64a()
	h.Write([]byte(nets))
	return fmt.Sprintf("from-%016x", h.Sum64())
}

// hold notes that a service has an element.
func (b *balancer) hold(svc *service, e elem, value string) {
	h := b.held[e]
	switch {
	case h == nil:
		h = &holder{value: value, owner: svc, users: 1}
		b.held[e] = h
		b.lead(e, value, 1)
	case e.m.shared():
		h.users++
		return
	default:
		b.lead(e, h.value, -1)
		h.owner, h.value = svc, value
		b.lead(e, value, 1)
	}
	b.elems.Desired().Set(e, h.kernelValue(e.m))
}

// release notes that a service does not have an element any more, unless another one has it by now.
func (b *balancer) release(svc *service, e elem) {
	h := b.held[e]
	if h == nil {
		return
	}
	if e.m.shared() {
		if h.users--; h.users > 0 {
			return
		}
	} else if h.owner != svc {
		return
	}
	b.lead(e, h.value, -1)
	delete(b.held, e)
	b.elems.Desired().Delete(e)
}

// lead notes that an element leads to its chains, or does no more.
func (b *balancer) lead(e elem, value string, n int) {
	for _, c := range b.chainsOf(e, value) {
		l := b.chains[c.name]
		if l == nil {
			l = &leaf{programs: c.rules()}
			b.chains[c.name], b.chainsDirty = l, true
		}
		if l.users += n; l.users == 0 {
			delete(b.chains, c.name)
			b.chainsDirty = true
		}
	}
}

// chainsOf are the chains that an element of a verdict map leads to.
func (b *balancer) chainsOf(e elem, value string) []chainRules {
	switch e.m {
	case mapPick, mapPickOutside:
		return b.pickChains(pickerOf(e))
	case mapSources:
		return []chainRules{{sourcesChain(value), func() []wire.Program { return b.sourcesRules(value) }}}
	}
	return nil
}

// pending is true if the kernel may have something else.
func (b *balancer) pending(over uint64) bool {
	if b.nothing() {
		return b.present
	}
	for _, ticket := range b.leaving {
		if ticket <= over {
			return true
		}
	}
	return !b.elems.InSync() || len(b.changed) > 0 || b.rebuild || b.present && b.podsThere != b.podsKey()
}

func (b *balancer) podsKey() string {
	var key []byte
	for i := range b.pods.List {
		key = append(append(key, b.pods.List[i].First[:b.pods.Size]...), b.pods.List[i].Last[:b.pods.Size]...)
	}
	return string(key)
}
