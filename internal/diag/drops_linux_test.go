package diag

import (
	"slices"
	"testing"
)

// TestKernelCounters checks the parsers of the kernel's three formats.
func TestKernelCounters(t *testing.T) {
	got := map[string]uint64{}
	parsePairs(got, "Ip: Forwarding InHdrErrors OutNoRoutes\nIp: 1 4 9\nIcmp: InMsgs\nIcmp: 3\n")
	parsePairs(got, "TcpExt: A IPReversePathFilter\nTcpExt: 1 5\nIpExt: InNoRoutes B\nIpExt: 6 2\n")
	parseSNMP6(got, "Ip6InHdrErrors                  \t8\nIcmp6InErrors \t1\n")
	parseConntrack(got, "entries  insert_failed drop\n00000010  0000000a 00000001\n00000010  00000001 00000002\n")
	for name, want := range map[string]uint64{
		"Ip.InHdrErrors": 4, "Ip.OutNoRoutes": 9, "TcpExt.IPReversePathFilter": 5, "IpExt.InNoRoutes": 6, "Ip6.InHdrErrors": 8,
		"conntrack.insert_failed": 11, "conntrack.drop": 3,
	} {
		if got[name] != want {
			t.Errorf("%s is %d, want %d", name, got[name], want)
		}
	}
	// The kernel has every counter that is reported.
	for _, c := range kernelCounters {
		if !slices.Contains([]string{"Ip", "IpExt", "TcpExt", "Ip6", "conntrack"}, c.line) || c.means == "" {
			t.Errorf("%+v", c)
		}
	}
}
