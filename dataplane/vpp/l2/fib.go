package l2

import (
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_l2 "contiv.dev/vswitch/dataplane/nb/vpp/l2"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

func (k *descriptors) fibDescriptor() scheduler.Descriptor[*vpp_l2.FIBEntry] {
	return scheduler.Descriptor[*vpp_l2.FIBEntry]{
		Name: "vpp-l2-fib", Prefix: nb.FIBPrefix, Rank: scheduler.RankNeighbour,
		Validate: func(_ string, v *vpp_l2.FIBEntry) error { return validateFIB(v) },
		Equal:    func(_ string, desired, applied *vpp_l2.FIBEntry) bool { return sameFIB(desired, applied) },
		Deps: func(_ string, v *vpp_l2.FIBEntry, add func(string)) {
			add(nb.BridgeDomainKey(v.BridgeDomain))
			if v.Action == vpp_l2.FIBEntry_FORWARD {
				// VPP rejects an entry with an interface that is not in a bridge domain.
				add(nb.BDInterfaceKey(v.BridgeDomain, v.OutgoingInterface))
			}
		},
		Create: func(op *scheduler.Op, _ string, v *vpp_l2.FIBEntry) { k.addFIB(op, v) },
		Update: func(op *scheduler.Op, _ string, _, v *vpp_l2.FIBEntry) { k.addFIB(op, v) },
		Delete: func(op *scheduler.Op, _ string, v *vpp_l2.FIBEntry) {
			bd, ok := k.idx.BridgeDomain(v.BridgeDomain)
			if !ok {
				kit.Gone(op)
				return
			}
			req := &l2.L2fibAddDel{Mac: kit.MAC(v.PhysAddress), BdID: bd} // interface 0 matches the interface of the entry
			if index, ok := k.idx.IfIndex(v.OutgoingInterface); ok && v.Action == vpp_l2.FIBEntry_FORWARD {
				req.SwIfIndex = interface_types.InterfaceIndex(index)
			}
			k.Do(op, fibObject("delete", v), req, api.NO_SUCH_ENTRY)
		},
		Dump: k.dumpFIB,
	}
}

func validateFIB(v *vpp_l2.FIBEntry) error {
	var f kit.Faults
	f.Name("bridge_domain", v.BridgeDomain)
	if _, err := kit.ParseMAC(v.PhysAddress); err != nil {
		f.Add("phys_address", "%v", err)
	}
	switch v.Action {
	case vpp_l2.FIBEntry_FORWARD:
		f.Name("outgoing_interface", v.OutgoingInterface)
	case vpp_l2.FIBEntry_DROP:
		if v.BridgedVirtualInterface {
			f.Add("bridged_virtual_interface", "not supported for an entry that drops")
		}
	default:
		f.Add("action", "%d is not known", v.Action)
	}
	return f.Err()
}

// sameFIB compares two entries. An entry that drops has no interface, and VPP always makes it static.
func sameFIB(a, b *vpp_l2.FIBEntry) bool {
	if a.Action != b.Action {
		return false
	}
	return a.Action == vpp_l2.FIBEntry_DROP || (a.OutgoingInterface == b.OutgoingInterface &&
		a.BridgedVirtualInterface == b.BridgedVirtualInterface && a.StaticConfig == b.StaticConfig)
}

func fibObject(what string, v *vpp_l2.FIBEntry) kit.Object {
	return kit.Named(what, "L2 FIB entry "+v.PhysAddress+" of bridge domain "+v.BridgeDomain)
}

func (k *descriptors) addFIB(op *scheduler.Op, v *vpp_l2.FIBEntry) {
	o := fibObject("add", v)
	bd, ok := k.idx.BridgeDomain(v.BridgeDomain)
	if !ok {
		op.Done(o.Wrap(errNoBridge))
		return
	}
	req := &l2.L2fibAddDel{
		IsAdd: true, Mac: kit.MAC(v.PhysAddress), BdID: bd, SwIfIndex: interface_types.InterfaceIndex(kit.None),
		StaticMac: v.StaticConfig, BviMac: v.BridgedVirtualInterface, FilterMac: v.Action == vpp_l2.FIBEntry_DROP,
	}
	if v.Action == vpp_l2.FIBEntry_FORWARD {
		index, ok := k.idx.IfIndex(v.OutgoingInterface)
		if !ok {
			k.Missing(op, o, v.OutgoingInterface)
			return
		}
		req.SwIfIndex = interface_types.InterfaceIndex(index)
	}
	k.Do(op, o, req)
}

type fibID struct {
	bd  string
	mac ethernet_types.MacAddress
}

// dumpFIB emits the static entries of our bridge domains, except that of the BVI, which VPP makes itself. Dynamic entries
// are learned by VPP and are emitted only if they are desired.
func (k *descriptors) dumpFIB(op *scheduler.DumpOp, emit func(string, *vpp_l2.FIBEntry)) {
	keys := map[fibID]string{}
	op.EachDesired(func(key string, v any) {
		e := v.(*vpp_l2.FIBEntry)
		keys[fibID{e.BridgeDomain, kit.MAC(e.PhysAddress)}] = key
	})
	k.ifs.Snapshot(op, func(s *iface.Snapshot, err error) {
		if err != nil {
			op.Done(err)
			return
		}
		k.eachBridge(func(found []*l2.BridgeDomainDetails, err error) {
			if err != nil || len(found) == 0 {
				op.Done(err)
				return
			}
			done := kit.Join(len(found), func(err error) {
				if err != nil {
					err = fmt.Errorf("vpp: dump L2 FIB: %w", err)
				}
				op.Done(err)
			})
			for _, bd := range found {
				conn.Dump(k.Lane, &l2.L2FibTableDump{BdID: bd.BdID}, func(d *l2.L2FibTableDetails) {
					key, wanted := keys[fibID{bd.BdTag, d.Mac}]
					v := k.readFIB(s, bd, d, wanted)
					if v == nil {
						return
					}
					if !wanted {
						key = nb.FIBKey(v.BridgeDomain, v.PhysAddress)
					}
					emit(key, v)
				}, done)
			}
		})
	})
}

func (k *descriptors) readFIB(s *iface.Snapshot, bd *l2.BridgeDomainDetails, d *l2.L2FibTableDetails, wanted bool) *vpp_l2.FIBEntry {
	v := &vpp_l2.FIBEntry{PhysAddress: d.Mac.String(), BridgeDomain: bd.BdTag}
	if d.FilterMac {
		v.Action, v.StaticConfig = vpp_l2.FIBEntry_DROP, true
		return v
	}
	name, ours := k.idx.NameByIndex(uint32(d.SwIfIndex))
	if !ours || (!d.StaticMac && !wanted) {
		return nil
	}
	if d.BviMac && !wanted && d.SwIfIndex == bd.BviSwIfIndex {
		// A partial snapshot may lack the BVI; then no value needs its entry.
		if st := s.ByIndex[uint32(d.SwIfIndex)]; st == nil || st.Details.L2Address == d.Mac {
			return nil
		}
	}
	v.OutgoingInterface, v.StaticConfig, v.BridgedVirtualInterface = name, d.StaticMac, d.BviMac
	return v
}
