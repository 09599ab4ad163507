package contiv

import (
	"fmt"
	"net/netip"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// contivIPSetDescriptor returns the descriptor of sets that rules refer to. The kind of a set never changes, since its ID
// is a hash of its meaning.
func (k *descriptors) contivIPSetDescriptor() scheduler.Descriptor[*vpp_contiv.IPSet] {
	set := func(op *scheduler.Op, what string, v *vpp_contiv.IPSet, add bool) {
		k.Do(op, kit.Named(what+" set", v.Name), &contiv.ContivSetAddDel{
			IsAdd: add, ID: v.Id, Name: contivName(v.Name), Kind: contiv.ContivSetKind(v.Kind),
		}, fineToDelete(add)...)
	}
	return scheduler.Descriptor[*vpp_contiv.IPSet]{
		Name: "vpp-contiv-ip-set", Prefix: nb.ContivIPSetPrefix, Rank: rankContiv,
		DeleteLast: true, // policies use a set until they are changed
		Validate: func(_ string, v *vpp_contiv.IPSet) error {
			var f kit.Faults
			if v.Id == 0 {
				f.Add("id", "is 0, which stands for none")
			}
			if v.Kind != vpp_contiv.IPSet_NETWORKS && v.Kind != vpp_contiv.IPSet_PORTS {
				f.Add("kind", "%d is not known", v.Kind)
			}
			return f.Err()
		},
		Equal: func(_ string, desired, applied *vpp_contiv.IPSet) bool {
			return desired.Kind == applied.Kind && contivName(desired.Name) == contivName(applied.Name)
		},
		Create:    func(op *scheduler.Op, _ string, v *vpp_contiv.IPSet) { set(op, "add", v, true) },
		Update:    func(op *scheduler.Op, _ string, _, v *vpp_contiv.IPSet) { set(op, "change", v, true) },
		CanUpdate: func(_ string, applied, desired *vpp_contiv.IPSet) bool { return applied.Kind == desired.Kind },
		Delete:    func(op *scheduler.Op, _ string, v *vpp_contiv.IPSet) { set(op, "delete", v, false) },
		Dump: func(op *scheduler.DumpOp, emit func(string, *vpp_contiv.IPSet)) {
			dumpContiv(k, op, "sets", &contiv.ContivSetDump{}, func(d *contiv.ContivSetDetails) {
				emit(nb.ContivIPSetKey(d.ID), &vpp_contiv.IPSet{Id: d.ID, Name: d.Name, Kind: vpp_contiv.IPSet_Kind(d.Kind)})
			})
		},
	}
}

// contivIPSetMemberDescriptor returns the descriptor of members of a set, which the plugin deletes with the set.
func (k *descriptors) contivIPSetMemberDescriptor() scheduler.Descriptor[*vpp_contiv.IPSetMember] {
	set := func(op *scheduler.Op, what string, v *vpp_contiv.IPSetMember, add bool) {
		k.Do(op, kit.Named(what+" member "+v.Prefix+" of", fmt.Sprintf("set %x", v.Set)), &contiv.ContivSetMemberAddDel{
			IsAdd: add, SetID: v.Set, Prefix: kit.ToPrefix(network(v.Prefix)), Protocol: uint8(v.Protocol), Port: uint16(v.Port),
		}, fineToDelete(add)...)
	}
	return scheduler.Descriptor[*vpp_contiv.IPSetMember]{
		Name: "vpp-contiv-ip-set-member", Prefix: nb.ContivIPSetMemberPrefix, Rank: rankContiv + 1,
		// A pod that moves from one set to another is always in one of them. The price: if an agent ends within the transaction that deletes a set,
		// and the next one uses the set again, members that have left meanwhile count until the end of the first resync.
		DeleteLast: true,
		Validate:   func(_ string, v *vpp_contiv.IPSetMember) error { return validateMember(v) },
		// The key contains all fields.
		Equal:  func(string, *vpp_contiv.IPSetMember, *vpp_contiv.IPSetMember) bool { return true },
		Deps:   func(_ string, v *vpp_contiv.IPSetMember, add func(string)) { add(nb.ContivIPSetKey(v.Set)) },
		Create: func(op *scheduler.Op, _ string, v *vpp_contiv.IPSetMember) { set(op, "add", v, true) },
		Delete: func(op *scheduler.Op, _ string, v *vpp_contiv.IPSetMember) { set(op, "delete", v, false) },
		Dump: func(op *scheduler.DumpOp, emit func(string, *vpp_contiv.IPSetMember)) {
			dumpContiv(k, op, "members of sets", &contiv.ContivSetMemberDump{}, func(d *contiv.ContivSetMemberDetails) {
				v := &vpp_contiv.IPSetMember{
					Set: d.SetID, Prefix: kit.FromPrefix(d.Prefix).String(), Protocol: uint32(d.Protocol), Port: uint32(d.Port),
				}
				emit(nb.ContivIPSetMemberKey(v.Set, v.Prefix, v.Protocol, v.Port), v)
			})
		},
	}
}

func validateMember(v *vpp_contiv.IPSetMember) error {
	var f kit.Faults
	if v.Set == 0 {
		f.Add("set", "is 0, which stands for none")
	}
	networkFaults(&f, "prefix", v.Prefix)
	if v.Protocol > 255 {
		f.Add("protocol", "%d is not a protocol", v.Protocol)
	}
	if v.Port > 65535 {
		f.Add("port", "%d is not a port", v.Port)
	}
	if (v.Protocol == 0) != (v.Port == 0) {
		f.Add("port", "%d goes with protocol %d", v.Port, v.Protocol)
	}
	if p, err := netip.ParsePrefix(v.Prefix); err == nil && v.Port != 0 && !p.IsSingleIP() {
		f.Add("prefix", "%s is not one address, and the member has a port", v.Prefix)
	}
	return f.Err()
}
