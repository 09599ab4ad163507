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
	// ifRxModes holds the receive modes of the queues: the desired ones, or those that VPP has.
	ifRxModes struct {
		If      string
		All     interface_types.RxMode // of the queues not in Queues; 0: VPP's choice
		Queues  []queueMode            // ascending
		Dumped  bool                   // Queues are those of VPP
		Waiting bool                   // for a memif, whose queues exist only after its peer has connected
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

// rxQueues returns the number of receive queues of an interface: as many as are placed, at least one.
func rxQueues(v *vpp_interfaces.Interface) uint32 {
	n := uint32(1)
	for _, p := range v.RxPlacements {
		n = max(n, p.Queue+1)
	}
	return n
}

// placements returns the threads of the queues.
func (s *ifState) placements() []*vpp_interfaces.Interface_RxPlacement {
	var out []*vpp_interfaces.Interface_RxPlacement
	for _, q := range s.queues {
		p := &vpp_interfaces.Interface_RxPlacement{Queue: q.QueueID, MainThread: q.WorkerID == 0}
		if !p.MainThread {
			p.Worker = q.WorkerID - 1 // VPP reports threads, but requests have workers
		}
		out = append(out, p)
	}
	return out
}

// deriveQueues derives receive modes and placements. The receive mode of an interface's type applies unless the value has another one. VPP polls
// TAPs by default, which would use a full core for idle pods.
func (k *Descriptors) deriveQueues(v *vpp_interfaces.Interface, put func(kind, key string, item any)) {
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

func (k *Descriptors) ifMTUDescriptor() scheduler.Descriptor[ifMTU] {
	desc := kit.Item[ifMTU](kindIfMTU, scheduler.RankIfSetting)
	desc.Parent = func(_ string, v ifMTU) string { return nb.VppInterfaceKey(v.If) }
	desc.Create = func(op *scheduler.Op, _ string, v ifMTU) { k.setMTU(op, v.If, v.MTU) }
	desc.Update = func(op *scheduler.Op, _ string, _, v ifMTU) { k.setMTU(op, v.If, v.MTU) }
	desc.Delete = func(op *scheduler.Op, _ string, v ifMTU) {
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
	desc.Dump = func(op *scheduler.DumpOp, emit func(string, ifMTU)) {
		wanted := map[string]bool{}
		op.EachDesired(func(_ string, v any) { wanted[v.(ifMTU).If] = true })
		dumpItems(k, func(s *ifState, emit func(string, ifMTU)) {
			t := k.types[s.kind]
			// Only VPP has the default MTU of a NIC.
			if wanted[s.Name] || (t != nil && t.mtu != 0 && s.mtu(t) != 0) {
				emit(mtuKey(s.Name), ifMTU{If: s.Name, MTU: s.Details.Mtu[0]})
			}
		})(op, emit)
	}
	return desc
}

// setMTU sets the MTU of IP packets; on a NIC it also sets the size of received frames, if the NIC supports it.
func (k *Descriptors) setMTU(op *scheduler.Op, ifName string, mtu uint32) {
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

// ifRxModesDescriptor sets modes when the link is up, in a separate wave. A pod may fill its ring before that, while VPP still polls the ring. If the
// mode were already "interrupt", VPP would drop the ring's only interrupt while the link is down, and never read the ring again.
func (k *Descriptors) ifRxModesDescriptor() scheduler.Descriptor[ifRxModes] {
	return scheduler.Descriptor[ifRxModes]{
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

// mode returns the desired mode of a queue; 0 if any mode is acceptable.
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

// after adds the request that resets queues which had their own mode before to VPP's default.
func (m ifRxModes) after(applied ifRxModes) ifRxModes {
	if m.All == 0 && (applied.All != 0 || len(applied.Queues) > 0) && !applied.Dumped {
		m.All = interface_types.RX_MODE_API_DEFAULT
	}
	return m
}

// requests returns the requests: first for all queues, then for those that differ.
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

// setRxModes sets the modes. The queues of a memif appear when its peer connects, in VPP's default mode: the index keeps the desired modes until
// then (RxModeRequests), and a missing queue is not an error.
func (k *Descriptors) setRxModes(op *scheduler.Op, v ifRxModes) {
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

// dumpRxModes emits the modes of interfaces that have queues. For a desired interface without queues (yet), it emits the desired modes as if
// they were set.
func (k *Descriptors) dumpRxModes(op *scheduler.DumpOp, emit func(string, ifRxModes)) {
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

func (k *Descriptors) ifPlacementDescriptor() scheduler.Descriptor[ifPlacement] {
	desc := kit.Item[ifPlacement](kindIfPlacement, scheduler.RankIfSetting)
	desc.Parent = func(_ string, v ifPlacement) string { return nb.VppInterfaceKey(v.If) }
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
	desc.Create = func(op *scheduler.Op, _ string, v ifPlacement) { set(op, v) }
	desc.Update = func(op *scheduler.Op, _ string, _, v ifPlacement) { set(op, v) }
	// VPP has no "any thread" placement: the queue stays on its thread.
	desc.Delete = func(op *scheduler.Op, _ string, _ ifPlacement) { op.Done(nil) }
	desc.Dump = func(op *scheduler.DumpOp, emit func(string, ifPlacement)) {
		wanted := map[string]bool{}
		op.EachDesired(func(key string, _ any) { wanted[key] = true })
		dumpItems(k, func(s *ifState, emit func(string, ifPlacement)) {
			for _, p := range s.placements() {
				if key := nb.RxPlacementKey(s.Name, p.Queue); wanted[key] { // every queue has a thread
					emit(key, ifPlacement{If: s.Name, Queue: p.Queue, Main: p.MainThread, Worker: p.Worker})
				}
			}
		})(op, emit)
	}
	return desc
}
