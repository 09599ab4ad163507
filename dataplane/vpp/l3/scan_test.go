package l3

import (
	"testing"

	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
)

func TestScan(t *testing.T) {
	for _, v := range []*vpp_l3.IPScanNeighbor{
		{}, {Mode: vpp_l3.IPScanNeighbor_IPV4, StaleThreshold: 4}, {Mode: vpp_l3.IPScanNeighbor_IPV6, StaleThreshold: 1},
		{Mode: vpp_l3.IPScanNeighbor_BOTH},
	} {
		back := scanOf(scanAge(v, false), scanAge(v, true))
		if scanAge(back, false) != scanAge(v, false) || scanAge(back, true) != scanAge(v, true) {
			t.Errorf("%v came back as %v", v, back)
		}
	}
}

// TestForeignScan: ages that another program has set equal no valid setting, so that a resync replaces them.
func TestForeignScan(t *testing.T) {
	equal := (&descriptors{}).scanDescriptor().Equal
	for _, ages := range [][2]uint32{{4 * 60, 8 * 60}, {8 * 60, 4 * 60}, {250, 250}, {0, 61}} {
		foreign := scanOf(ages[0], ages[1])
		for minutes := range uint32(20) {
			for mode := vpp_l3.IPScanNeighbor_DISABLED; mode <= vpp_l3.IPScanNeighbor_BOTH; mode++ {
				if desired := (&vpp_l3.IPScanNeighbor{Mode: mode, StaleThreshold: minutes}); equal("", desired, foreign) {
					t.Errorf("VPP has the ages %v, and %v counts as applied", ages, desired)
				}
			}
		}
	}
}
