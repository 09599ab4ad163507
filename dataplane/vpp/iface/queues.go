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

type (
	ifMTU struct {
		If  string
		MTU uint32
	}
	// ifRxModes are the receive modes of the queues: what is desired, or what VPP has.
	ifRxModes struct {
		If      string
		All     interface_types.RxMode // of the queues not in Queues; 0: whatever VPP chooses
		Queues  []queueMode            // ascending
		Dumped  bool                   // Queues are those that VPP has
		Waiting bool                   // a memif, whose queues come with its peer
	}
	queueMode struct {
		Queue uint32
		Mode  interface_types.RxMode
	}
	ifPlacement struct {
		If     string
		Queue  uint32
		Main   bool
		Worker uint32
	}
)

const (
	kindIfMTU       = "vpp-interface-mtu"
	kindIfRxModes   = "vpp-interface-rx-modes"
	kindIfPlacement = "vpp-interface-rx-placement"
)

func mtuKey(ifName string) string { return nb.InterfacePrefix + ifName + "/mtu" }

// rxQueues is how many receive queues an interface has: as many as are placed, one at least.
func rxQueues(v *vpp_interfaces.Interface) uint32 {
	n := uint32(1)
	for _, p := range v.RxPlacements {
		n = max(n, p.Queue+1)
	}
	return n
}

// placements are where the queues are.
func (s *ifState) placements() []*vpp_interfaces.Interface_RxPlacement {
	var out []*vpp_interfaces.Interface_RxPlacement
	for _, q := range s.queues {
		p := &vpp_interfaces.Interface_RxPlacement{Queue: q.QueueID, MainThread: q.WorkerID == 0}
		if !p.MainThread {
			p.Worker = q.WorkerID - 1 // VPP reports threads, and takes workers
		}
		out = append(out, p)
	}
	return out
}

// deriveQueues: an interface whose type has a receive mode of its own gets it unless another is asked for. VPP polls TAPs by
// default, and so would burn a core for idle pods.
func (k *Kinds) deriveQueues(v *vpp_interfaces.Interface, put func(kind, key string, item any)) {
	modes := ifRxModes{If: v.Name, All: k.types[v.Type].rxMode, Waiting: v.Type == vpp_interfaces.Interface_MEMIF}
	for _, m := range v.RxModes {
		if m.DefaultMode {
			modes.All = rxModeOf(m.Mode)
		} else {
			modes.Queues = append(modes.Queues, queueMode{m.Queue, rxModeOf(m.Mode)})
		}
	}
	slices.SortFunc(modes.Queues, func(a, b queueMode) int { return int(a.Queue) - int(b.Queue) })
	if modes.All != 0 || len(modes.Queues) > 0 {
		put(kindIfRxModes, nb.RxModesKey(v.Name), modes)
	}
	for _, p := range v.RxPlacements {
		item := ifPlacement{If: v.Name, Queue: p.Queue, Main: p.MainThread}
		if !p.MainThread {
			item.Worker = p.Worker
		}
		put(kindIfPlacement, nb.RxPlacementKey(v.Name, p.Queue), item)
	}
}

func (k *Kinds) ifMTUKind() scheduler.Kind[ifMTU] {
	kind := kit.Item[ifMTU](kindIfMTU, scheduler.RankIfSetting)
	kind.Parent = func(_ string, v ifMTU) string { return nb.VppInterfaceKey(v.If) }
	kind.Create = func(op *scheduler.Op, _ string, v ifMTU) { k.setMTU(op, v.If, v.MTU) }
	kind.Update = func(op *scheduler.Op, _ string, _, v ifMTU) { k.setMTU(op, v.If, v.MTU) }
	kind.Delete = func(op *scheduler.Op, _ string, v ifMTU) {
		e := k.idx.Entry(v.If)
		switch {
		case e == nil:
			kit.Gone(op)
		case e.restore != nil:
			k.setMTU(op, v.If, e.restore.mtu)
		default:
			k.setMTU(op, v.If, k.types[e.kind].mtu)
		}
	}
	kind.Dump = func(op *scheduler.DumpOp, emit func(string, ifMTU)) {
		wanted := map[string]bool{}
		op.EachDesired(func(_ string, v any) { wanted[v.(ifMTU).If] = true })
		dumpItems(k, func(s *ifState, emit func(string, ifMTU)) {
			t := k.types[s.kind]
			// What a NIC's default is, is known to VPP only.
			if wanted[s.Name] || (t != nil && t.mtu != 0 && s.mtu(t) != 0) {
				emit(mtuKey(s.Name), ifMTU{If: s.Name, MTU: s.Details.Mtu[0]})
			}
		})(op, emit)
	}
	return kind
}

// setMTU sets the MTU of IP packets; on a NIC also the size of the frames that it takes, if it can.
func (k *Kinds) setMTU(op *scheduler.Op, ifName string, mtu uint32) {
	o := Named("set mtu of", ifName)
	e := k.idx.Entry(ifName)
	if e == nil {
		k.Missing(op, o, ifName)
		return
	}
	if e.kind != vpp_interfaces.Interface_DPDK {
		k.Do(op, o, mtuRequest(e.Index, mtu))
		return
	}
	req := &interfaces.HwInterfaceSetMtu{SwIfIndex: interface_types.InterfaceIndex(e.Index), Mtu: uint16(mtu)}
	k.Lane.Request(req, func(_ api.Message, err error) {
		if err == nil || conn.IsRetval(err) {
			k.Do(op, o, mtuRequest(e.Index, mtu))
			return
		}
		op.Done(o.Wrap(err))
	})
}

func mtuRequest(index, mtu uint32) *interfaces.SwInterfaceSetMtu {
	return &interfaces.SwInterfaceSetMtu{
		SwIfIndex: interface_types.InterfaceIndex(index), Mtu: []uint32{mtu, 0, 0, 0},
	}
}

// ifRxModesKind sets modes when the link is up, in a wave of its own. A pod may fill its ring before: VPP polls the ring until then. With a mode
// that waits for interrupts it would drop the ring's only one while the link is down, and never look again.
func (k *Kinds) ifRxModesKind() scheduler.Kind[ifRxModes] {
	return scheduler.Kind[ifRxModes]{
		Name: kindIfRxModes, Rank: scheduler.RankRxMode, ImpliedByParent: true,
		Equal:  func(_ string, desired, applied ifRxModes) bool { return desired.sameAs(applied) },
		Parent: func(_ string, v ifRxModes) string { return nb.VppInterfaceKey(v.If) },
		Create: func(op *scheduler.Op, _ string, v ifRxModes) { k.setRxModes(op, v) },
		Update: func(op *scheduler.Op, _ string, applied, desired ifRxModes) {
			k.setRxModes(op, desired.after(applied))
		},
		Delete: func(op *scheduler.Op, _ string, v ifRxModes) {
			k.idx.setRxModes(v.If, nil)
			if k.idx.Entry(v.If) == nil {
				kit.Gone(op)
				return
			}
			k.setRxModes(op, ifRxModes{If: v.If, All: interface_types.RX_MODE_API_DEFAULT})
		},
		Dump: k.dumpRxModes,
	}
}

// mode is the mode wanted for a queue; 0 if any is fine.
func (m ifRxModes) mode(queue uint32) interface_types.RxMode {
	for _, q := range m.Queues {
		if q.Queue == queue {
			return q.Mode
		}
	}
	return m.All
}

func (m ifRxModes) sameAs(applied ifRxModes) bool {
	if !applied.Dumped {
		return m.All == applied.All && slices.Equal(m.Queues, applied.Queues)
	}
	for _, q := range applied.Queues {
		switch want := m.mode(q.Queue); want {
		case q.Mode, interface_types.RX_MODE_API_UNKNOWN, interface_types.RX_MODE_API_DEFAULT:
		default:
			return false
		}
	}
	return true
}

// after adds what brings queues back to VPP's default that had a mode of their own before.
func (m ifRxModes) after(applied ifRxModes) ifRxModes {
	if m.All == 0 && (applied.All != 0 || len(applied.Queues) > 0) && !applied.Dumped {
		m.All = interface_types.RX_MODE_API_DEFAULT
	}
	return m
}

// requests are for all queues first, then for those that differ.
func (m ifRxModes) requests(index uint32) []*interfaces.SwInterfaceSetRxMode {
	var reqs []*interfaces.SwInterfaceSetRxMode
	if m.All != 0 {
		reqs = append(reqs, &interfaces.SwInterfaceSetRxMode{SwIfIndex: interface_types.InterfaceIndex(index), Mode: m.All})
	}
	for _, q := range m.Queues {
		reqs = append(reqs, &interfaces.SwInterfaceSetRxMode{
			SwIfIndex: interface_types.InterfaceIndex(index), QueueIDValid: true, QueueID: q.Queue, Mode: q.Mode,
		})
	}
	return reqs
}

// setRxModes sets the modes. The queues of a memif come when its peer connects, in VPP's default mode: what is wanted is
// kept in the index for then (RxModeRequests), and a queue that is not there is no fault.
func (k *Kinds) setRxModes(op *scheduler.Op, v ifRxModes) {
	o := Named("set rx_modes of", v.If)
	index, ok := k.idx.IfIndex(v.If)
	if !ok {
		k.Missing(op, o, v.If)
		return
	}
	var fine []api.VPPApiError
	if v.Waiting {
		k.idx.setRxModes(v.If, &v)
		fine = []api.VPPApiError{api.UNIMPLEMENTED}
	}
	reqs := v.requests(index)
	done := kit.Join(len(reqs), op.Done)
	for _, req := range reqs {
		k.Send(o, req, done, fine...)
	}
}

// dumpRxModes emits the modes of interfaces that have queues. For one that is wanted and has none (yet), what is wanted is
// as good as there.
func (k *Kinds) dumpRxModes(op *scheduler.DumpOp, emit func(string, ifRxModes)) {
	wanted := map[string]ifRxModes{}
	op.EachDesired(func(_ string, v any) { wanted[v.(ifRxModes).If] = v.(ifRxModes) })
	dumpItems(k, func(s *ifState, emit func(string, ifRxModes)) {
		want, isWanted := wanted[s.Name]
		switch t := k.types[s.kind]; {
		case len(s.queues) == 0 && isWanted:
			if want.Waiting {
				k.idx.setRxModes(s.Name, &want)
			}
			emit(nb.RxModesKey(s.Name), want)
		case isWanted || (t != nil && t.rxMode != 0):
			if want.Waiting {
				k.idx.setRxModes(s.Name, &want)
			}
			v := ifRxModes{If: s.Name, Dumped: true}
			for _, q := range s.queues {
				v.Queues = append(v.Queues, queueMode{q.QueueID, q.Mode})
			}
			emit(nb.RxModesKey(s.Name), v)
		}
	})(op, emit)
}

func (k *Kinds) ifPlacementKind() scheduler.Kind[ifPlacement] {
	kind := kit.Item[ifPlacement](kindIfPlacement, scheduler.RankIfSetting)
	kind.Parent = func(_ string, v ifPlacement) string { return nb.VppInterfaceKey(v.If) }
	set := func(op *scheduler.Op, v ifPlacement) {
		o := Named("place the queues of", v.If)
		index, ok := k.idx.IfIndex(v.If)
		if !ok {
			k.Missing(op, o, v.If)
			return
		}
		k.Do(op, o, &interfaces.SwInterfaceSetRxPlacement{
			SwIfIndex: interface_types.InterfaceIndex(index), QueueID: v.Queue, WorkerID: v.Worker, IsMain: v.Main,
		})
	}
	kind.Create = func(op *scheduler.Op, _ string, v ifPlacement) { set(op, v) }
	kind.Update = func(op *scheduler.Op, _ string, _, v ifPlacement) { set(op, v) }
	// VPP has no "anywhere": the queue stays where it is.
	kind.Delete = func(op *scheduler.Op, _ string, _ ifPlacement) { op.Done(nil) }
	kind.Dump = func(op *scheduler.DumpOp, emit func(string, ifPlacement)) {
		wanted := map[string]bool{}
		op.EachDesired(func(key string, _ any) { wanted[key] = true })
		dumpItems(k, func(s *ifState, emit func(string, ifPlacement)) {
			for _, p := range s.placements() {
				if key := nb.RxPlacementKey(s.Name, p.Queue); wanted[key] { // every queue is somewhere
					emit(key, ifPlacement{If: s.Name, Queue: p.Queue, Main: p.MainThread, Worker: p.Worker})
				}
			}
		})(op, emit)
	}
	return kind
}
