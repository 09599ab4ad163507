package services

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"contiv.dev/vswitch/dataplane/delta"
	"contiv.dev/vswitch/dataplane/linux/lb"
	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// balancer is one family's table: its desired state, and the recorded state of the kernel.
type balancer struct {
	f    wire.Family
	defs []mapDef

	held    map[elem]*holder             // the services' elements in maps
	elems   *delta.Tracker[elem, string] // the resulting desired elements, and the kernel's
	groups  map[uint64]*groupState       // lists of backends
	changed map[uint64]struct{}          // groups that may differ
	chains  map[string]*leaf             // chains that elements refer to, by name
	pods    wire.Spans
	static  map[string][]wire.Program
	// standard is the number of elements that always exist.
	standard int

	present, rebuild bool
	chainsDirty      bool                      // chains may differ
	podsThere        string                    // the kernel's pods, in the format of podsKey
	rules            map[string][]wire.Hash    // of the kernel's chains
	made             map[string][]wire.Program // chains that the current transaction creates
	leaving          map[string]uint64         // chains that nothing refers to any more, with the grace periods after which they are removed
	leave, gone      []string                  // chains that start to leave, or are removed, with the current transaction
}

// elem is an element of a map or set, except those of backends.
type elem struct {
	m   mapID
	key string
}

// holder is the service that owns an element, and the element's value. No two services have the same frontend (plugins/service/owners);
// while a frontend moves from one service to another, the service that was set last owns it. Shared elements have the same value for all
// services.
type holder struct {
	value string
	owner *service
	users int // of a shared element
}

func (m mapID) shared() bool {
	return m == mapPick || m == mapPickOutside || m == mapHairpin || m == mapClusterIPs
}

// groupState is the desired and the programmed state of a group; nil: does not exist.
type groupState struct {
	want, have *lb.Group
	owner      *service
	repair     *repair // the kernel's group is in neither state
}

// repair holds what must be done to correct a group in the kernel.
type repair struct {
	surplus []string // keys
	missing []int    // blocks
}

// leaf is a chain that elements refer to, directly or through other chains. It exists as long as an element does.
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

// add adds what a service needs, and remove removes it.
func (b *balancer) add(svc *service) {
	elems, groups := b.needsOf(svc)
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
	elems, groups := b.needsOf(svc)
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

// needsOf returns the elements and groups that a service needs in this family.
func (b *balancer) needsOf(svc *service) (map[elem]string, []*lb.Group) {
	w := needs{elems: map[elem]string{}, groups: map[uint64]*lb.Group{}, affinity: svc.Affinity,
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

// needs collects what a service needs.
type needs struct {
	elems    map[elem]string
	groups   map[uint64]*lb.Group
	list     []*lb.Group
	affinity time.Duration
	slots    int
}

func (w *needs) put(m mapID, key, value string) {
	if _, has := w.elems[elem{m, key}]; !has {
		w.elems[elem{m, key}] = value
	}
}

func (w *needs) frontend(f *lb.Frontend) {
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

func (w *needs) target(key string, g *lb.Group, m lb.Masquerade, to, reject, drop mapID, outside bool) {
	switch g.Verdict {
	case lb.Reject:
		w.put(reject, key, "")
		return
	case lb.Drop:
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

// sourcesChain returns the name of the chain that accepts packets from some prefixes. Users choose the prefixes, so the name must contain a
// hash for which a second input cannot be computed: services whose prefixes have one name share a chain.
func sourcesChain(nets string) string {
	sum := sha256.Sum256([]byte(nets))
	return fmt.Sprintf("from-%x", sum[:8])
}

// hold records that a service has an element.
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

// release records that a service no longer has an element, unless another service owns it by now.
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

// lead adds n references from an element to its chains.
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

// chainsOf returns the chains that an element of a verdict map refers to.
func (b *balancer) chainsOf(e elem, value string) []chainRules {
	switch e.m {
	case mapPick, mapPickOutside:
		return b.pickChains(pickerOf(e))
	case mapSources:
		return []chainRules{{sourcesChain(value), func() []wire.Program { return b.sourcesRules(value) }}}
	}
	return nil
}

// pending reports whether the kernel's state may differ from the desired one.
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
