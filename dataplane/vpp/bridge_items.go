package vpp

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
	return bridgeARP{BD: bd, IP: addr(e.GetIpAddress()), MAC: mac(e.GetPhysAddress())}
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

// diffBridge compares the lists of two versions. The messages that they share cost only a look at their addresses.
func diffBridge(_ string, from, to *vpp_l2.BridgeDomain, put func(kind, key string, item any), del func(key string)) {
	diffList(from.Interfaces, to.Interfaces,
		func(m *vpp_l2.BridgeDomain_Interface) bridgeMember { return memberOf(to.Name, m) },
		func(item bridgeMember) { put(kindMember, item.key(), item) }, del)
	diffList(from.ArpTerminationTable, to.ArpTerminationTable,
		func(e *vpp_l2.BridgeDomain_ArpTerminationEntry) bridgeARP { return arpOf(to.Name, e) },
		func(item bridgeARP) { put(kindBridgeARP, item.key(), item) }, del)
}

type keyed interface {
	comparable
	key() string
}

// diffList puts the items that are new or different and deletes those that are gone. What the lists have in common at both
// ends is skipped, so the usual change costs as much as it changes.
func diffList[M comparable, I keyed](from, to []M, item func(M) I, put func(I), del func(key string)) {
	same := func(a, b M) bool { return a == b || item(a) == item(b) }
	for len(from) > 0 && len(to) > 0 && same(from[0], to[0]) {
		from, to = from[1:], to[1:]
	}
	for len(from) > 0 && len(to) > 0 && same(from[len(from)-1], to[len(to)-1]) {
		from, to = from[:len(from)-1], to[:len(to)-1]
	}
	old := make(map[string]I, len(from))
	for _, m := range from {
		i := item(m)
		old[i.key()] = i
	}
	for _, m := range to {
		i := item(m)
		key := i.key()
		if was, ok := old[key]; !ok || was != i {
			put(i)
		}
		delete(old, key)
	}
	for key := range old {
		del(key)
	}
}

func (k *kinds) memberKind() scheduler.Kind[bridgeMember] {
	kind := item[bridgeMember](kindMember, scheduler.RankMember)
	kind.ImpliedByParent = false // VPP does not delete a bridge domain that has members
	kind.Parent = func(_ string, v bridgeMember) string { return nb.BridgeDomainKey(v.BD) }
	kind.Deps = func(_ string, v bridgeMember, add func(string)) { add(nb.VppInterfaceKey(v.If)) }
	kind.Create = func(op *scheduler.Op, _ string, v bridgeMember) { k.joinBridge(op, v) }
	kind.Delete = func(op *scheduler.Op, _ string, v bridgeMember) { k.leaveBridge(op, v) }
	kind.Dump = func(op *scheduler.DumpOp, emit func(string, bridgeMember)) {
		k.snapshot(op, func(_ *ifSnapshot, err error) {
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
	return kind
}

func (k *kinds) emitMembers(d *l2.BridgeDomainDetails, emit func(string, bridgeMember)) {
	for _, m := range d.SwIfDetails {
		if name, ours := k.idx.NameByIndex(uint32(m.SwIfIndex)); ours {
			v := bridgeMember{BD: d.BdTag, If: name, BVI: m.SwIfIndex == d.BviSwIfIndex, SHG: m.Shg}
			emit(v.key(), v)
		}
	}
}

func memberObject(what string, v bridgeMember) object {
	return object{what + " bridge domain " + v.BD, "interface " + v.If}
}

func (k *kinds) joinBridge(op *scheduler.Op, v bridgeMember) {
	o := memberObject("add to", v)
	index, ok := k.idx.IfIndex(v.If)
	if !ok {
		k.missing(op, o, v.If)
		return
	}
	bd, ok := k.idx.BridgeDomain(v.BD)
	if !ok {
		op.Done(o.wrap(errNoBridge))
		return
	}
	req := &l2.SwInterfaceSetL2Bridge{
		RxSwIfIndex: interface_types.InterfaceIndex(index), BdID: bd, Enable: true, Shg: v.SHG,
		PortType: l2.L2_API_PORT_TYPE_NORMAL,
	}
	if v.BVI {
		req.PortType = l2.L2_API_PORT_TYPE_BVI
	}
	k.do(op, o, req)
}

// leaveBridge makes the interface a layer-3 one again. With that VPP forgets its VLAN tag rewriting.
func (k *kinds) leaveBridge(op *scheduler.Op, v bridgeMember) {
	o := memberObject("remove from", v)
	e := k.idx.entry(v.If)
	bd, ok := k.idx.BridgeDomain(v.BD)
	if e == nil || !ok {
		gone(op)
		return
	}
	req := &l2.SwInterfaceSetL2Bridge{RxSwIfIndex: interface_types.InterfaceIndex(e.index), BdID: bd}
	if e.rewrite == nil {
		k.do(op, o, req, ifGone...)
		return
	}
	both := join(2, op.Done)
	k.send(o, req, both, ifGone...)
	k.send(o, e.rewrite, both, ifGone...)
}

func (k *kinds) bridgeARPKind() scheduler.Kind[bridgeARP] {
	kind := item[bridgeARP](kindBridgeARP, scheduler.RankMember)
	kind.Parent = func(_ string, v bridgeARP) string { return nb.BridgeDomainKey(v.BD) }
	put := func(op *scheduler.Op, v bridgeARP, add bool) {
		o := object{"set ARP termination of " + v.IP.String() + " in", "bridge domain " + v.BD}
		bd, ok := k.idx.BridgeDomain(v.BD)
		switch {
		case !ok && add:
			op.Done(o.wrap(errNoBridge))
			return
		case !ok:
			gone(op)
			return
		}
		req := &l2.BdIPMacAddDel{IsAdd: add, Entry: l2.BdIPMac{BdID: bd, IP: toAddress(v.IP), Mac: v.MAC}}
		if add {
			k.do(op, o, req)
			return
		}
		k.do(op, o, req, api.UNSPECIFIED, api.NO_SUCH_ENTRY) // UNSPECIFIED: there is none
	}
	kind.Create = func(op *scheduler.Op, _ string, v bridgeARP) { put(op, v, true) }
	kind.Update = func(op *scheduler.Op, _ string, _, v bridgeARP) { put(op, v, true) }
	kind.Delete = func(op *scheduler.Op, _ string, v bridgeARP) { put(op, v, false) }
	kind.Dump = func(op *scheduler.DumpOp, emit func(string, bridgeARP)) {
		wanted := false
		op.EachDesired(func(string, any) { wanted = true })
		k.eachBridge(func(found []*l2.BridgeDomainDetails, err error) {
			wanted = wanted || slices.ContainsFunc(found, func(d *l2.BridgeDomainDetails) bool { return d.ArpTerm })
			if err != nil || !wanted {
				op.Done(err)
				return
			}
			conn.Dump(k.lane, &l2.BdIPMacDump{BdID: none}, func(d *l2.BdIPMacDetails) {
				if name, ours := k.idx.bdNameOf(d.Entry.BdID); ours {
					v := bridgeARP{BD: name, IP: fromAddress(d.Entry.IP), MAC: d.Entry.Mac}
					emit(v.key(), v)
				}
			}, func(err error) { op.Done(object{"dump", "ARP termination"}.wrap(err)) })
		})
	}
	return kind
}
