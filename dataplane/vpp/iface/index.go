package iface

import (
	"iter"
	"sync"

	"go.fd.io/govpp/binapi/ethernet_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/l2"

	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// Index has the interfaces of ours that VPP has: logical name, sw_if_index, type and the Linux device at the other end. It is filled by
// creating and dumping, and emptied by deleting: VPP uses the number of a deleted interface again at once. Any goroutine may look things
// up; what is read is true only until the scheduler's next operation.
type Index struct {
	mu     sync.RWMutex
	byName map[string]*ifEntry
	byIf   map[uint32]*ifEntry
	bds    map[string]uint32
	bdName map[uint32]string
	modes  map[string]ifRxModes // of memifs
}

// ifEntry is one interface in the index. Entries are not changed once they are in it.
type ifEntry struct {
	name    string
	Index   uint32
	kind    ifKind
	hostDev string // the Linux device that VPP made or attached to
	moved   bool   // the device was made in another network namespace
	socket  uint32 // of a memif
	// Rewrite is the VLAN tag rewriting of a sub-interface, which VPP forgets when it leaves a bridge domain.
	Rewrite *l2.L2InterfaceVlanTagRewrite
	restore *nicState
}

// nicState is what a physical interface was like before it was ours.
type nicState struct {
	mac ethernet_types.MacAddress
	mtu uint32
	tag string
	up  bool
}

// NewIndex is an empty index.
func NewIndex() *Index {
	return &Index{
		byName: map[string]*ifEntry{}, byIf: map[uint32]*ifEntry{},
		bds: map[string]uint32{}, bdName: map[uint32]string{}, modes: map[string]ifRxModes{},
	}
}

// IfIndex is the sw_if_index of the interface called name.
func (x *Index) IfIndex(name string) (uint32, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if e, ok := x.byName[name]; ok {
		return e.Index, true
	}
	return kit.None, false
}

// NameByIndex is the logical name of an interface.
func (x *Index) NameByIndex(swIfIndex uint32) (string, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if e, ok := x.byIf[swIfIndex]; ok {
		return e.name, true
	}
	return "", false
}

// TapDevice is the Linux device which VPP made for a TAP, in VPP's own network namespace. It is false for a TAP that is not
// there, and for one whose device is inside a pod.
func (x *Index) TapDevice(vppIfName string) (hostDev string, ok bool) {
	hostDev, inPlace, ok := x.TapPlace(vppIfName)
	if !ok || inPlace {
		return "", false
	}
	return hostDev, true
}

// TapPlace is the Linux device of a TAP; inPlace says that it was made, or attached to, in the network namespace where it
// belongs and not in VPP's own.
func (x *Index) TapPlace(vppIfName string) (hostDev string, inPlace, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	e, ok := x.byName[vppIfName]
	if !ok || e.kind != kindTap || e.hostDev == "" {
		return "", false, false
	}
	return e.hostDev, e.moved, true
}

// Device is the Linux device at the other end of an interface, and whether the interface is a TAP.
func (x *Index) Device(name string) (dev string, tap, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	e, ok := x.byName[name]
	if !ok || e.hostDev == "" {
		return "", false, false
	}
	return e.hostDev, e.kind == kindTap, true
}

// byDevice is the interface on a Linux device in VPP's network namespace.
func (x *Index) byDevice(dev string) (string, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for name, e := range x.byName {
		if e.hostDev == dev && !e.moved {
			return name, true
		}
	}
	return "", false
}

// Interfaces visits name and sw_if_index of all interfaces, in no order.
func (x *Index) Interfaces() iter.Seq2[string, uint32] {
	x.mu.RLock()
	all := make(map[string]uint32, len(x.byName))
	for name, e := range x.byName {
		all[name] = e.Index
	}
	x.mu.RUnlock()
	return func(yield func(string, uint32) bool) {
		for name, index := range all {
			if !yield(name, index) {
				return
			}
		}
	}
}

// BridgeDomain is the number of a bridge domain.
func (x *Index) BridgeDomain(name string) (uint32, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	id, ok := x.bds[name]
	return id, ok
}

// RxModeRequests sets the receive modes of a memif again. VPP makes its queues again, in their default mode, each time the peer connects:
// RxModeKeeper, which listens for the links of interfaces going up, sends these.
func (x *Index) RxModeRequests(swIfIndex uint32) []*interfaces.SwInterfaceSetRxMode {
	x.mu.RLock()
	defer x.mu.RUnlock()
	e, ok := x.byIf[swIfIndex]
	if !ok {
		return nil
	}
	return x.modes[e.name].requests(swIfIndex)
}

func (x *Index) setRxModes(name string, m *ifRxModes) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if m == nil {
		delete(x.modes, name)
	} else {
		x.modes[name] = *m
	}
}

func (x *Index) Entry(name string) *ifEntry {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.byName[name]
}

func (x *Index) add(e *ifEntry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if old, ok := x.byIf[e.Index]; ok {
		delete(x.byName, old.name)
	}
	if old, ok := x.byName[e.name]; ok {
		delete(x.byIf, old.Index)
	}
	x.byName[e.name], x.byIf[e.Index] = e, e
}

func (x *Index) remove(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e, ok := x.byName[name]; ok {
		delete(x.byName, name)
		delete(x.byIf, e.Index)
		delete(x.modes, name)
	}
}

// replace makes the index what a dump found. What only the agent has of an interface is kept.
func (x *Index) replace(entries []*ifEntry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.byName
	x.byName, x.byIf = make(map[string]*ifEntry, len(entries)), make(map[uint32]*ifEntry, len(entries))
	for _, e := range entries {
		if o, ok := old[e.name]; ok && o.Index == e.Index && o.kind == e.kind {
			e.restore = o.restore
		}
		x.byName[e.name], x.byIf[e.Index] = e, e
	}
}

// clear forgets everything: it was of another VPP process, whose numbers mean nothing to this one, or something else. A bridge
// domain that does not exist, for one, VPP makes when an interface joins it.
func (x *Index) clear() {
	x.mu.Lock()
	defer x.mu.Unlock()
	clear(x.byName)
	clear(x.byIf)
	clear(x.bds)
	clear(x.bdName)
}

func (x *Index) BdNameOf(id uint32) (string, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	name, ok := x.bdName[id]
	return name, ok
}

func (x *Index) AddBD(name string, id uint32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.bds[name], x.bdName[id] = id, name
}

func (x *Index) RemoveBD(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if id, ok := x.bds[name]; ok {
		delete(x.bds, name)
		delete(x.bdName, id)
	}
}

func (x *Index) ReplaceBDs(bds map[string]uint32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.bds, x.bdName = bds, make(map[uint32]string, len(bds))
	for name, id := range bds {
		x.bdName[id] = name
	}
}

// FreeBD is the lowest number that no bridge domain of ours has.
func (x *Index) FreeBD() uint32 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	id := uint32(1)
	for x.bdName[id] != "" {
		id++
	}
	return id
}
