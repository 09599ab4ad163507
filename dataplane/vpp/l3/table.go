package l3

import (
	"fmt"
	"maps"
	"strconv"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// tableID identifies a table: VPP numbers the tables of each address family separately.
type tableID struct {
	id uint32
	v6 bool
}

func tableOf(v *vpp_l3.VrfTable) tableID {
	return tableID{v.Id, v.Protocol == vpp_l3.VrfTable_IPV6}
}

func (t tableID) protocol() vpp_l3.VrfTable_Protocol {
	if t.v6 {
		return vpp_l3.VrfTable_IPV6
	}
	return vpp_l3.VrfTable_IPV4
}

func tableObject(what string, v *vpp_l3.VrfTable) kit.Object {
	return kit.Named(what, v.Protocol.String()+" table "+strconv.FormatUint(uint64(v.Id), 10))
}

// tableDescriptor returns the descriptor of tables. The name of a table contains its label. Table 0 is VPP's own: it is neither created nor deleted,
// only its flow hash is set. VPP does not report the flow hash; a dump assumes the desired one.
//
// Adding a table creates it and holds it. VPP deletes a table that only NAT holds with the last backend in it, and all routes in the
// table with it (scenario nat_table of vppfake's contract). VPP does not report the holders of a table, so a table that we may not hold
// has another label in a dump, and is added again: see holds.
func (k *descriptors) tableDescriptor() scheduler.Descriptor[*vpp_l3.VrfTable] {
	return scheduler.Descriptor[*vpp_l3.VrfTable]{
		Name: "vpp-table", Prefix: nb.VrfTablePrefix, Rank: scheduler.RankTable,
		Validate: k.validateTable,
		Equal: func(_ string, desired, applied *vpp_l3.VrfTable) bool {
			return (desired.Id == 0 || desired.Label == applied.Label) &&
				proto.Equal(desired.FlowHashSettings, applied.FlowHashSettings)
		},
		Create: func(op *scheduler.Op, _ string, v *vpp_l3.VrfTable) { k.createTable(op, v) },
		Update: func(op *scheduler.Op, _ string, applied, v *vpp_l3.VrfTable) {
			if applied.Label == notHeld {
				k.createTable(op, v)
				return
			}
			k.Do(op, tableObject("set flow_hash_settings of", v), flowHashRequest(v))
		},
		// VPP cannot rename a table.
		CanUpdate: func(_ string, applied, desired *vpp_l3.VrfTable) bool {
			return desired.Id == 0 || desired.Label == applied.Label || applied.Label == notHeld
		},
		Delete: func(op *scheduler.Op, _ string, v *vpp_l3.VrfTable) {
			if v.Id != 0 {
				k.held[tableOf(v)] = false
				k.Do(op, tableObject("delete", v), tableRequest(v, false))
				return
			}
			if v.FlowHashSettings == nil {
				kit.Gone(op)
				return
			}
			k.Do(op, tableObject("reset flow_hash_settings of", v), flowHashRequest(&vpp_l3.VrfTable{Protocol: v.Protocol}))
		},
		Dump: k.dumpTables,
	}
}

func (k *descriptors) validateTable(_ string, v *vpp_l3.VrfTable) error {
	var f kit.Faults
	k.Names.Add(v.Label)
	if v.Protocol != vpp_l3.VrfTable_IPV4 && v.Protocol != vpp_l3.VrfTable_IPV6 {
		f.Add("protocol", "%d is neither IPV4 nor IPV6", v.Protocol)
	}
	if v.Id == kit.None {
		f.Add("id", "%d means none to VPP", v.Id)
	}
	return f.Err()
}

func tableRequest(v *vpp_l3.VrfTable, add bool) *ip.IPTableAddDelV2 {
	return &ip.IPTableAddDelV2{
		IsAdd: add, CreateMfib: true,
		Table: ip.IPTable{TableID: v.Id, IsIP6: v.Protocol == vpp_l3.VrfTable_IPV6, Name: kit.TagOf(v.Label)},
	}
}

func (k *descriptors) createTable(op *scheduler.Op, v *vpp_l3.VrfTable) {
	var reqs []api.Message
	if v.Id != 0 {
		reqs = append(reqs, tableRequest(v, true))
	}
	if v.FlowHashSettings != nil {
		reqs = append(reqs, flowHashRequest(v))
	}
	if len(reqs) == 0 {
		op.Done(nil)
		return
	}
	done := kit.Join(len(reqs), func(err error) {
		if err == nil {
			k.held[tableOf(v)] = true
		}
		op.Done(err)
	})
	for _, req := range reqs {
		k.Send(tableObject("create", v), req, done)
	}
}

// defaultFlowHash is VPP's default: source, destination, ports, protocol, flow label.
const defaultFlowHash = ip.IP_API_V2_FLOW_HASH_SRC_IP | ip.IP_API_V2_FLOW_HASH_DST_IP | ip.IP_API_V2_FLOW_HASH_SRC_PORT |
	ip.IP_API_V2_FLOW_HASH_DST_PORT | ip.IP_API_V2_FLOW_HASH_PROTO | ip.IP_API_V2_FLOW_HASH_FLOW_LABEL

func flowHashRequest(v *vpp_l3.VrfTable) *ip.SetIPFlowHashV3 {
	req := &ip.SetIPFlowHashV3{
		TableID: v.Id, Af: kit.Family(v.Protocol == vpp_l3.VrfTable_IPV6), FlowHashConfig: defaultFlowHash,
	}
	h := v.FlowHashSettings
	if h == nil {
		return req
	}
	req.FlowHashConfig = 0
	for _, bit := range []struct {
		on   bool
		flag ip.IPFlowHashConfigV2
	}{
		{h.UseSrcIp, ip.IP_API_V2_FLOW_HASH_SRC_IP}, {h.UseDstIp, ip.IP_API_V2_FLOW_HASH_DST_IP},
		{h.UseSrcPort, ip.IP_API_V2_FLOW_HASH_SRC_PORT}, {h.UseDstPort, ip.IP_API_V2_FLOW_HASH_DST_PORT},
		{h.UseProtocol, ip.IP_API_V2_FLOW_HASH_PROTO}, {h.Reverse, ip.IP_API_V2_FLOW_HASH_REVERSE},
		{h.Symmetric, ip.IP_API_V2_FLOW_HASH_SYMETRIC},
	} {
		if bit.on {
			req.FlowHashConfig |= bit.flag
		}
	}
	return req
}

// notHeld is the label of a table that we may not hold. None of our names has a space.
const notHeld = "not held"

// holds reports whether we hold a table that VPP has. If this agent has added or deleted the table in this VPP, that decides. Otherwise
// a table with our mark was made by us and so is held, and one without it was made by another program: by NAT, for a backend that was
// added first, or manually.
func (k *descriptors) holds(t tableID, ours bool) bool {
	if held, known := k.held[t]; known {
		return held
	}
	return ours || t.id == 0
}

// dumpTables emits the tables that have our mark, and desired tables that lack it: VPP cannot rename them.
func (k *descriptors) dumpTables(op *scheduler.DumpOp, emit func(string, *vpp_l3.VrfTable)) {
	wanted := map[tableID]*vpp_l3.VrfTable{}
	op.EachDesired(func(_ string, v any) { t := v.(*vpp_l3.VrfTable); wanted[tableOf(t)] = t })
	there := map[tableID]bool{}
	conn.Dump(k.Lane, &ip.IPTableDump{}, func(d *ip.IPTableDetails) {
		t := tableID{d.Table.TableID, d.Table.IsIP6}
		there[t] = true
		label, ours := kit.NameOfTag(d.Table.Name)
		want := wanted[t]
		if !ours && want == nil {
			return
		}
		v := &vpp_l3.VrfTable{Id: t.id, Protocol: t.protocol(), Label: k.Names.Full(label)}
		if want != nil {
			v.FlowHashSettings = want.FlowHashSettings
			if !ours {
				v.Label = want.Label
			}
		}
		if !k.holds(t, ours) {
			k.Log.Info("VPP has a table that the agent does not hold; if the table is desired, the agent holds it and keeps its name",
				"table", t.id, "protocol", t.protocol(), "name", d.Table.Name)
			v.Label = notHeld
		}
		emit(nb.VrfTableKey(t.id, t.protocol()), v)
	}, func(err error) {
		if err != nil {
			op.Done(fmt.Errorf("vpp: dump tables: %w", err))
			return
		}
		maps.DeleteFunc(k.held, func(t tableID, _ bool) bool { return !there[t] })
		op.Done(nil)
	})
}
