package iface

import (
	"iter"
	"sync"

	"go.fd.io/govpp/binapi/ethernet_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/l2"

	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// Index lists our interfaces in VPP: logical name, sw_if_index, type and the Linux device at the other end. Creating and dumping
// interfaces adds entries, and deleting removes them: VPP reuses the number of a deleted interface immediately. Any goroutine may read
// the index; what it reads is valid only until the scheduler's next operation.
type Index struct {
	mu     sync.RWMutex
	byName map[string]*ifEntry
	byIf   map[uint32]*ifEntry
	bds    map[string]uint32
	bdName map[uint32]string
	modes  map[string]ifRxModes // of memifs
}

// ifEntry is one interface in the index. An entry is immutable once it is in the index.
type ifEntry struct {
	name    string
	Index   uint32
	kind    ifKind
	hostDev string // the Linux device that VPP made or attached to
	moved   bool   // the device was made in another network namespace
	socket  uint32 // of a memif
	// Rewrite is the VLAN tag rewriting of a sub-interface, which VPP drops when the sub-interface leaves a bridge domain.
	Rewrite *l2.L2InterfaceVlanTagRewrite
	restore *nicState
}

// nicState is the state of a physical interface before we took it over.
type nicState struct {
	mac ethernet_types.MacAddress
	mtu uint32
	tag string
	up  bool
}

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{
		byName: map[string]*ifEntry{}, byIf: map[uint32]*ifEntry{},
		bds: map[string]uint32{}, bdName: map[uint32]string{}, modes: map[string]ifRxModes{},
	}
}

// IfIndex returns the sw_if_index of the interface called name.
func (x *Index) IfIndex(name string) (uint32, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if e, ok := x.byName[name]; ok {
		return e.Index, true
	}
	return kit.None, false
}

// NameByIndex returns the logical name of an interface.
func (x *Index) NameByIndex(swIfIndex uint32) (string, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if e, ok := x.byIf[swIfIndex]; ok {
		return e.name, true
	}
	return "", false
}

// TapDevice returns the Linux device which VPP made for a TAP, in VPP's own network namespace. It returns false for a TAP that does not
// exist, and for one whose device is inside a pod.
func (x *Index) TapDevice(vppIfName string) (hostDev string, ok bool) {
	hostDev, inPlace, ok := x.TapPlace(vppIfName)
	if !ok || inPlace {
		return "", false
	}
	return hostDev, true
}

// TapPlace returns the Linux device of a TAP; inPlace reports whether VPP made it, or attached to it, in the network namespace where it
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

// Device returns the Linux device at the other end of an interface, and whether the interface is a TAP.
func (x *Index) Device(name string) (dev string, tap, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	e, ok := x.byName[name]
	if !ok || e.hostDev == "" {
		return "", false, false
	}
	return e.hostDev, e.kind == kindTap, true
}

// byDevice returns the name of the interface on a Linux device in VPP's network namespace.
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

// Interfaces iterates over name and sw_if_index of all interfaces, in no particular order.
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

// BridgeDomain returns the number of a bridge domain.
func (x *Index) BridgeDomain(name string) (uint32, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	id, ok := x.bds[name]
	return id, ok
}

// RxModeRequests returns the requests that set the receive modes of a memif again. VPP makes the queues of a memif again, in their
// default mode, each time the peer connects: RxModeKeeper, which listens for links going up, sends these requests.
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

// replace replaces the content of the index by the result of a dump. Data of an interface that only the agent has is kept.
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

// clear removes all interfaces and bridge domains: they were of another VPP process, and their numbers are invalid in this process, or
// mean something else. For example, VPP creates a bridge domain that does not exist when an interface joins it.
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

// FreeBD returns the lowest number that none of our bridge domains has.
func (x *Index) FreeBD() uint32 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	id := uint32(1)
	for x.bdName[id] != "" {
		id++
	}
	return id
}
