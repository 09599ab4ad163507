package l2

import (
	"net/netip"
	"slices"

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

type (
	bridgeMember struct {
		BD, If string
		BVI    bool
		SHG    uint8
	}
	bridgeARP struct {
		BD  string
		IP  netip.Addr
		MAC ethernet_types.MacAddress
	}
)

const (
	kindMember    = "vpp-bridge-member"
	kindBridgeARP = "vpp-bridge-arp-termination"
)

func memberOf(bd string, m *vpp_l2.BridgeDomain_Interface) bridgeMember {
	return bridgeMember{BD: bd, If: m.GetName(), BVI: m.GetBridgedVirtualInterface(), SHG: uint8(m.GetSplitHorizonGroup())}
}

func arpOf(bd string, e *vpp_l2.BridgeDomain_ArpTerminationEntry) bridgeARP {
	return bridgeARP{BD: bd, IP: kit.Addr(e.GetIpAddress()), MAC: kit.MAC(e.GetPhysAddress())}
}

func (b bridgeMember) key() string { return nb.BDInterfaceKey(b.BD, b.If) }
func (b bridgeARP) key() string    { return nb.BDPrefix + b.BD + "/arp/" + b.IP.String() }

func deriveBridge(_ string, v *vpp_l2.BridgeDomain, put func(kind, key string, item any)) {
	for _, m := range v.Interfaces {
		item := memberOf(v.Name, m)
		put(kindMember, item.key(), item)
	}
	for _, e := range v.ArpTerminationTable {
		item := arpOf(v.Name, e)
		put(kindBridgeARP, item.key(), item)
	}
}

// diffBridge compares the lists of two versions. For messages that both versions share, only the pointers are
// compared.
func diffBridge(_ string, from, to *vpp_l2.BridgeDomain, put func(kind, key string, item any), del func(key string)) {
	kit.DiffList(from.Interfaces, to.Interfaces,
		func(m *vpp_l2.BridgeDomain_Interface) bridgeMember { return memberOf(to.Name, m) }, bridgeMember.key,
		func(item bridgeMember) { put(kindMember, item.key(), item) }, del)
	kit.DiffList(from.ArpTerminationTable, to.ArpTerminationTable,
		func(e *vpp_l2.BridgeDomain_ArpTerminationEntry) bridgeARP { return arpOf(to.Name, e) }, bridgeARP.key,
		func(item bridgeARP) { put(kindBridgeARP, item.key(), item) }, del)
}

func (k *descriptors) memberDescriptor() scheduler.Descriptor[bridgeMember] {
	desc := kit.Item[bridgeMember](kindMember, scheduler.RankMember)
	desc.ImpliedByParent = false // VPP does not delete a bridge domain that has members
	desc.Parent = func(_ string, v bridgeMember) string { return nb.BridgeDomainKey(v.BD) }
	desc.Deps = func(_ string, v bridgeMember, add func(string)) { add(nb.VppInterfaceKey(v.If)) }
	desc.Create = func(op *scheduler.Op, _ string, v bridgeMember) { k.joinBridge(op, v) }
	desc.Delete = func(op *scheduler.Op, _ string, v bridgeMember) { k.leaveBridge(op, v) }
	desc.Dump = func(op *scheduler.DumpOp, emit func(string, bridgeMember)) {
		k.ifs.Snapshot(op, func(_ *iface.Snapshot, err error) {
			if err != nil {
				op.Done(err)
				return
			}
			k.eachBridge(func(found []*l2.BridgeDomainDetails, err error) {
				for _, d := range found {
					k.emitMembers(d, emit)
				}
				op.Done(err)
			})
		})
	}
	return desc
}

func (k *descriptors) emitMembers(d *l2.BridgeDomainDetails, emit func(string, bridgeMember)) {
	for _, m := range d.SwIfDetails {
		if name, ours := k.idx.NameByIndex(uint32(m.SwIfIndex)); ours {
			v := bridgeMember{BD: d.BdTag, If: name, BVI: m.SwIfIndex == d.BviSwIfIndex, SHG: m.Shg}
			emit(v.key(), v)
		}
	}
}

func memberObject(what string, v bridgeMember) kit.Object {
	return kit.Named(what+" bridge domain "+v.BD, "interface "+v.If)
}

func (k *descriptors) joinBridge(op *scheduler.Op, v bridgeMember) {
	o := memberObject("add to", v)
	index, ok := k.idx.IfIndex(v.If)
	if !ok {
		k.Missing(op, o, v.If)
		return
	}
	bd, ok := k.idx.BridgeDomain(v.BD)
	if !ok {
		op.Done(o.Wrap(errNoBridge))
		return
	}
	req := &l2.SwInterfaceSetL2Bridge{
		RxSwIfIndex: interface_types.InterfaceIndex(index), BdID: bd, Enable: true, Shg: v.SHG,
		PortType: l2.L2_API_PORT_TYPE_NORMAL,
	}
	if v.BVI {
		req.PortType = l2.L2_API_PORT_TYPE_BVI
	}
	k.Do(op, o, req)
}

// leaveBridge makes the interface a layer-3 interface again. VPP then drops its VLAN tag rewriting, which is set
// again.
func (k *descriptors) leaveBridge(op *scheduler.Op, v bridgeMember) {
	o := memberObject("remove from", v)
	e := k.idx.Entry(v.If)
	bd, ok := k.idx.BridgeDomain(v.BD)
	if e == nil || !ok {
		kit.Gone(op)
		return
	}
	req := &l2.SwInterfaceSetL2Bridge{RxSwIfIndex: interface_types.InterfaceIndex(e.Index), BdID: bd}
	if e.Rewrite == nil {
		k.Do(op, o, req, kit.IfGone...)
		return
	}
	both := kit.Join(2, op.Done)
	k.Send(o, req, both, kit.IfGone...)
	k.Send(o, e.Rewrite, both, kit.IfGone...)
}

func (k *descriptors) bridgeARPDescriptor() scheduler.Descriptor[bridgeARP] {
	desc := kit.Item[bridgeARP](kindBridgeARP, scheduler.RankMember)
	desc.Parent = func(_ string, v bridgeARP) string { return nb.BridgeDomainKey(v.BD) }
	put := func(op *scheduler.Op, v bridgeARP, add bool) {
		o := kit.Named("set ARP termination of "+v.IP.String()+" in", "bridge domain "+v.BD)
		bd, ok := k.idx.BridgeDomain(v.BD)
		switch {
		case !ok && add:
			op.Done(o.Wrap(errNoBridge))
			return
		case !ok:
			kit.Gone(op)
			return
		}
		req := &l2.BdIPMacAddDel{IsAdd: add, Entry: l2.BdIPMac{BdID: bd, IP: kit.ToAddress(v.IP), Mac: v.MAC}}
		if add {
			k.Do(op, o, req)
			return
		}
		k.Do(op, o, req, api.UNSPECIFIED, api.NO_SUCH_ENTRY) // UNSPECIFIED: there is no entry
	}
	desc.Create = func(op *scheduler.Op, _ string, v bridgeARP) { put(op, v, true) }
	desc.Update = func(op *scheduler.Op, _ string, _, v bridgeARP) { put(op, v, true) }
	desc.Delete = func(op *scheduler.Op, _ string, v bridgeARP) { put(op, v, false) }
	desc.Dump = func(op *scheduler.DumpOp, emit func(string, bridgeARP)) {
		wanted := false
		op.EachDesired(func(string, any) { wanted = true })
		k.eachBridge(func(found []*l2.BridgeDomainDetails, err error) {
			wanted = wanted || slices.ContainsFunc(found, func(d *l2.BridgeDomainDetails) bool { return d.ArpTerm })
			if err != nil || !wanted {
				op.Done(err)
				return
			}
			conn.Dump(k.Lane, &l2.BdIPMacDump{BdID: kit.None}, func(d *l2.BdIPMacDetails) {
				if name, ours := k.idx.BdNameOf(d.Entry.BdID); ours {
					v := bridgeARP{BD: name, IP: kit.FromAddress(d.Entry.IP), MAC: d.Entry.Mac}
					emit(v.key(), v)
				}
			}, func(err error) { op.Done(kit.Named("dump", "ARP termination").Wrap(err)) })
		})
	}
	return desc
}
