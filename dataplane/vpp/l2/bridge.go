package l2

import (
	"fmt"
	"strconv"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_l2 "contiv.dev/vswitch/dataplane/nb/vpp/l2"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// bridgeDescriptor returns the descriptor of bridge domains with their flags. Members and the table for ARP termination are items (members.go).
func (k *descriptors) bridgeDescriptor() scheduler.Descriptor[*vpp_l2.BridgeDomain] {
	return scheduler.Descriptor[*vpp_l2.BridgeDomain]{
		Name: "vpp-bridge-domain", Prefix: nb.BridgeDomainPrefix, Rank: scheduler.RankBridge,
		Validate: func(_ string, v *vpp_l2.BridgeDomain) error { return k.validateBridge(v) },
		Equal: func(_ string, desired, applied *vpp_l2.BridgeDomain) bool {
			return bridgeFlags(desired) == bridgeFlags(applied) && desired.MacAge == applied.MacAge
		},
		Create: func(op *scheduler.Op, _ string, v *vpp_l2.BridgeDomain) { k.createBridge(op, v, k.idx.FreeBD()) },
		Update: func(op *scheduler.Op, _ string, applied, desired *vpp_l2.BridgeDomain) {
			k.updateBridge(op, applied, desired)
		},
		Delete:     func(op *scheduler.Op, _ string, v *vpp_l2.BridgeDomain) { k.deleteBridge(op, v) },
		Derive:     deriveBridge,
		DeriveDiff: diffBridge,
		Dump:       k.dumpBridges,
	}
}

func (k *descriptors) validateBridge(v *vpp_l2.BridgeDomain) error {
	var f kit.Faults
	f.Name("name", v.Name)
	k.Names.Add(v.Name)
	if v.MacAge > 255 {
		f.Add("mac_age", "%d is more than 255 minutes", v.MacAge)
	}
	bvi := ""
	for i, m := range v.Interfaces {
		if m.GetName() == "" {
			f.Add("interfaces["+strconv.Itoa(i)+"].name", "is empty")
		}
		if m.GetSplitHorizonGroup() > 255 {
			f.Add("interfaces["+strconv.Itoa(i)+"].split_horizon_group", "%d is more than 255", m.GetSplitHorizonGroup())
		}
		if !m.GetBridgedVirtualInterface() {
			continue
		}
		if bvi != "" {
			f.Add("interfaces["+strconv.Itoa(i)+"].bridged_virtual_interface", "interface %s is already the BVI", bvi)
		}
		bvi = m.GetName()
	}
	for i, e := range v.ArpTerminationTable {
		field := "arp_termination_table[" + strconv.Itoa(i) + "]"
		if !kit.Addr(e.GetIpAddress()).IsValid() {
			f.Add(field+".ip_address", "%q is not an address", e.GetIpAddress())
		}
		if _, err := kit.ParseMAC(e.GetPhysAddress()); err != nil {
			f.Add(field+".phys_address", "%v", err)
		}
	}
	return f.Err()
}

func bridgeFlags(v *vpp_l2.BridgeDomain) l2.BdFlags {
	var flags l2.BdFlags
	for _, bit := range []struct {
		on   bool
		flag l2.BdFlags
	}{
		{v.Learn, l2.BRIDGE_API_FLAG_LEARN}, {v.Forward, l2.BRIDGE_API_FLAG_FWD}, {v.Flood, l2.BRIDGE_API_FLAG_FLOOD},
		{v.UnknownUnicastFlood, l2.BRIDGE_API_FLAG_UU_FLOOD}, {v.ArpTermination, l2.BRIDGE_API_FLAG_ARP_TERM},
	} {
		if bit.on {
			flags |= bit.flag
		}
	}
	return flags
}

func bridgeObject(what, name string) kit.Object { return kit.Named(what, "bridge domain "+name) }

// createBridge uses the lowest number that the index has free, so that numbers stay small and mostly the same. If another program has a
// bridge domain of this number, VPP chooses the number.
func (k *descriptors) createBridge(op *scheduler.Op, v *vpp_l2.BridgeDomain, id uint32) {
	if id != kit.None {
		k.idx.AddBD(v.Name, id) // reserved for the next request
	}
	req := &l2.BridgeDomainAddDelV2{
		BdID: id, IsAdd: true, Flood: v.Flood, UuFlood: v.UnknownUnicastFlood, Forward: v.Forward, Learn: v.Learn,
		ArpTerm: v.ArpTermination, MacAge: uint8(v.MacAge), BdTag: kit.TagOf(v.Name),
	}
	conn.Call(k.Lane, req, func(r *l2.BridgeDomainAddDelV2Reply, err error) {
		switch {
		case id != kit.None && conn.IsRetval(err, api.BD_ALREADY_EXISTS):
			k.idx.RemoveBD(v.Name)
			k.createBridge(op, v, kit.None)
			return
		case err == nil:
			k.idx.AddBD(v.Name, r.BdID)
		default:
			k.idx.RemoveBD(v.Name)
		}
		op.Done(bridgeObject("create", v.Name).Wrap(err))
	})
}

func (k *descriptors) updateBridge(op *scheduler.Op, applied, desired *vpp_l2.BridgeDomain) {
	o := bridgeObject("change", desired.Name)
	id, ok := k.idx.BridgeDomain(desired.Name)
	if !ok {
		op.Done(o.Wrap(errNoBridge))
		return
	}
	was, want := bridgeFlags(applied), bridgeFlags(desired)
	var reqs []api.Message
	if on := want &^ was; on != 0 {
		reqs = append(reqs, &l2.BridgeFlags{BdID: id, IsSet: true, Flags: on})
	}
	if off := was &^ want; off != 0 {
		reqs = append(reqs, &l2.BridgeFlags{BdID: id, Flags: off})
	}
	if desired.MacAge != applied.MacAge {
		reqs = append(reqs, &l2.BridgeDomainSetMacAge{BdID: id, MacAge: uint8(desired.MacAge)})
	}
	if len(reqs) == 0 {
		op.Done(nil)
		return
	}
	done := kit.Join(len(reqs), op.Done)
	for _, req := range reqs {
		k.Send(o, req, done)
	}
}

var errNoBridge = &missingBridgeError{}

type missingBridgeError struct{}

func (*missingBridgeError) Error() string { return "it is not in VPP" }

// Retriable returns true: a resync creates it again.
func (*missingBridgeError) Retriable() bool { return true }

func (k *descriptors) deleteBridge(op *scheduler.Op, v *vpp_l2.BridgeDomain) {
	id, ok := k.idx.BridgeDomain(v.Name)
	if !ok {
		kit.Gone(op)
		return
	}
	o := bridgeObject("delete", v.Name)
	k.Send(o, &l2.BridgeDomainAddDelV2{BdID: id}, func(err error) {
		if err == nil {
			k.idx.RemoveBD(v.Name)
		}
		op.Done(err)
	}, api.NO_SUCH_ENTRY)
}

// eachBridge finds the bridge domains that have our tag, and updates the index.
func (k *descriptors) eachBridge(done func([]*l2.BridgeDomainDetails, error)) {
	ids := map[string]uint32{}
	var found []*l2.BridgeDomainDetails
	req := &l2.BridgeDomainDump{BdID: kit.None, SwIfIndex: interface_types.InterfaceIndex(kit.None)}
	conn.Dump(k.Lane, req, func(d *l2.BridgeDomainDetails) {
		short, ours := kit.NameOfTag(d.BdTag)
		if !ours {
			return
		}
		d.BdTag = k.Names.Full(short)
		ids[d.BdTag] = d.BdID
		found = append(found, d)
	}, func(err error) {
		if err != nil {
			done(nil, fmt.Errorf("vpp: dump bridge domains: %w", err))
			return
		}
		k.idx.ReplaceBDs(ids)
		done(found, nil)
	})
}

func (k *descriptors) dumpBridges(op *scheduler.DumpOp, emit func(string, *vpp_l2.BridgeDomain)) {
	k.eachBridge(func(found []*l2.BridgeDomainDetails, err error) {
		for _, d := range found {
			emit(nb.BridgeDomainKey(d.BdTag), &vpp_l2.BridgeDomain{
				Name: d.BdTag, Flood: d.Flood, UnknownUnicastFlood: d.UuFlood, Forward: d.Forward, Learn: d.Learn,
				ArpTermination: d.ArpTerm, MacAge: uint32(d.MacAge),
			})
		}
		op.Done(err)
	})
}
