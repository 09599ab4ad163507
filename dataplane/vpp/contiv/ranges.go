package contiv

import (
	"net/netip"
	"strconv"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// contivRange is an item of a range set: the plugin stores prefixes, and the set is their common ID.
type contivRange struct {
	Set    uint64
	Prefix netip.Prefix
}

const kindContivRange = "vpp-contiv-range"

func (r contivRange) key() string {
	return nb.ContivRangeSetKey(r.Set) + "/prefix/" + r.Prefix.String()
}

// contivRangeSetDescriptor returns a descriptor without requests.
func (k *descriptors) contivRangeSetDescriptor() scheduler.Descriptor[*vpp_contiv.RangeSet] {
	itemOf := func(v *vpp_contiv.RangeSet) func(string) contivRange {
		return func(prefix string) contivRange { return contivRange{v.Id, network(prefix)} }
	}
	return scheduler.Descriptor[*vpp_contiv.RangeSet]{
		Name: "vpp-contiv-range-set", Prefix: nb.ContivRangeSetPrefix, Rank: rankContiv, DeleteLast: true,
		Validate: func(_ string, v *vpp_contiv.RangeSet) error {
			var f kit.Faults
			if v.Id == 0 {
				f.Add("id", "is 0, which stands for none")
			}
			for i, p := range v.Prefixes {
				networkFaults(&f, "prefixes["+strconv.Itoa(i)+"]", p)
			}
			return f.Err()
		},
		Equal:  func(string, *vpp_contiv.RangeSet, *vpp_contiv.RangeSet) bool { return true },
		Create: func(op *scheduler.Op, _ string, _ *vpp_contiv.RangeSet) { op.Done(nil) },
		Delete: func(op *scheduler.Op, _ string, _ *vpp_contiv.RangeSet) { op.Done(nil) },
		Derive: func(_ string, v *vpp_contiv.RangeSet, put func(kind, key string, item any)) {
			for _, p := range v.Prefixes {
				item := itemOf(v)(p)
				put(kindContivRange, item.key(), item)
			}
		},
		DeriveDiff: func(_ string, from, to *vpp_contiv.RangeSet, put func(kind, key string, item any), del func(key string)) {
			kit.DiffList(from.Prefixes, to.Prefixes, itemOf(to), contivRange.key,
				func(item contivRange) { put(kindContivRange, item.key(), item) }, del)
		},
		// A desired set counts as present; sets that are not desired are found by their prefixes.
		Dump: func(op *scheduler.DumpOp, emit func(string, *vpp_contiv.RangeSet)) {
			op.EachDesired(func(key string, v any) { emit(key, &vpp_contiv.RangeSet{Id: v.(*vpp_contiv.RangeSet).Id}) })
			op.Done(nil)
		},
	}
}

func (k *descriptors) contivRangeDescriptor() scheduler.Descriptor[contivRange] {
	desc := kit.Item[contivRange](kindContivRange, rankContiv+1)
	desc.ImpliedByParent, desc.DeleteLast = false, true
	set := func(op *scheduler.Op, what string, v contivRange, add bool) {
		k.Do(op, kit.Named(what+" source range", v.Prefix.String()),
			&contiv.ContivRangeAddDel{IsAdd: add, ID: v.Set, Prefix: kit.ToPrefix(v.Prefix)}, fineToDelete(add)...)
	}
	desc.Parent = func(_ string, v contivRange) string { return nb.ContivRangeSetKey(v.Set) }
	desc.Create = func(op *scheduler.Op, _ string, v contivRange) { set(op, "add", v, true) }
	desc.Delete = func(op *scheduler.Op, _ string, v contivRange) { set(op, "delete", v, false) }
	desc.Dump = func(op *scheduler.DumpOp, emit func(string, contivRange)) {
		dumpContiv(k, op, "source ranges", &contiv.ContivRangeDump{}, func(d *contiv.ContivRangeDetails) {
			v := contivRange{Set: d.ID, Prefix: kit.FromPrefix(d.Prefix)}
			emit(v.key(), v)
		})
	}
	return desc
}
