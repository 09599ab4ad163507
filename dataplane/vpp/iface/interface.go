package iface

import (
	"slices"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

type ifKind = vpp_interfaces.Interface_Type

const kindTap = vpp_interfaces.Interface_TAP

// ifType holds the differences between types of interfaces. Optional functions may be nil.
type ifType struct {
	validate func(v *vpp_interfaces.Interface, f *kit.Faults)
	deps     func(v *vpp_interfaces.Interface, add func(string))
	// create makes the interface; its link is down.
	create func(k *Descriptors, v *vpp_interfaces.Interface, done func(made, error))
	remove func(k *Descriptors, e *ifEntry, v *vpp_interfaces.Interface, done func(error))
	// equal compares the fields that are specific to the type.
	equal func(k *Descriptors, desired, applied *vpp_interfaces.Interface) bool
	// read completes v from the result of a dump, and reports whether the dump has the interface.
	read func(k *Descriptors, s *ifState, v *vpp_interfaces.Interface) bool
	// fixedMAC: the hardware address cannot be changed later.
	fixedMAC bool
	noMAC    bool
	// rxMode is the receive mode if the value has none: polling would use a full core for each idle pod.
	rxMode interface_types.RxMode
	// mtu is VPP's default.
	mtu uint32
}

// made is a new interface.
type made struct {
	index   uint32
	hostDev string
	moved   bool
	tagged  bool
	hasMAC  bool // the hardware address is already set
	socket  uint32
	restore *nicState
	broken  error // the interface exists, but is not set up correctly
}

func ifTypes() map[ifKind]*ifType {
	return map[ifKind]*ifType{
		vpp_interfaces.Interface_SOFTWARE_LOOPBACK: loopbackType(),
		vpp_interfaces.Interface_AF_PACKET:         afPacketType(),
		vpp_interfaces.Interface_TAP:               tapType(),
		vpp_interfaces.Interface_SUB_INTERFACE:     subIfType(),
		vpp_interfaces.Interface_MEMIF:             memifType(),
		vpp_interfaces.Interface_VXLAN_TUNNEL:      vxlanType(),
		vpp_interfaces.Interface_DPDK:              physicalType(),
		vpp_interfaces.Interface_PIPE:              pipeType(),
	}
}

func (k *Descriptors) interfaceDescriptor() scheduler.Descriptor[*vpp_interfaces.Interface] {
	return scheduler.Descriptor[*vpp_interfaces.Interface]{
		Name:   "vpp-interface",
		Prefix: nb.VppInterfacePrefix,
		Rank:   scheduler.RankInterface,

		Validate: func(_ string, v *vpp_interfaces.Interface) error { return k.validateInterface(v) },
		Equal: func(_ string, desired, applied *vpp_interfaces.Interface) bool {
			return k.sameInterface(desired, applied) && (desired.PhysAddress == "" || kit.SameMAC(desired.PhysAddress, applied.PhysAddress))
		},
		Deps: func(_ string, v *vpp_interfaces.Interface, add func(string)) {
			if t := k.types[v.Type]; t.deps != nil {
				t.deps(v, add)
			}
		},
		Create: func(op *scheduler.Op, _ string, v *vpp_interfaces.Interface) { k.createInterface(op, v) },
		Update: func(op *scheduler.Op, _ string, _, desired *vpp_interfaces.Interface) { k.changeMAC(op, desired) },
		CanUpdate: func(_ string, applied, desired *vpp_interfaces.Interface) bool {
			return k.sameInterface(desired, applied) && !k.types[desired.Type].fixedMAC
		},
		Delete:     func(op *scheduler.Op, _ string, v *vpp_interfaces.Interface) { k.deleteInterface(op, v) },
		Derive:     func(_ string, v *vpp_interfaces.Interface, put func(string, string, any)) { k.deriveInterface(v, put) },
		Dump:       k.dumpInterfaces,
		Leftover:   func(_ string, v *vpp_interfaces.Interface) bool { return isLeftover(v.Name) },
		DeriveDiff: nil, // an interface has a handful of items
	}
}

// sameInterface reports whether two values differ at most in the hardware address and in derived items.
func (k *Descriptors) sameInterface(desired, applied *vpp_interfaces.Interface) bool {
	if desired.Type != applied.Type {
		return false
	}
	t := k.types[desired.Type]
	return t == nil || t.equal == nil || t.equal(k, desired, applied)
}

func Named(what, name string) kit.Object { return kit.Named(what, "interface "+name) }

func (k *Descriptors) createInterface(op *scheduler.Op, v *vpp_interfaces.Interface) {
	o := Named("create", v.Name)
	k.Invalidate()
	t := k.types[v.Type]
	t.create(k, v, func(m made, err error) {
		if err != nil {
			if conn.OutcomeUnknown(err) {
				k.suspect(v, m.hostDev)
			}
			op.Done(o.Wrap(err))
			return
		}
		k.idx.add(&ifEntry{
			name: v.Name, Index: m.index, kind: v.Type, hostDev: m.hostDev, moved: m.moved,
			socket: m.socket, Rewrite: tagRewrite(m.index, v.GetSub()), restore: m.restore,
		})
		if m.broken != nil {
			k.undoCreate(op, v, k.idx.Entry(v.Name), o.Wrap(m.broken))
			return
		}
		k.finishInterface(op, v, m)
	})
}

// finishInterface marks a new interface as ours, and sets what its creation could not set.
func (k *Descriptors) finishInterface(op *scheduler.Op, v *vpp_interfaces.Interface, m made) {
	var reqs []api.Message
	if !m.tagged {
		reqs = append(reqs, tagRequest(m.index, ifTag(v)))
	}
	if v.PhysAddress != "" && !m.hasMAC && !k.types[v.Type].noMAC {
		reqs = append(reqs, macRequest(m.index, v.PhysAddress))
	}
	if len(reqs) == 0 {
		op.Done(nil)
		return
	}
	done := kit.Join(len(reqs), func(err error) {
		if err == nil {
			err = k.isolate(v, m.hostDev)
		}
		if err == nil {
			delete(k.uncertain, v.Name)
			op.Done(nil)
			return
		}
		k.undoCreate(op, v, k.idx.Entry(v.Name), err)
	})
	for _, req := range reqs {
		k.Send(Named("set up", v.Name), req, done)
	}
}

func ifTag(v *vpp_interfaces.Interface) string {
	if v.Type == vpp_interfaces.Interface_DPDK {
		return kit.NicTagOf(v.Name)
	}
	return kit.TagOf(v.Name)
}

func tagRequest(index uint32, tag string) api.Message {
	return &interfaces.SwInterfaceTagAddDel{
		IsAdd: tag != "", SwIfIndex: interface_types.InterfaceIndex(index), Tag: tag,
	}
}

func macRequest(index uint32, address string) api.Message {
	return &interfaces.SwInterfaceSetMacAddress{
		SwIfIndex: interface_types.InterfaceIndex(index), MacAddress: kit.MAC(address),
	}
}

func (k *Descriptors) changeMAC(op *scheduler.Op, v *vpp_interfaces.Interface) {
	o := Named("set phys_address of", v.Name)
	index, ok := k.idx.IfIndex(v.Name)
	if !ok {
		k.Missing(op, o, v.Name)
		return
	}
	k.Do(op, o, macRequest(index, v.PhysAddress))
}

func (k *Descriptors) deleteInterface(op *scheduler.Op, v *vpp_interfaces.Interface) {
	e := k.idx.Entry(v.Name)
	if e == nil {
		kit.Gone(op)
		return
	}
	k.Invalidate()
	k.idx.remove(v.Name) // from here on VPP may reuse the number
	removed := func(err error) {
		if err != nil && !kit.IsFine(err, kit.IfGone) {
			k.idx.add(e)
			op.Done(Named("delete", v.Name).Wrap(err))
			return
		}
		k.leftoverGone(e)
		op.Done(nil)
	}
	if !k.deferDeletion(e, v, removed) {
		k.types[e.kind].remove(k, e, v, removed)
	}
}

// dumpInterfaces emits the interfaces that have our tag, and leftovers. It leaves out an interface that its type does not recognise
// (made manually, with our tag).
func (k *Descriptors) dumpInterfaces(op *scheduler.DumpOp, emit func(string, *vpp_interfaces.Interface)) {
	k.Snapshot(op, func(s *Snapshot, err error) {
		if err != nil {
			op.Done(err)
			return
		}
		for _, st := range slices.Concat(s.Ours, s.leftovers) {
			if v := k.readInterface(st); v != nil {
				emit(nb.VppInterfaceKey(v.Name), v)
			}
		}
		op.Done(nil)
	})
}

func (k *Descriptors) readInterface(s *ifState) *vpp_interfaces.Interface {
	t := k.types[s.kind]
	if t == nil {
		return nil
	}
	v := &vpp_interfaces.Interface{
		Name: s.Name, Type: s.kind, Enabled: s.Up(), Mtu: s.mtu(t), Vrf: s.vrf4, SetDhcpClient: s.dhcp,
	}
	if !t.noMAC {
		v.PhysAddress = s.Details.L2Address.String()
	}
	for _, a := range s.Addresses {
		v.IpAddresses = append(v.IpAddresses, a.String())
	}
	if t.read != nil && !t.read(k, s, v) {
		return nil
	}
	return v
}
