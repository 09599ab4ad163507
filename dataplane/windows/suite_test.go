package windataplane

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"contiv.dev/vswitch/dataplane/driver/epstate"
	"contiv.dev/vswitch/dataplane/drivertest"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
)

// cannot holds the cases of the matrix that HNS cannot express. The driver's package documentation lists them.
var cannot = map[string]bool{
	"not protocol": true, "not named port": true, "ICMP type": true, "ICMP type of either family": true, "ICMP code": true,
	"not ICMP type": true, "not ICMP code": true,
}

// TestSuite runs the tests that every driver must pass.
func TestSuite(t *testing.T) {
	drivertest.Suite{New: func(t *testing.T) drivertest.Rig { return &suiteRig{bench: newSuiteBench(t)} },
		Cannot: func(name string) bool { return cannot[name] }}.Run(t)
}

// newSuiteBench returns a bench on a node whose pods have the suite's addresses.
func newSuiteBench(t *testing.T) *bench {
	h := hnsmem.New()
	var subnets []hcn.Subnet
	for _, s := range [][3]string{{"10.1.0.0/16", "10.1.255.254", "0.0.0.0/0"}, {"fd00::/64", "fd00::ffff:1", "::/0"}} {
		subnets = append(subnets, hcn.Subnet{IPAddressPrefix: s[0], Routes: []hcn.Route{{NextHop: s[1], DestinationPrefix: s[2]}}})
	}
	if _, err := h.V2().CreateNetwork(hcn.Network{Name: "contiv", Type: hcn.L2Bridge,
		IPAMs: []hcn.IPAM{{Subnets: subnets}}}); err != nil {
		t.Fatal(err)
	}
	h.Calls()
	return newBenchOn(t, both, h)
}

// suiteRig adapts a bench to the suite.
type suiteRig struct {
	*bench
	written int
}

func (r *suiteRig) Report(msgs ...any) { r.report(msgs...) }

func (r *suiteRig) Step(msgs ...any) {
	r.t.Helper()
	r.must(msgs...)
}

func (r *suiteRig) Allowed(workload string, inbound bool, p drivertest.Packet) bool {
	r.t.Helper()
	if inbound {
		return r.allowed(workload, hns.In, hnsmem.Packet{Protocol: p.Proto, Local: p.Dst, Remote: p.Src, LocalPort: p.DstPort,
			RemotePort: p.SrcPort})
	}
	return r.allowed(workload, hns.Out, hnsmem.Packet{Protocol: p.Proto, Local: p.Src, Remote: p.Dst, LocalPort: p.SrcPort,
		RemotePort: p.DstPort})
}

func (r *suiteRig) Status(workload string) string {
	return r.status[epstate.WorkloadIDOf(wlID(workload))]
}

func (r *suiteRig) Writes() int {
	r.written += len(r.writes())
	return r.written
}

// Text returns the rules of all endpoints, without IDs, and the statuses.
func (r *suiteRig) Text() string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(r.pods)) {
		text += fmt.Sprintf("endpoint %s:\n%s\n", name, r.rules(name))
	}
	var lines []string
	for key, status := range r.status {
		lines = append(lines, fmt.Sprintf("status %v: %s\n", key, status))
	}
	slices.Sort(lines)
	return text + fmt.Sprint(lines)
}

// TestOldWindows: the suite's matrix on Windows Server 2016, whose rules have one address and one port on each side. Rules that need wide
// ranges of ports are closed there, too.
func TestOldWindows(t *testing.T) {
	wide := map[string]bool{"not ports": true, "not source ports": true}
	for _, c := range drivertest.MatchCases() {
		if cannot[c.Name] {
			continue
		}
		b := newBenchOn(t, Config{}, newSuiteBench(t).host)
		b.host.SetFeatures(hns.Features{}, hcn.Features{})
		c.Rule.Action = "allow"
		web := drivertest.Web(drivertest.Tiers(drivertest.Ingress("t", "p")), func(ep *proto.WorkloadEndpoint) { ep.Ipv6Nets = nil })
		msgs := []any{drivertest.Open(), drivertest.Policy("t", "p", c.Rule), web}
		for _, s := range drivertest.UsualSets() {
			msgs = append(msgs, s)
		}
		b.must(msgs...)
		b.expectStatus("web", map[bool]string{true: "error", false: "up"}[wide[c.Name]], "")
		rig := &suiteRig{bench: b}
		for want, packets := range map[bool][]drivertest.Packet{true: c.Yes, false: c.No} {
			for _, p := range packets {
				if p.Src.Is4() && rig.Allowed("web", true, p) != (want && !wide[c.Name]) {
					t.Errorf("%s: %+v: want %v\n%s", c.Name, p, want, rig.Text())
				}
			}
		}
	}
}
