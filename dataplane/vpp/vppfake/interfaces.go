package vppfake

import (
	"cmp"
	"slices"
	"strings"

	interfaces_api "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
)

// iface is one software interface: that of a hardware interface, or a sub-interface of it.
type iface struct {
	index uint32
	name  string
	tag   string
	up    bool
	gone  bool // deleted; routes may still refer to it
	paths int  // number of route paths that refer to it
	mtu   [4]uint32
	sub   *subInterface // nil for the software interface of the hardware interface
	hw    *hardware     // shared by its sub-interfaces
	l2    l2Port
	ip    [2]ipPort // by family
	link6 ip6Link
	// unnumbered is the index of the interface whose addresses this one borrows, or none.
	unnumbered uint32
}

// hardware is the state that an interface and its sub-interfaces share.
type hardware struct {
	devType     string
	owner       *iface
	mac         mac
	macReported bool // the client has set mac, not VPP
	ethernet    bool
	linkUp      bool
	linkMTU     uint16
	queues      []rxQueue
	driver      driver
	wedge       wedge
}

// driver holds the differences between kinds of hardware.
type driver struct {
	linkFollowsAdmin bool                     // the link goes up with the interface (loopback, VXLAN), not independently
	setMTU           bool                     // hw_interface_set_mtu is supported
	flags            bool                     // promiscuous mode is supported
	remove           func(c *state, i *iface) // frees the state of the kind; delete removes the interface itself
	describe         func(i *iface) []string  // line of the kind in Fake.Dump
	detail           any                      // record of the kind
}

// subInterface is the VLAN part of a sub-interface.
type subInterface struct {
	id           uint32
	outer, inner uint16
	flags        interface_types.SubIfFlags
	pipe         bool // an end of a pipe, which has no VLAN
}

// interfaces is VPP's pool of software interfaces: a freed index is reused immediately, last freed first.
type interfaces struct {
	all      []*iface
	free     []uint32
	watchers map[*session]uint32 // client pid by subscriber
	pending  map[uint32]*interfaces_api.SwInterfaceEvent
}

// create adds a new interface to the pool, in table 0 and L3 mode.
func (st *state) create(i *iface) *iface {
	if n := len(st.ifs.free); n > 0 {
		i.index = st.ifs.free[n-1]
		st.ifs.free = st.ifs.free[:n-1]
		st.ifs.all[i.index] = i
	} else {
		i.index = uint32(len(st.ifs.all))
		st.ifs.all = append(st.ifs.all, i)
	}
	if i.hw.owner == nil {
		i.hw.owner = i
	}
	if i.hw.ethernet && i.sub == nil {
		i.hw.linkMTU = 9000
		i.mtu[0] = 9000
	}
	i.unnumbered = none
	for family := range i.ip {
		i.ip[family] = ipPort{table: st.ip.tables[family][0]}
	}
	st.adopt(i)
	st.noteEvent(i, func(*interfaces_api.SwInterfaceEvent) {})
	if i.hw.linkUp && i.sub == nil {
		st.noteEvent(i, linkUp)
	}
	return i
}

// delete removes an interface and its sub-interfaces from all state.
func (st *state) delete(i *iface) {
	if i.sub == nil {
		for _, s := range slices.Clone(st.ifs.all) {
			if s != nil && s != i && s.hw == i.hw {
				st.delete(s)
			}
		}
	}
	st.setAdmin(i, false)
	st.removeNATInterface(i)
	st.dropL2(i)
	st.dropAddresses(i)
	for family := range i.ip {
		st.bind(i, family, st.ip.tables[family][0])
	}
	st.flushNeighbors(i.index, -1, false)
	st.dropFeatures(i)
	st.dropACLs(i)
	if i.sub == nil && i.hw.driver.remove != nil {
		i.hw.driver.remove(st, i)
	}
	st.bury(i)
	st.orphan(i)
	i.gone = true
	st.ifs.all[i.index] = nil
	st.ifs.free = append(st.ifs.free, i.index)
	st.noteEvent(i, func(e *interfaces_api.SwInterfaceEvent) { e.Deleted = true })
}

// iface returns the interface with the index, nil if there is none.
func (st *state) iface(index interface_types.InterfaceIndex) *iface {
	if int64(index) >= int64(len(st.ifs.all)) {
		return nil
	}
	return st.ifs.all[index]
}

// named returns the interface with the name or, if there is none, with the tag.
func (st *state) named(name string) *iface {
	var tagged *iface
	for _, i := range st.ifs.all {
		switch {
		case i == nil:
		case i.name == name:
			return i
		case i.tag == name && name != "":
			tagged = i
		}
	}
	return tagged
}

// live returns the interfaces in order of their index.
func (st *state) live() []*iface {
	return slices.DeleteFunc(slices.Clone(st.ifs.all), func(i *iface) bool { return i == nil })
}

// setAdmin implements vnet_sw_interface_set_flags; false: rejected.
func (st *state) setAdmin(i *iface, up bool) bool {
	owner := i.hw.owner
	if i.sub != nil && up && !owner.up && !i.sub.pipe {
		return false
	}
	if i.up == up {
		return true
	}
	i.up = up
	st.noteEvent(i, func(e *interfaces_api.SwInterfaceEvent) {
		if up {
			e.Flags |= interface_types.IF_STATUS_API_FLAG_ADMIN_UP
		}
	})
	st.adminRoutes(i)
	if !up {
		st.flushNeighbors(i.index, -1, false)
	}
	if i.sub == nil && i.hw.driver.linkFollowsAdmin {
		st.setLink(i, up)
	}
	if i.sub == nil && !up && i.hw.linkUp {
		st.setLink(i, false)
	}
	if p, ok := i.hw.driver.detail.(*pipePair); ok && i.sub == nil {
		for _, end := range p.ends {
			st.setAdmin(end, up)
		}
	}
	return true
}

func (st *state) setLink(i *iface, up bool) {
	if i.hw.linkUp == up {
		return
	}
	i.hw.linkUp = up
	if up {
		st.noteEvent(i, linkUp)
	} else {
		st.noteEvent(i, func(*interfaces_api.SwInterfaceEvent) {})
	}
}

func linkUp(e *interfaces_api.SwInterfaceEvent) {
	e.Flags |= interface_types.IF_STATUS_API_FLAG_LINK_UP
}

// noteEvent merges the changes of an interface during one request into one event.
func (st *state) noteEvent(i *iface, change func(*interfaces_api.SwInterfaceEvent)) {
	if len(st.ifs.watchers) == 0 {
		return
	}
	if st.ifs.pending == nil {
		st.ifs.pending = map[uint32]*interfaces_api.SwInterfaceEvent{}
	}
	e := st.ifs.pending[i.index]
	if e == nil {
		e = &interfaces_api.SwInterfaceEvent{SwIfIndex: interface_types.InterfaceIndex(i.index)}
		st.ifs.pending[i.index] = e
	}
	change(e)
}

// publish sends the events of a request to the subscribed clients, in order of the index.
func (st *state) publish() {
	if len(st.ifs.pending) == 0 {
		return
	}
	events := make([]*interfaces_api.SwInterfaceEvent, 0, len(st.ifs.pending))
	for _, e := range st.ifs.pending {
		events = append(events, e)
	}
	st.ifs.pending = nil
	slices.SortFunc(events, func(a, b *interfaces_api.SwInterfaceEvent) int { return cmp.Compare(a.SwIfIndex, b.SwIfIndex) })
	id := st.table.byName["sw_interface_event"].id
	for s, pid := range st.ifs.watchers {
		for _, e := range events {
			e.PID = pid
			s.post(id, s.index, e)
		}
		s.flush()
	}
}

// label returns a name of the interface that, if it has a tag, does not depend on the order of creation.
func (i *iface) label() string {
	if i == nil {
		return "-"
	}
	if i.tag != "" {
		return i.tag
	}
	return i.name
}

func (i *iface) status() interface_types.IfStatusFlags {
	var flags interface_types.IfStatusFlags
	if i.up {
		flags |= interface_types.IF_STATUS_API_FLAG_ADMIN_UP
	}
	if i.hw.linkUp {
		flags |= interface_types.IF_STATUS_API_FLAG_LINK_UP
	}
	return flags
}

func dumpInterfaces(st *state, d *dumper) {
	for _, i := range st.live() {
		parts := []string{i.hw.devType}
		if i.sub == nil && i.hw.macReported {
			parts = append(parts, "mac "+i.hw.mac.String())
		}
		if i.up {
			parts = append(parts, "up")
		}
		parts = append(parts, i.describeConfig()...)
		if i.sub == nil && i.hw.driver.describe != nil {
			parts = append(parts, i.hw.driver.describe(i)...)
		}
		d.add("interface %s: %s", i.label(), strings.Join(parts, " "))
		st.dumpPort(i, d)
	}
}
