package windataplane

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
)

// TestNodeWithIPv6: if pods have IPv4 only, no rule has the node's own IPv6 addresses: such a Windows rejects the list, and no pod would be
// connected.
func TestNodeWithIPv6(t *testing.T) {
	for _, exempt := range []bool{false, true} {
		host := newHost(t, hcn.L2Bridge)
		host.SetFeatures(hns.Features{AddressLists: true, PortRanges: true, RuleIDs: true}, hcn.Features{})
		b := newBenchOn(t, Config{NodeExempt: exempt}, host)
		b.report(&hostAddresses{[]netip.Addr{addr("192.0.2.1"), addr("2001:db8::1")}})
		four := endpoint("a", 1, withTiers(ingress("p")), func(ep *proto.WorkloadEndpoint) { ep.Ipv6Nets = nil })
		four.Endpoint.Tiers[0].EgressPolicies = []string{"p"}
		if err := b.step(openProfile(), policy("p", tcpPort("allow", 80)), four); err != nil {
			t.Errorf("NodeExempt %v: %v", exempt, err)
		}
		b.expectStatus("a", "up", "")
		b.expect("the node", "a", packet("192.0.2.1", "10.65.0.1", 81), true)
	}
}

// hugeExceptions applies a set of n addresses minus a set of n, and returns how many bytes that allocated.
func hugeExceptions(t *testing.T, n int) (*bench, uint64) {
	t.Helper()
	big, minus := &proto.IPSetUpdate{Id: "big"}, &proto.IPSetUpdate{Id: "minus"}
	for i := range n {
		big.Members = append(big.Members, fmt.Sprintf("11.%d.%d.1", i/250, i%250))
		minus.Members = append(minus.Members, fmt.Sprintf("11.%d.%d.%d", i/250, i%250, 1+i%2))
	}
	b := newBench(t, Config{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.must(openProfile(), big, minus, policy("p", &proto.Rule{Action: "allow", SrcIpSetIds: []string{"big"}, NotSrcIpSetIds: []string{"minus"}}),
		endpoint("a", 1, withTiers(ingress("p"))))
	runtime.ReadMemStats(&after)
	return b, after.TotalAlloc - before.TotalAlloc
}

// TestHugeExceptions: a large set minus a large set is applied correctly. Eight times as many members allocate about eight times as much
// memory.
func TestHugeExceptions(t *testing.T) {
	_, small := hugeExceptions(t, 5000)
	b, large := hugeExceptions(t, 40000)
	b.expectStatus("a", "up", "")
	b.expect("in the exception", "a", packet("11.0.2.1", "10.65.0.1", 80), false)
	b.expect("beside the exception", "a", packet("11.0.3.1", "10.65.0.1", 80), true)
	if ratio := float64(large) / float64(small); ratio > 16 {
		t.Errorf("5,000 members allocate %d bytes, 40,000 %d: %.1f times as much", small, large, ratio)
	}
}

// TestSubtractionLooks: the loop is not blocked for a minute by a large set minus a large set. Eight times as many nets need about eight times
// as many comparisons; comparing each with each would need 64 times as many.
func TestSubtractionLooks(t *testing.T) {
	looks := func(n int) int {
		var list, minus netList
		for i := range n {
			at := func(last int) netip.Prefix {
				return netip.PrefixFrom(netip.AddrFrom4([4]byte{11, byte(i / 250), byte(i % 250), byte(last)}), 32)
			}
			list, minus = append(list, at(1)), append(minus, at(1+i%2))
		}
		s := subtraction{limit: n}
		if left := s.subtract(list, minus); len(left) != n/2 {
			t.Fatalf("%d of %d nets are left", len(left), n)
		}
		return s.looks
	}
	small, large := looks(5000), looks(40000)
	if ratio := float64(large) / float64(small); small < 5000 || ratio > 16 {
		t.Errorf("5,000 nets take %d looks, 40,000 %d: %.1f times as many", small, large, ratio)
	}
}
