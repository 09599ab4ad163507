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
