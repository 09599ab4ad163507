package l2

import (
	"fmt"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_l2 "contiv.dev/vswitch/dataplane/nb/vpp/l2"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

func (k *descriptors) xconnectDescriptor() scheduler.Descriptor[*vpp_l2.XConnectPair] {
	return scheduler.Descriptor[*vpp_l2.XConnectPair]{
		Name: "vpp-xconnect", Prefix: nb.XConnectPrefix, Rank: scheduler.RankMember,
		Validate: func(_ string, v *vpp_l2.XConnectPair) error {
			var f kit.Faults
			f.Name("receive_interface", v.ReceiveInterface)
			f.Name("transmit_interface", v.TransmitInterface)
			if v.ReceiveInterface == v.TransmitInterface && v.ReceiveInterface != "" {
				f.Add("transmit_interface", "is receive_interface, too")
			}
			return f.Err()
		},
		Equal: func(_ string, desired, applied *vpp_l2.XConnectPair) bool {
			return desired.TransmitInterface == applied.TransmitInterface
		},
		Deps: func(_ string, v *vpp_l2.XConnectPair, add func(string)) {
			add(nb.VppInterfaceKey(v.ReceiveInterface))
			add(nb.VppInterfaceKey(v.TransmitInterface))
		},
		Create: func(op *scheduler.Op, _ string, v *vpp_l2.XConnectPair) { k.xconnect(op, v) },
		Update: func(op *scheduler.Op, _ string, _, v *vpp_l2.XConnectPair) { k.xconnect(op, v) },
		Delete: func(op *scheduler.Op, _ string, v *vpp_l2.XConnectPair) {
			rx, ok := k.idx.IfIndex(v.ReceiveInterface)
			if !ok {
				kit.Gone(op)
				return
			}
			k.Do(op, xconnectObject("undo", v), &l2.SwInterfaceSetL2Xconnect{
				RxSwIfIndex: interface_types.InterfaceIndex(rx), TxSwIfIndex: interface_types.InterfaceIndex(kit.None),
			}, kit.IfGone...)
		},
		Dump: func(op *scheduler.DumpOp, emit func(string, *vpp_l2.XConnectPair)) { k.dumpXconnects(op, emit) },
	}
}

func xconnectObject(what string, v *vpp_l2.XConnectPair) kit.Object {
	return kit.Named(what, "cross-connect from interface "+v.ReceiveInterface+" to "+v.TransmitInterface)
}

func (k *descriptors) xconnect(op *scheduler.Op, v *vpp_l2.XConnectPair) {
	o := xconnectObject("make", v)
	rx, ok := k.idx.IfIndex(v.ReceiveInterface)
	if !ok {
		k.Missing(op, o, v.ReceiveInterface)
		return
	}
	tx, ok := k.idx.IfIndex(v.TransmitInterface)
	if !ok {
		k.Missing(op, o, v.TransmitInterface)
		return
	}
	k.Do(op, o, &l2.SwInterfaceSetL2Xconnect{
		RxSwIfIndex: interface_types.InterfaceIndex(rx), TxSwIfIndex: interface_types.InterfaceIndex(tx), Enable: true,
	})
}

func (k *descriptors) dumpXconnects(op *scheduler.DumpOp, emit func(string, *vpp_l2.XConnectPair)) {
	fail := func(err error) { op.Done(fmt.Errorf("vpp: dump cross-connects: %w", err)) }
	k.ifs.Snapshot(op, func(_ *iface.Snapshot, err error) {
		if err != nil {
			fail(err)
			return
		}
		conn.Dump(k.Lane, &l2.L2XconnectDump{}, func(d *l2.L2XconnectDetails) {
			rx, ours := k.idx.NameByIndex(uint32(d.RxSwIfIndex))
			tx, known := k.idx.NameByIndex(uint32(d.TxSwIfIndex))
			if ours && known {
				emit(nb.XConnectKey(rx), &vpp_l2.XConnectPair{ReceiveInterface: rx, TransmitInterface: tx})
			}
		}, func(err error) {
			if err != nil {
				fail(err)
				return
			}
			op.Done(nil)
		})
	})
}
