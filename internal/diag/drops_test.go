package diag

import "testing"

// TestVPPDrops checks that counters that VPP marks as errors are drops, added up over its workers, and that
// informational counters are not.
func TestVPPDrops(t *testing.T) {
	got := vppDrops(`   Count                  Node                              Reason               Severity
        12             ip4-input                      ip4 ttl <= 1                 error
         3             ip4-input                      ip4 ttl <= 1                 error
       900           vxlan4-input             good packets decapsulated           info
         7      contiv-ip4-input           denied by network policy              error
`)
	if len(got) != 2 || got[0].Count != 15 || got[0].Reason != "ip4 ttl <= 1" || got[1].Where != "contiv-ip4-input" || got[1].Count != 7 ||
		got[0].Means == "" || got[1].Means == "" {
		t.Errorf("%+v", got)
	}
}
