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
	// maxStaleThreshold is the highest valid stale_threshold in minutes: a year.
	maxStaleThreshold = 60 * 24 * 365
)

// scanDescriptor returns the descriptor of the neighbours' ageing. VPP used to scan its neighbours at intervals. VPP 25.10 ages them: it
// probes a neighbour from which it has not received anything for the threshold, and drops it if there is no answer.
// stale_threshold (minutes) is that age; the other settings have no counterpart.
func (k *descriptors) scanDescriptor() scheduler.Descriptor[*vpp_l3.IPScanNeighbor] {
	return scheduler.Descriptor[*vpp_l3.IPScanNeighbor]{
		Name: "vpp-neighbour-scan", Prefix: nb.IPScanNeighborKey, Rank: scheduler.RankNeighbour,
		Validate: func(_ string, v *vpp_l3.IPScanNeighbor) error {
			var f kit.Faults
			if v.Mode < vpp_l3.IPScanNeighbor_DISABLED || v.Mode > vpp_l3.IPScanNeighbor_BOTH {
				f.Add("mode", "%d is not known", v.Mode)
			}
			if v.StaleThreshold > maxStaleThreshold {
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

// scanAge returns the age in seconds at which the neighbours of a family are probed; 0: never.
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

func (k *descriptors) setScan(op *scheduler.Op, v *vpp_l3.IPScanNeighbor) {
	both := kit.Join(2, op.Done)
	for _, v6 := range []bool{false, true} {
		k.Send(kit.Named("configure", "the ageing of neighbours"), &ip_neighbor.IPNeighborConfig{
			Af: kit.Family(v6), MaxNumber: neighbourLimit, MaxAge: scanAge(v, v6),
		}, both)
	}
}

// dumpScan emits VPP's setting unless it is the default and no other setting is desired.
func (k *descriptors) dumpScan(op *scheduler.DumpOp, emit func(string, *vpp_l3.IPScanNeighbor)) {
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

// scanOf returns the setting with these ages, in seconds. Ages that no valid setting has (two different ones, or a part of a minute) come from
// another program: they get a threshold that equals no valid one, so that the next resync writes the desired setting.
func scanOf(age4, age6 uint32) *vpp_l3.IPScanNeighbor {
	age := max(age4, age6)
	v := &vpp_l3.IPScanNeighbor{StaleThreshold: age / 60}
	if age%60 != 0 || (age4 != 0 && age6 != 0 && age4 != age6) {
		v.StaleThreshold = maxStaleThreshold + 1
	}
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
