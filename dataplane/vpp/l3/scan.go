package l3

import (
	"go.fd.io/govpp/binapi/ip_neighbor"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

const (
	// neighbourLimit is VPP's own default, 50 000 in each address family.
	neighbourLimit = 50000
	// staleDefault is used when stale_threshold is not set, in minutes.
	staleDefault = 4
)

// scanKind: VPP used to scan its neighbours in intervals. Today it ages them: one that was not heard of for the threshold is
// probed, and dropped without an answer. stale_threshold (minutes) is that age; the other settings have no counterpart.
func (k *kinds) scanKind() scheduler.Kind[*vpp_l3.IPScanNeighbor] {
	return scheduler.Kind[*vpp_l3.IPScanNeighbor]{
		Name: "vpp-neighbour-scan", Prefix: nb.IPScanNeighborKey, Rank: scheduler.RankNeighbour,
		Validate: func(_ string, v *vpp_l3.IPScanNeighbor) error {
			var f kit.Faults
			if v.Mode < vpp_l3.IPScanNeighbor_DISABLED || v.Mode > vpp_l3.IPScanNeighbor_BOTH {
				f.Add("mode", "%d is not known", v.Mode)
			}
			if v.StaleThreshold > 60*24*365 {
				f.Add("stale_threshold", "%d minutes is more than a year", v.StaleThreshold)
			}
			return f.Err()
		},
		Equal: func(_ string, desired, applied *vpp_l3.IPScanNeighbor) bool {
			return scanAge(desired, false) == scanAge(applied, false) && scanAge(desired, true) == scanAge(applied, true)
		},
		Create: func(op *scheduler.Op, _ string, v *vpp_l3.IPScanNeighbor) { k.setScan(op, v) },
		Update: func(op *scheduler.Op, _ string, _, v *vpp_l3.IPScanNeighbor) { k.setScan(op, v) },
		Delete: func(op *scheduler.Op, _ string, _ *vpp_l3.IPScanNeighbor) { k.setScan(op, &vpp_l3.IPScanNeighbor{}) },
		Dump:   k.dumpScan,
	}
}

// scanAge is the age in seconds at which the neighbours of a family are probed; 0: never.
func scanAge(v *vpp_l3.IPScanNeighbor, v6 bool) uint32 {
	wanted := v.Mode == vpp_l3.IPScanNeighbor_BOTH ||
		(v.Mode == vpp_l3.IPScanNeighbor_IPV4 && !v6) || (v.Mode == vpp_l3.IPScanNeighbor_IPV6 && v6)
	switch {
	case !wanted:
		return 0
	case v.StaleThreshold == 0:
		return staleDefault * 60
	}
	return v.StaleThreshold * 60
}

func (k *kinds) setScan(op *scheduler.Op, v *vpp_l3.IPScanNeighbor) {
	both := kit.Join(2, op.Done)
	for _, v6 := range []bool{false, true} {
		k.Send(kit.Named("configure", "the ageing of neighbours"), &ip_neighbor.IPNeighborConfig{
			Af: kit.Family(v6), MaxNumber: neighbourLimit, MaxAge: scanAge(v, v6),
		}, both)
	}
}

// dumpScan emits what VPP does unless that is its default and nothing else is wanted.
func (k *kinds) dumpScan(op *scheduler.DumpOp, emit func(string, *vpp_l3.IPScanNeighbor)) {
	wanted := false
	op.EachDesired(func(string, any) { wanted = true })
	var age [2]uint32
	both := kit.Join(2, func(err error) {
		if v := scanOf(age[0], age[1]); err == nil && (wanted || v.Mode != vpp_l3.IPScanNeighbor_DISABLED) {
			emit(nb.IPScanNeighborKey, v)
		}
		op.Done(kit.Named("dump", "the ageing of neighbours").Wrap(err))
	})
	for i, v6 := range []bool{false, true} {
		conn.Call(k.Lane, &ip_neighbor.IPNeighborConfigGet{Af: kit.Family(v6)},
			func(r *ip_neighbor.IPNeighborConfigGetReply, err error) {
				if err == nil {
					age[i] = r.MaxAge
				}
				both(err)
			})
	}
}

// scanOf is the setting with these ages. Two different ones, which we never set, come out as one that equals nothing.
func scanOf(age4, age6 uint32) *vpp_l3.IPScanNeighbor {
	v := &vpp_l3.IPScanNeighbor{StaleThreshold: max(age4, age6) / 60}
	switch {
	case age4 != 0 && age6 != 0:
		v.Mode = vpp_l3.IPScanNeighbor_BOTH
	case age4 != 0:
		v.Mode = vpp_l3.IPScanNeighbor_IPV4
	case age6 != 0:
		v.Mode = vpp_l3.IPScanNeighbor_IPV6
	}
	return v
}
