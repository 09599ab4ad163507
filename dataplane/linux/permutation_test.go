package intdataplane

import (
	"math/rand/v2"
	"testing"

	"contiv.dev/vswitch/dataplane/drivertest"
	"contiv.dev/vswitch/dataplane/linux/ifacemonitor"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/rules/rulestest"
	"contiv.dev/vswitch/dataplane/proto"
)

// world is a state of the datastore and of the node's interfaces.
type world = drivertest.World

// linux is the model of the messages that only this driver supports.
var linux = drivertest.Model{
	Key: func(msg any) string {
		switch msg := msg.(type) {
		case *ifaceState:
			return "link " + msg.Name
		case *ifaceAddrs:
			return "addrs " + msg.Name
		}
		return ""
	},
	Retract: func(msg any) any {
		switch msg := msg.(type) {
		case *ifaceState:
			return &ifaceState{Name: msg.Name, State: ifacemonitor.StateAbsent}
		case *ifaceAddrs:
			return &ifaceAddrs{Name: msg.Name}
		}
		return nil
	},
}

// change returns the messages that lead from one world to another.
func change(from, to world, random *rand.Rand) []any { return linux.Change(from, to, random) }

// scenarios returns sequences of worlds.
func scenarios() map[string][]world {
	base := linux.World(openProfile(), ipSet("peers", "198.51.100.1"), policy("p", fromSet("allow", "peers"), tcpPort("pass",
		9)), policy("q", tcpPort("deny", 80)),
		endpoint("a", "calia", 1, withTiers(ingress("p"), &proto.TierInfo{Name: "default", IngressPolicies: []string{"q"},
			EgressPolicies: []string{"q"}})),
		endpoint("b", "calib", 2), ifUp("calia", 1), ifUp("calib", 2), ifUp("eth0", 3), ifAddrs("eth0", "192.0.2.1", "2001:db8::1"),
		ipPool("pool", "10.65.0.0/16", true))
	with, without := linux.With, linux.Without
	host := func(ep *proto.HostEndpoint) {
		ep.Tiers, ep.UntrackedTiers = []*proto.TierInfo{ingress("q")}, []*proto.TierInfo{ingress("p")}
		ep.PreDnatTiers, ep.ForwardTiers = []*proto.TierInfo{ingress("q")}, []*proto.TierInfo{ingress("p")}
	}
	nodes := with(base, ownVTEP, peerVTEP, &proto.HostMetadataUpdate{Hostname: "node2", Ipv4Addr: "192.0.2.2"},
		remote("10.65.1.0/26", "node2", "192.0.2.2", proto.IPPoolType_VXLAN), remote("10.65.2.0/26", "node2", "192.0.2.2",
			proto.IPPoolType_NO_ENCAP),
		&proto.RouteUpdate{Types: proto.RouteUpdate_TYPES_LOCAL_WORKLOAD, Dst: "10.65.0.0/26"})
	return map[string][]world{
		"sets": {base, with(base, ipSet("peers", "198.51.100.2", "fd00::1")), with(base, ipSet("peers", "1.1.1.1", "1.1.1.2",
			"1.1.1.3", "1.1.1.4", "1.1.1.5")),
			with(base, ipSet("peers", "bad", "1.1.1.1")), with(base, &proto.IPSetUpdate{Id: "peers", Type: proto.IPSetUpdate_NET,
				Members: []string{"1.0.0.0/8"}})},
		"set goes first": {base, without(base, "set peers"), base, without(base, "policy p", "set peers")},
		"policies": {base, with(base, policy("p", tcpPort("allow", 7))), without(base, "policy q"), with(base,
			policy("q", fromSet("deny", "gone")))},
		"one interface": {base, with(base, endpoint("c", "calia", 3)), with(base, endpoint("0", "calia", 4)),
			with(without(base, "workload a"), endpoint("c", "calia", 3))},
		"interfaces swapped": {base, with(base, endpoint("a", "calib", 1), endpoint("b", "calia", 2)), base, with(base,
			endpoint("a", "calib", 1))},
		"links": {base, without(base, "link calia"), with(base, ifDown("calib")), with(base, ifUp("calia", 9))},
		"states": {base, with(base, endpoint("a", "calia", 1,
			func(ep *proto.WorkloadEndpoint) { ep.State = "down" })), with(base, endpoint("a", "eth0", 1)), with(base,
			endpoint("a", "calia", 5, floating("203.0.113.9", "10.65.0.5")))},
		"floating conflict": {with(base, endpoint("a", "calia", 1, floating("203.0.113.9", "10.65.0.1")), endpoint("b",
			"calib", 2, floating("203.0.113.9", "10.65.0.2"))), base, with(base, endpoint("b", "calib", 2, floating("203.0.113.9",
			"10.65.0.2", "203.0.113.8", "10.65.0.2")))},
		"hosts": {with(base, hostEndpoint("h", "eth0", host)), with(base, hostEndpoint("h", "eth0"), hostEndpoint("g", "",
			expecting("192.0.2.1"), host)),
			with(base, hostEndpoint("h", "*", host)), without(base, "addrs eth0")},
		"pools": {base, with(base, ipPool("pool", "10.65.0.0/16", false)), with(base, ipPool("pool", "fd00:65::/48", true),
			ipPool("other", "10.65.0.0/16", true)), without(base, "pool pool")},
		"nodes": {nodes, without(nodes, "vtep node2"), without(nodes, "addrs eth0", "vtep node1"), with(nodes, ifAddrs("eth1",
			"192.0.2.1"), ifAddrs("eth0", "10.0.0.1")),
			with(nodes, remote("10.65.1.0/26", "node2", "192.0.2.2", proto.IPPoolType_VXLAN, sameSubnet)), base},
	}
}

var permuted = Config{IPv6Enabled: true, MaxIPSetSize: 4, RulesConfig: rules.Config{VXLANEnabled: true, IPIPEnabled: true}}

// TestPermutations: for every path to a world, the resulting kernel state is the same, and the same as after a start in that world.
func TestPermutations(t *testing.T) {
	drivertest.Suite{New: func(t *testing.T) drivertest.Rig { return suiteRig{newBench(t, permuted), false} }}.Permutations(t, linux, scenarios())
}

// TestSuite runs the tests that every driver must pass.
func TestSuite(t *testing.T) {
	drivertest.Suite{New: func(t *testing.T) drivertest.Rig { return suiteRig{newBench(t, both), true} }}.Run(t)
}

// suiteRig is a bench for the suite. With links, a workload's interface is up when the workload is announced.
type suiteRig struct {
	*bench
	links bool
}

func (r suiteRig) Report(msgs ...any) {
	for _, msg := range msgs {
		r.bench.report(msg)
		if ep, is := msg.(*proto.WorkloadEndpointUpdate); is && r.links {
			r.bench.report(ifUp(ep.GetEndpoint().GetName(), 1))
		}
	}
}

func (r suiteRig) Step(msgs ...any) {
	r.t.Helper()
	r.Report(msgs...)
	r.must()
}

func (r suiteRig) Allowed(workload string, inbound bool, p drivertest.Packet) bool {
	in, out := "eth0", "cali"+workload
	if !inbound {
		in, out = out, in
	}
	return r.verdict(rulestest.Packet{In: in, Out: out, Src: p.Src, Dst: p.Dst, Proto: p.Proto, SrcPort: p.SrcPort,
		DstPort: p.DstPort, ICMPType: p.ICMPType, ICMPCode: p.ICMPCode}) == "accept"
}

func (r suiteRig) Status(workload string) string { return r.status[wlKey(workload)] }
func (r suiteRig) Writes() int                   { return r.fake.Writes }
func (r suiteRig) Text() string                  { return r.text() }

func difference(want, got string) string { return drivertest.Difference(want, got) }

func newRandom() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }
