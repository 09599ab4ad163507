package vpp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
)

type ifKind = vpp_interfaces.Interface_Type

const kindTap = vpp_interfaces.Interface_TAP

// ifType is what differs between types of interfaces. Optional functions may be nil.
type ifType struct {
	validate func(v *vpp_interfaces.Interface, f *faults)
	deps     func(v *vpp_interfaces.Interface, add func(string))
	// create makes the interface, down.
	create func(k *kinds, v *vpp_interfaces.Interface, done func(made, error))
	remove func(k *kinds, e *ifEntry, v *vpp_interfaces.Interface, done func(error))
	// equal compares what is special to the type.
	equal func(k *kinds, desired, applied *vpp_interfaces.Interface) bool
	// read completes v from what a dump found, and says whether it did find it.
	read func(k *kinds, s *ifState, v *vpp_interfaces.Interface) bool
	// fixedMAC: the hardware address cannot be changed later.
	fixedMAC bool
	noMAC    bool
	// rxMode is the receive mode where none is asked for: polling burns a core for each idle pod.
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
	hasMAC  bool // VPP has been told the hardware address
	socket  uint32
	restore *nicState
	broken  error // it is there, but not as it should be
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

func (k *kinds) interfaceKind() scheduler.Kind[*vpp_interfaces.Interface] {
	return scheduler.Kind[*vpp_interfaces.Interface]{
		Name:   "vpp-interface",
		Prefix: nb.VppInterfacePrefix,
		Rank:   scheduler.RankInterface,

		Validate: func(_ string, v *vpp_interfaces.Interface) error { return k.validateInterface(v) },
		Equal: func(_ string, desired, applied *vpp_interfaces.Interface) bool {
			return k.sameInterface(desired, applied) && (desired.PhysAddress == "" || sameMAC(desired.PhysAddress, applied.PhysAddress))
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

// sameInterface reports whether two values differ at most in the hardware address and in what is derived.
func (k *kinds) sameInterface(desired, applied *vpp_interfaces.Interface) bool {
	if desired.Type != applied.Type {
		return false
	}
	t := k.types[desired.Type]
	return t == nil || t.equal == nil || t.equal(k, desired, applied)
}

func ifObject(what, name string) object { return object{what, "interface " + name} }

func (k *kinds) createInterface(op *scheduler.Op, v *vpp_interfaces.Interface) {
	o := ifObject("create", v.Name)
	k.snap.forget()
	t := k.types[v.Type]
	t.create(k, v, func(m made, err error) {
		if err != nil {
			if conn.OutcomeUnknown(err) {
				k.suspect(v, m.hostDev)
			}
			op.Done(o.wrap(err))
			return
		}
		k.idx.add(&ifEntry{
			name: v.Name, index: m.index, kind: v.Type, hostDev: m.hostDev, moved: m.moved,
			socket: m.socket, rewrite: tagRewrite(m.index, v.GetSub()), restore: m.restore,
		})
		if m.broken != nil {
			k.undoCreate(op, v, k.idx.entry(v.Name), o.wrap(m.broken))
			return
		}
		k.finishInterface(op, v, m)
	})
}

// finishInterface marks a new interface as ours, and sets what its creation could not.
func (k *kinds) finishInterface(op *scheduler.Op, v *vpp_interfaces.Interface, m made) {
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
	done := join(len(reqs), func(err error) {
		if err == nil {
			err = k.isolate(v, m.hostDev)
		}
		if err == nil {
			delete(k.uncertain, v.Name)
			op.Done(nil)
			return
		}
		k.undoCreate(op, v, k.idx.entry(v.Name), err)
	})
	for _, req := range reqs {
		k.send(ifObject("set up", v.Name), req, done)
	}
}

func ifTag(v *vpp_interfaces.Interface) string {
	if v.Type == vpp_interfaces.Interface_DPDK {
		return nicTagOf(v.Name)
	}
	return tagOf(v.Name)
}

func tagRequest(index uint32, tag string) api.Message {
	return &interfaces.SwInterfaceTagAddDel{
		IsAdd: tag != "", SwIfIndex: interface_types.InterfaceIndex(index), Tag: tag,
	}
}

func macRequest(index uint32, address string) api.Message {
	return &interfaces.SwInterfaceSetMacAddress{
		SwIfIndex: interface_types.InterfaceIndex(index), MacAddress: mac(address),
	}
}

func (k *kinds) changeMAC(op *scheduler.Op, v *vpp_interfaces.Interface) {
	o := ifObject("set phys_address of", v.Name)
	index, ok := k.idx.IfIndex(v.Name)
	if !ok {
		k.missing(op, o, v.Name)
		return
	}
	k.do(op, o, macRequest(index, v.PhysAddress))
}

func (k *kinds) deleteInterface(op *scheduler.Op, v *vpp_interfaces.Interface) {
	e := k.idx.entry(v.Name)
	if e == nil {
		gone(op)
		return
	}
	k.snap.forget()
	k.idx.remove(v.Name) // from here on VPP may use the number again
	removed := func(err error) {
		if err != nil && !isFine(err, ifGone) {
			k.idx.add(e)
			op.Done(ifObject("delete", v.Name).wrap(err))
			return
		}
		k.leftoverGone(e)
		op.Done(nil)
	}
	if !k.throwAway(e, v, removed) {
		k.types[e.kind].remove(k, e, v, removed)
	}
}

// ifGone is what VPP says of an interface that it does not have.
var ifGone = []api.VPPApiError{api.INVALID_SW_IF_INDEX, api.INVALID_SW_IF_INDEX_2, api.NO_SUCH_ENTRY}

// dumpInterfaces emits the interfaces that carry our tag, and leftovers. An interface in which a type does not recognise itself (made by
// hand, with our tag) is left out.
func (k *kinds) dumpInterfaces(op *scheduler.DumpOp, emit func(string, *vpp_interfaces.Interface)) {
	k.snapshot(op, func(s *ifSnapshot, err error) {
		if err != nil {
			op.Done(err)
			return
		}
		for _, st := range slices.Concat(s.ours, s.leftovers) {
			if v := k.readInterface(st); v != nil {
				emit(nb.VppInterfaceKey(v.Name), v)
			}
		}
		op.Done(nil)
	})
}

func (k *kinds) readInterface(s *ifState) *vpp_interfaces.Interface {
	t := k.types[s.kind]
	if t == nil {
		return nil
	}
	v := &vpp_interfaces.Interface{
		Name: s.name, Type: s.kind, Enabled: s.up(), Mtu: s.mtu(t), Vrf: s.vrf4, SetDhcpClient: s.dhcp,
	}
	if !t.noMAC {
		v.PhysAddress = s.details.L2Address.String()
	}
	for _, a := range s.addresses {
		v.IpAddresses = append(v.IpAddresses, a.String())
	}
	if t.read != nil && !t.read(k, s, v) {
		return nil
	}
	return v
}

// faults collects what is wrong with a value, field by field.
type faults struct{ errs []error }

func (f *faults) add(field, format string, args ...any) {
	f.errs = append(f.errs, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
}

func (f *faults) err() error { return errors.Join(f.errs...) }

func (f *faults) name(field, name string) {
	switch {
	case name == "":
		f.add(field, "is empty")
	case strings.ContainsRune(name, 0):
		f.add(field, "contains a zero byte")
	}
}

// device checks the name of a Linux device; VPP copies a longer one over its own stack.
func (f *faults) device(field, name string) {
	if len(name) > 15 {
		f.add(field, "%q is longer than the 15 characters of a Linux device name", name)
	}
}
