package l3

import (
	"fmt"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_neighbor"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// neighbourDescriptor returns the descriptor of neighbours. For each neighbour VPP itself adds a host route to the table of the
// interface, with a lower priority than all our routes.
func (k *descriptors) neighbourDescriptor() scheduler.Descriptor[*vpp_l3.ARPEntry] {
	return scheduler.Descriptor[*vpp_l3.ARPEntry]{
		Name: "vpp-neighbour", Prefix: nb.ARPPrefix, Rank: scheduler.RankNeighbour,
		Validate: func(_ string, v *vpp_l3.ARPEntry) error { return validateNeighbour(v) },
		Equal: func(_ string, desired, applied *vpp_l3.ARPEntry) bool {
			return desired.Static == applied.Static && kit.SameMAC(desired.PhysAddress, applied.PhysAddress)
		},
		Deps: func(_ string, v *vpp_l3.ARPEntry, add func(string)) {
			add(nb.VppInterfaceKey(v.Interface))
			add(iface.PlaceKey(v.Interface))
		},
		Create: func(op *scheduler.Op, _ string, v *vpp_l3.ARPEntry) {
			k.putNeighbour(op, v, true)
		},
		Update: func(op *scheduler.Op, _ string, _, v *vpp_l3.ARPEntry) { k.putNeighbour(op, v, true) },
		// A static entry never becomes a dynamic one.
		CanUpdate: func(_ string, applied, desired *vpp_l3.ARPEntry) bool { return desired.Static || !applied.Static },
		Delete: func(op *scheduler.Op, _ string, v *vpp_l3.ARPEntry) {
			k.putNeighbour(op, v, false)
		},
		Dump: k.dumpNeighbours,
	}
}

func validateNeighbour(v *vpp_l3.ARPEntry) error {
	var f kit.Faults
	f.Name("interface", v.Interface)
	if a := kit.Addr(v.IpAddress); !a.IsValid() || a.IsUnspecified() || a.IsMulticast() {
		f.Add("ip_address", "%q is not the address of a neighbour", v.IpAddress)
	}
	if _, err := kit.ParseMAC(v.PhysAddress); err != nil {
		f.Add("phys_address", "%v", err)
	}
	return f.Err()
}

func (k *descriptors) putNeighbour(op *scheduler.Op, v *vpp_l3.ARPEntry, add bool) {
	what := "delete"
	if add {
		what = "add"
	}
	o := kit.Named(what+" neighbour", v.IpAddress+" of interface "+v.Interface)
	index, ok := k.idx.IfIndex(v.Interface)
	switch {
	case !ok && add:
		k.Missing(op, o, v.Interface)
		return
	case !ok:
		kit.Gone(op)
		return
	}
	req := &ip_neighbor.IPNeighborAddDel{IsAdd: add, Neighbor: ip_neighbor.IPNeighbor{
		SwIfIndex: interface_types.InterfaceIndex(index), MacAddress: kit.MAC(v.PhysAddress), IPAddress: kit.ToAddress(kit.Addr(v.IpAddress)),
	}}
	if v.Static {
		req.Neighbor.Flags = ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC
	}
	if add {
		k.Do(op, o, req)
		return
	}
	k.Do(op, o, req, api.NO_SUCH_ENTRY, api.INVALID_SW_IF_INDEX)
}

// dumpNeighbours emits the static entries on our interfaces. Dynamic entries are learned by VPP and are emitted only if
// they are desired.
func (k *descriptors) dumpNeighbours(op *scheduler.DumpOp, emit func(string, *vpp_l3.ARPEntry)) {
	type id struct {
		ifName string
		ip     netip.Addr
	}
	keys := map[id]string{}
	op.EachDesired(func(key string, v any) {
		n := v.(*vpp_l3.ARPEntry)
		keys[id{n.Interface, kit.Addr(n.IpAddress)}] = key
	})
	fail := func(err error) { op.Done(fmt.Errorf("vpp: dump neighbours: %w", err)) }
	k.ifs.Snapshot(op, func(s *iface.Snapshot, err error) {
		if err != nil {
			fail(err)
			return
		}
		reqs := neighbourDumps(op, s)
		part := kit.Join(len(reqs)+1, func(err error) {
			if err != nil {
				fail(err)
				return
			}
			op.Done(nil)
		})
		for _, req := range reqs {
			conn.Dump(k.Lane, req, func(d *ip_neighbor.IPNeighborDetails) {
				name, ours := k.idx.NameByIndex(uint32(d.Neighbor.SwIfIndex))
				a := kit.FromAddress(d.Neighbor.IPAddress)
				key, wanted := keys[id{name, a}]
				static := d.Neighbor.Flags&ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC != 0
				if !ours || (!static && !wanted) {
					return
				}
				if !wanted {
					key = nb.ARPKey(name, a.String())
				}
				emit(key, &vpp_l3.ARPEntry{
					Interface: name, IpAddress: a.String(), PhysAddress: d.Neighbor.MacAddress.String(), Static: static,
				})
			}, part)
		}
		part(nil)
	})
}

// neighbourDumps returns the requests for all neighbours, or for those of the interfaces that a partial dump requests.
func neighbourDumps(op *scheduler.DumpOp, s *iface.Snapshot) []*ip_neighbor.IPNeighborDump {
	on := []interface_types.InterfaceIndex{interface_types.InterfaceIndex(kit.None)}
	if op.Partial() {
		on = on[:0]
		for _, st := range s.Ours {
			on = append(on, st.Details.SwIfIndex)
		}
	}
	var reqs []*ip_neighbor.IPNeighborDump
	for _, index := range on {
		for _, v6 := range []bool{false, true} {
			reqs = append(reqs, &ip_neighbor.IPNeighborDump{SwIfIndex: index, Af: kit.Family(v6)})
		}
	}
	return reqs
}
