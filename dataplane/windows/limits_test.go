package windataplane

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
)

// TestNodeWithIPv6: the node's own IPv6 addresses are in no rule where pods have IPv4 only: such a Windows refuses the list, and no pod
// would be connected.
func TestNodeWithIPv6(t *testing.T) {
	for _, exempt := range []bool{false, true} {
		host := newHost(t, hcn.L2Bridge)
		host.SetFeatures(hns.Features{AddressLists: true, PortRanges: true, RuleIDs: true}, hcn.Features{})
		b := newBenchOn(t, Config{NodeExempt: exempt}, host)
		b.tell(&hostAddresses{[]netip.Addr{addr("192.0.2.1"), addr("2001:db8::1")}})
		four := endpoint("a", 1, withTiers(ingress("p")), func(ep *proto.WorkloadEndpoint) { ep.Ipv6Nets = nil })
		four.Endpoint.Tiers[0].EgressPolicies = []string{"p"}
		if err := b.step(openProfile(), policy("p", tcpPort("allow", 80)), four); err != nil {
			t.Errorf("NodeExempt %v: %v", exempt, err)
		}
		b.expectStatus("a", "up", "")
		b.expect("the node", "a", packet("192.0.2.1", "10.65.0.1", 81), true)
	}
}

// hugeExceptions applies a set of n addresses minus one of n, and says how long that took.
func hugeExceptions(t *testing.T, n int) (*bench, time.Duration) {
	t.Helper()
	big, minus := &proto.IPSetUpdate{Id: "big"}, &proto.IPSetUpdate{Id: "minus"}
	for i := range n {
		big.Members = append(big.Members, fmt.Sprintf("11.%d.%d.1", i/250, i%250))
		minus.Members = append(minus.Members, fmt.Sprintf("11.%d.%d.%d", i/250, i%250, 1+i%2))
	}
	b := newBench(t, Config{})
	start := time.Now()
	b.must(openProfile(), big, minus, policy("p", &proto.Rule{Action: "allow", SrcIpSetIds: []string{"big"}, NotSrcIpSetIds: []string{"minus"}}),
		endpoint("a", 1, withTiers(ingress("p"))))
	return b, time.Since(start)
}

// TestHugeExceptions: the loop does not stand for a minute over a large set minus a large set. Eight times as many members take about eight times as
// long; to compare each with each takes 64 times. Both are measured on the same machine under the same load, three times at most.
func TestHugeExceptions(t *testing.T) {
	var ratios []float64
	for range 3 {
		_, small := hugeExceptions(t, 5000)
		b, large := hugeExceptions(t, 40000)
		b.expectStatus("a", "up", "")
		b.expect("in the exception", "a", packet("11.0.2.1", "10.65.0.1", 80), false)
		b.expect("beside the exception", "a", packet("11.0.3.1", "10.65.0.1", 80), true)
		ratio := float64(large) / float64(small)
		t.Logf("5,000 members: %v, 40,000: %v, %.1f times", small, large, ratio)
		if ratios = append(ratios, ratio); ratio < 24 {
			return
		}
	}
	t.Errorf("eight times as many members take %.1f times as long", ratios)
}
