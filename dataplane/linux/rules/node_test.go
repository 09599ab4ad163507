package rules_test

import (
	"context"
	"net/netip"
	"slices"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/rules/rulestest"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// The addresses of the tests. web and db are workloads of this node.
var (
	nodeAddr = map[table.Family]netip.Addr{table.IPv4: netip.MustParseAddr("192.0.2.1"),
		table.IPv6: netip.MustParseAddr("2001:db8::1")}
	webAddr = map[table.Family]netip.Addr{table.IPv4: netip.MustParseAddr("10.1.0.1"), table.IPv6: netip.MustParseAddr("fd00::1")}
	dbAddr  = map[table.Family]netip.Addr{table.IPv4: netip.MustParseAddr("10.1.0.2"), table.IPv6: netip.MustParseAddr("fd00::2")}
	farAddr = map[table.Family]netip.Addr{table.IPv4: netip.MustParseAddr("198.51.100.9"),
		table.IPv6: netip.MustParseAddr("2001:db8:f::9")}
	peerAddr = map[table.Family]netip.Addr{table.IPv4: netip.MustParseAddr("192.0.2.2"),
		table.IPv6: netip.MustParseAddr("2001:db8::2")}
)

var families = []table.Family{table.IPv4, table.IPv6}

// node is a node's rules with a fake backend, without managers.
type node struct {
	t        *testing.T
	config   rules.Config
	r        rules.RuleRenderer
	fake     *rulestest.Fake
	sets     map[string]table.SetType
	problems []rules.Problem
	// names by layer
	workloads  []string
	nodeJudged []string
	hosts      map[table.Layer][]string
	// twin is the same node with Config.SharePolicies: packets must be handled in the same way. nil: there is none.
	twin             *node
	sharedTo, shared map[string]string
}

// fakes are the backends of a node and its twin.
type fakes []*rulestest.Fake

func (n *node) fakes() fakes {
	if n.twin == nil {
		return fakes{n.fake}
	}
	return fakes{n.fake, n.twin.fake}
}

func (list fakes) SetChains(f table.Family, l table.Layer, chains ...table.Chain) {
	for _, fake := range list {
		fake.SetChains(f, l, chains...)
	}
}

func (list fakes) ReplaceSet(f table.Family, s table.Set, members []table.Member) {
	for _, fake := range list {
		fake.ReplaceSet(f, s, members)
	}
}

func newNode(t *testing.T, c rules.Config) *node {
	t.Helper()
	r, err := rules.NewRenderer(c)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, config: c, r: r, fake: rulestest.New(), sets: map[string]table.SetType{}, hosts: map[table.Layer][]string{},
		sharedTo: map[string]string{}, shared: map[string]string{}}
	if !c.SharePolicies && !c.KubeIPVSSupportEnabled {
		c.SharePolicies = true
		n.twin = newNode(t, c)
	}
	for _, f := range families {
		for _, l := range []table.Layer{table.Raw, table.Mangle, table.NAT, table.Filter} {
			n.fake.SetChains(f, l, r.StaticChains(f, l)...)
			for hook, list := range r.Hooks(l) {
				n.fake.SetHook(f, l, hook, list...)
			}
		}
		n.fake.SetChains(f, table.Raw, r.ReversePath(f, nil))
		n.fake.SetChains(f, table.NAT, r.NATOutgoing(false))
		n.fake.SetChains(f, table.NAT, r.FloatingIPs(nil, nil)...)
		for _, id := range []string{rules.SetAllPools, rules.SetMasqPools, rules.SetAllHosts, rules.SetVXLANPeers} {
			n.fake.ReplaceSet(f, table.Set{ID: id, Type: table.SetNet}, nil)
		}
		n.fake.ReplaceSet(f, table.Set{ID: rules.SetThisHost, Type: table.SetIP}, []table.Member{{Net: one(nodeAddr[f])}})
	}
	n.dispatch()
	return n
}

func one(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

func (n *node) dispatch() {
	for _, f := range families {
		for _, d := range n.r.WorkloadDispatch(n.workloads, n.nodeJudged) {
			n.fake.SetDispatch(f, table.Filter, d)
		}
		if n.config.SharePolicies {
			for _, d := range n.r.SharedDispatch(n.sharedTo, n.shared) {
				n.fake.SetDispatch(f, table.Filter, d)
			}
		}
		for _, l := range []table.Layer{table.Raw, table.Mangle, table.Filter} {
			for _, d := range n.r.HostDispatch(l, n.hosts[l]) {
				n.fake.SetDispatch(f, l, d)
			}
		}
		marks, hosts := map[string]uint32{}, map[string]bool{}
		for i, iface := range n.workloads {
			marks[iface] = uint32(i+2) << 20
		}
		lc := n.r.MarkChains(marks, hosts)
		n.fake.SetChains(f, table.Filter, lc.Chains...)
		for _, d := range lc.Dispatches {
			n.fake.SetDispatch(f, table.Filter, d)
		}
	}
}

func (n *node) set(id string, kind table.SetType, members ...table.Member) {
	if n.twin != nil {
		n.twin.set(id, kind, members...)
	}
	n.sets[id] = kind
	for _, f := range families {
		own := slices.DeleteFunc(slices.Clone(members), func(m table.Member) bool { return m.Net.Addr().Is4() != (f == table.IPv4) })
		n.fake.ReplaceSet(f, table.Set{ID: id, Type: kind}, own)
	}
}

// policy renders a chain into the layers and returns its name.
func (n *node) policy(prefix, name string, list ...*proto.Rule) string {
	if n.twin != nil {
		n.twin.policy(prefix, name, list...)
	}
	chain := rules.PolicyChainName(prefix, "", name)
	env := rules.Env{Set: func(id string) (table.SetType, bool) { kind, known := n.sets[id]; return kind, known }}
	for _, f := range families {
		rendered, problems := n.r.PolicyChain(f, chain, list, env)
		n.problems = append(n.problems, problems...)
		for _, l := range []table.Layer{table.Raw, table.Mangle, table.Filter} {
			n.fake.SetChains(f, l, rendered)
		}
	}
	return chain
}

func (n *node) workload(iface string, addr map[table.Family]netip.Addr, to, from rules.Direction) {
	if n.twin != nil {
		n.twin.workload(iface, addr, to, from)
	}
	ep := rules.Workload{Iface: iface, Up: true, Sources: []netip.Prefix{one(addr[4]), one(addr[6])}, To: to, From: from}
	for _, f := range families {
		n.fake.SetChains(f, table.Filter, n.r.WorkloadChains(f, ep)...)
		if n.config.SharePolicies {
			in, out := n.r.SharedChains(ep, func(string) bool { return false })
			n.fake.SetChains(f, table.Filter, in, out)
			n.sharedTo[iface], n.shared[iface] = in.Name, out.Name
		}
	}
	n.workloads = append(n.workloads, iface)
	if n.config.AppliesToNode(from) {
		n.nodeJudged = append(n.nodeJudged, iface)
	}
	n.dispatch()
}

func (n *node) host(l table.Layer, ep rules.Host) {
	if n.twin != nil {
		n.twin.host(l, ep)
	}
	for _, f := range families {
		n.fake.SetChains(f, l, n.r.HostChains(l, ep)...)
	}
	n.hosts[l] = append(n.hosts[l], ep.Iface)
	n.dispatch()
}

// openProfile allows everything in both directions.
func (n *node) openProfile() rules.Direction {
	return rules.Direction{Profiles: []string{n.policy(rules.ProfileInboundPfx, "open", &proto.Rule{Action: "allow"})}}
}

func (n *node) apply() {
	n.t.Helper()
	if n.twin != nil {
		n.twin.workloads, n.twin.nodeJudged = n.workloads, n.nodeJudged
		n.twin.dispatch()
		n.twin.apply()
	}
	result := n.fake.Apply(context.Background())
	if result.Err != nil || len(result.Broken) > 0 {
		n.t.Fatalf("apply: %v, broken: %v", result.Err, result.Broken)
	}
}

func (n *node) send(p rulestest.Packet) rulestest.Outcome {
	n.t.Helper()
	p.Local = []netip.Addr{nodeAddr[4], nodeAddr[6]}
	out, err := n.fake.Send(p)
	if err != nil {
		n.t.Fatal(err)
	}
	return out
}

// expect checks the handling of a packet: drop, accept (a rule of ours accepted it) or pass (left to the other rules).
func (n *node) expect(what string, p rulestest.Packet, want string) {
	n.t.Helper()
	if n.twin != nil {
		n.twin.expect(what+" (policies are shared)", p, want)
	}
	out := n.send(p)
	got := out.Verdict
	if got == "accept" && !out.Accepted {
		got = "pass"
	}
	if got != want {
		n.t.Errorf("%s: %s, want %s\n%+v\npath: %v", what, got, want, p, out.Path)
	}
}

func tcp(in, out string, src, dst netip.Addr, port uint16) rulestest.Packet {
	return rulestest.Packet{In: in, Out: out, Src: src, Dst: dst, Proto: 6, SrcPort: 40000, DstPort: port}
}

func protocol(name string) *proto.Protocol {
	return &proto.Protocol{NumberOrName: &proto.Protocol_Name{Name: name}}
}

func ports(list ...int32) []*proto.PortRange {
	var out []*proto.PortRange
	for _, p := range list {
		out = append(out, &proto.PortRange{First: p, Last: p})
	}
	return out
}

func allowTCP(port int32) *proto.Rule {
	return &proto.Rule{Action: "allow", Protocol: protocol("tcp"), DstPorts: ports(port)}
}
