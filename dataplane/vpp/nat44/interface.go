package nat44

import (
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/feature"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// natRole is the role of an interface in NAT.
type natRole int

const (
	natNone natRole = iota
	natIn
	natOut
	natBoth
	natOutput // translates sources of sent packets, and destinations of received ones
)

func roleOf(v *vpp_nat.Nat44Interface) natRole {
	switch {
	case v.OutputFeature:
		return natOutput
	case v.NatInside && v.NatOutside:
		return natBoth
	case v.NatInside:
		return natIn
	case v.NatOutside:
		return natOut
	}
	return natNone
}

// natInterfaceDescriptor returns the descriptor of NAT interfaces. For an outside interface VPP adds each external address of its mappings
// and each address of its pool to the interface's table, and searches for each of them in a list of all addresses that it has
// added before. With 5,000 services the 40th pod takes its main thread half a second, and each further pod more; deleting a
// pod, too. So an interface that is both inside and outside, as every pod's is, becomes an inside interface only, and the agent
// changes the feature in which the two roles differ: the cost of that does not depend on the number of services. Output-feature
// interfaces are outside interfaces, too, but a node has only one.
func (k *descriptors) natInterfaceDescriptor() scheduler.Descriptor[*vpp_nat.Nat44Interface] {
	return scheduler.Descriptor[*vpp_nat.Nat44Interface]{
		Name: "vpp-nat44-interface", Prefix: nb.Nat44InterfacePrefix, Rank: scheduler.RankFeature,
		Validate: func(_ string, v *vpp_nat.Nat44Interface) error {
			var f kit.Faults
			f.Name("name", v.Name)
			if roleOf(v) == natNone {
				f.Add("nat_inside", "is not set, nor are nat_outside and output_feature: there would be no NAT")
			}
			return f.Err()
		},
		Equal: func(_ string, desired, applied *vpp_nat.Nat44Interface) bool {
			return roleOf(desired) == roleOf(applied)
		},
		Deps: func(_ string, v *vpp_nat.Nat44Interface, add func(string)) {
			add(nb.Nat44GlobalKey)
			add(nb.VppInterfaceKey(v.Name))
			add(iface.PlaceKey(v.Name)) // VPP counts the tables of NAT interfaces
		},
		Create: func(op *scheduler.Op, _ string, v *vpp_nat.Nat44Interface) {
			index, ok := k.idx.IfIndex(v.Name)
			if !ok {
				k.Missing(op, natIfObject("enable", v.Name), v.Name)
				return
			}
			if err := k.guard.Unguarded(v.Name); err != nil {
				op.Done(natIfObject("enable", v.Name).Wrap(err))
				return
			}
			k.setNATRole(op, v.Name, index, roleOf(v), true)
		},
		Delete: func(op *scheduler.Op, _ string, v *vpp_nat.Nat44Interface) {
			index, ok := k.idx.IfIndex(v.Name)
			if !ok {
				kit.Gone(op)
				return
			}
			k.setNATRole(op, v.Name, index, roleOf(v), false)
		},
		Dump: k.dumpNATInterfaces,
	}
}

func natIfObject(what, name string) kit.Object { return kit.Named(what+" NAT44 on", "interface "+name) }

// natFeatures returns the names of the features in which the roles differ.
func (k *descriptors) natFeatures() (in2out, both string) {
	if k.nat.handoff {
		return "nat44-in2out-worker-handoff", "nat44-handoff-classify"
	}
	return "nat-pre-in2out", "nat44-ed-classify"
}

func (k *descriptors) setNATRole(op *scheduler.Op, name string, index uint32, role natRole, on bool) {
	ifx := interface_types.InterfaceIndex(index)
	inside := &nat44_ed.Nat44InterfaceAddDelFeature{IsAdd: on, SwIfIndex: ifx, Flags: nat_types.NAT_IS_INSIDE}
	outside := &nat44_ed.Nat44InterfaceAddDelFeature{IsAdd: on, SwIfIndex: ifx}
	in2out, both := k.natFeatures()
	change := func(name string, on bool) api.Message {
		return &feature.FeatureEnableDisable{SwIfIndex: ifx, Enable: on, ArcName: "ip4-unicast", FeatureName: name}
	}
	var steps [][]api.Message // in this order, a dump reports both roles only after the last feature, and no role without the inside
	switch {
	case role == natIn:
		steps = [][]api.Message{{inside}}
	case role == natOut:
		steps = [][]api.Message{{outside}}
	case role == natOutput:
		steps = [][]api.Message{{&nat44_ed.Nat44EdAddDelOutputInterface{IsAdd: on, SwIfIndex: ifx}}}
	case on:
		steps = [][]api.Message{{inside}, {change(in2out, false)}, {change(both, true)}}
	case k.nat.inAndOut[name]:
		steps = [][]api.Message{{inside, outside}}
	default:
		steps = [][]api.Message{{change(both, false)}, {inside}}
	}
	delete(k.nat.inAndOut, name)
	var fine []api.VPPApiError
	what := "enable"
	if !on {
		what, fine = "disable", kit.IfGone
	}
	k.SendSteps(natIfObject(what, name), steps, func(err error) {
		if len(steps) > 1 || len(steps[0]) > 1 {
			err = scheduler.OutcomeUnknown(err)
		}
		op.Done(err)
	}, fine...)
}

// dumpNATInterfaces emits the roles of our interfaces.
func (k *descriptors) dumpNATInterfaces(op *scheduler.DumpOp, emit func(string, *vpp_nat.Nat44Interface)) {
	end := func(err error) { op.Done(kit.Named("dump", "NAT44 interfaces").Wrap(err)) }
	put := func(v *vpp_nat.Nat44Interface) { emit(nb.Nat44InterfaceKey(v.Name), v) }
	k.ifs.Snapshot(op, func(_ *iface.Snapshot, err error) {
		if err != nil {
			end(err)
			return
		}
		k.nat.inAndOut = map[string]bool{}
		requested := requestedNATInterfaces(op)
		var inside []uint32
		both := kit.Join(2, func(err error) {
			if err != nil {
				end(err)
				return
			}
			k.queryNATRoles(inside, put, end)
		})
		conn.Dump(k.Lane, &nat44_ed.Nat44InterfaceDump{}, func(d *nat44_ed.Nat44InterfaceDetails) {
			name, ours := k.idx.NameByIndex(uint32(d.SwIfIndex))
			in, out := d.Flags&nat_types.NAT_IS_INSIDE != 0, d.Flags&nat_types.NAT_IS_OUTSIDE != 0
			switch {
			case !ours:
			case in && !out && requested(name):
				inside = append(inside, uint32(d.SwIfIndex))
			case out:
				k.nat.inAndOut[name] = in && out
				put(&vpp_nat.Nat44Interface{Name: name, NatInside: in, NatOutside: out})
			}
		}, both)
		conn.Dump(k.Lane, &nat44_ed.Nat44EdOutputInterfaceGet{}, func(d *nat44_ed.Nat44EdOutputInterfaceDetails) {
			if name, ours := k.idx.NameByIndex(uint32(d.SwIfIndex)); ours {
				put(&vpp_nat.Nat44Interface{Name: name, OutputFeature: true})
			}
		}, both)
	})
}

// requestedNATInterfaces returns a function that reports whether a dump covers an interface: all of them, unless it is a partial
// dump.
func requestedNATInterfaces(op *scheduler.DumpOp) func(name string) bool {
	if !op.Partial() {
		return func(string) bool { return true }
	}
	names := map[string]bool{}
	op.EachDesired(func(_ string, v any) { names[v.(*vpp_nat.Nat44Interface).Name] = true })
	return func(name string) bool { return names[name] }
}

// queryNATRoles queries which of the inside interfaces are outside, too.
func (k *descriptors) queryNATRoles(inside []uint32, put func(*vpp_nat.Nat44Interface), end func(error)) {
	if len(inside) == 0 {
		end(nil)
		return
	}
	_, both := k.natFeatures()
	done := kit.Join(len(inside), end)
	for _, index := range inside {
		conn.Call(k.Lane, &feature.FeatureIsEnabled{
			SwIfIndex: interface_types.InterfaceIndex(index), ArcName: "ip4-unicast", FeatureName: both,
		}, func(r *feature.FeatureIsEnabledReply, err error) {
			if name, ok := k.idx.NameByIndex(index); ok && err == nil {
				put(&vpp_nat.Nat44Interface{Name: name, NatInside: true, NatOutside: r.IsEnabled})
			}
			done(err)
		})
	}
}
