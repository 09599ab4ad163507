package services

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_acl "contiv.dev/vswitch/dataplane/nb/vpp/acl"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/txn"
)

// damage is a fault in the dataplane of both nodes, and the cases that must fail because of it: name/family.
type damage struct {
	name     string
	keys     string                                          // prefix of the keys of the affected values
	spoil    func(v proto.Message) proto.Message             // nil: the value is missing
	more     func(at netip.AddrPort, udp bool) proto.Message // or the value that serves an address which nothing should serve
	fails    []string
	answered string // a family: all of its cases in which a server answers must fail, too
}

func gone(proto.Message) proto.Message { return nil }

// eachMapping returns a function that changes a copy of NAT44's mappings.
func eachMapping(change func(m *vpp_nat.DNat44_StaticMapping)) func(proto.Message) proto.Message {
	return func(v proto.Message) proto.Message {
		d := proto.CloneOf(v.(*vpp_nat.DNat44))
		for _, m := range d.StMappings {
			change(m)
		}
		return d
	}
}

func permitAll(v proto.Message) proto.Message {
	acl := proto.CloneOf(v.(*vpp_acl.ACL))
	for _, r := range acl.Rules {
		r.Action = vpp_acl.ACL_Rule_PERMIT
	}
	return acl
}

func dropAll(v proto.Message) proto.Message {
	r := proto.CloneOf(v.(*vpp_l3.Route))
	r.Type = vpp_l3.Route_DROP
	return r
}

// natMore returns a value that adds a service at an address without one.
func natMore(at netip.AddrPort, udp bool) proto.Message {
	m := &vpp_nat.DNat44_StaticMapping{
		ExternalIp: at.Addr().String(), ExternalPort: uint32(at.Port()), TwiceNat: vpp_nat.DNat44_StaticMapping_ENABLED,
		LocalIps: []*vpp_nat.DNat44_StaticMapping_LocalIP{{VrfId: 1, LocalIp: "10.1.1.2", LocalPort: 8080, Probability: 1}},
	}
	if udp {
		m.Protocol = vpp_nat.DNat44_UDP
	}
	return &vpp_nat.DNat44{Label: fmt.Sprint("damage-", at, udp), StMappings: []*vpp_nat.DNat44_StaticMapping{m}}
}

// unserved returns the addresses that nothing should serve: a case, and its address.
func unserved() [][2]string {
	return [][2]string{
		{"another proxy's service", "cluster"}, {"load balancer with ipMode Proxy", "lb"}, {"node port without endpoints", "node1"},
		{"external IP without endpoints", "external"}, {"source range without endpoints", "lb"},
		{"node port Local of another node", "node2"},
	}
}

// unservedCases returns the cases of these addresses.
func unservedCases(family string) (cases []string) {
	for _, place := range unserved() {
		cases = append(cases, place[0]+family)
	}
	return cases
}

func natDamages() []damage {
	const services = "config/vpp/nat/v2/dnat44/default/"
	return []damage{
		{name: "NAT44: the last backend is missing", keys: services, spoil: eachMapping(func(m *vpp_nat.DNat44_StaticMapping) {
			m.LocalIps = m.LocalIps[:max(1, len(m.LocalIps)-1)]
		}), fails: []string{"cluster IP/4", "node port/4", "host network backends of both nodes/4", "load balancer/4"}},
		{name: "NAT44: backends at another port", keys: services, spoil: eachMapping(func(m *vpp_nat.DNat44_StaticMapping) {
			for _, b := range m.LocalIps {
				b.LocalPort = 9999
			}
		}), answered: "4"},
		{name: "NAT44: no twice-NAT", keys: services, spoil: eachMapping(func(m *vpp_nat.DNat44_StaticMapping) {
			m.TwiceNat = vpp_nat.DNat44_StaticMapping_DISABLED
		}), fails: []string{"a backend reaches itself/4", "node port/4", "external IP/4", "a host network backend reaches itself/4"}},
		{name: "NAT44: twice-NAT for all", keys: services, spoil: eachMapping(func(m *vpp_nat.DNat44_StaticMapping) {
			m.TwiceNat = vpp_nat.DNat44_StaticMapping_ENABLED
		}), fails: []string{"cluster IP/4", "backend on another node/4", "node port Local/4", "load balancer Local/4",
			"node port Local, both nodes/4"}},
		{name: "NAT44: no affinity", keys: services, spoil: eachMapping(func(m *vpp_nat.DNat44_StaticMapping) {
			m.SessionAffinity = 0
		}), fails: []string{"session affinity/4"}},
		{
			name: "NAT44: serves what it should not", keys: "config/vpp/acls/v2/acl/services-nat44", spoil: permitAll,
			more: natMore, fails: unservedCases("/4"),
		},
		{name: "NAT44: not on the overlay", keys: "config/vpp/nat/v2/nat44-interface/vxlanBVI", spoil: gone,
			fails: []string{"backend on another node/4"}},
		{name: "NAT44: not on the host's link", keys: "config/vpp/nat/v2/nat44-interface/tap-vpp2", spoil: gone,
			fails: []string{"cluster IP/4", "node port at the host's address/4"}},
	}
}

func otherDamages() []damage {
	return []damage{
		{name: "no client is refused", keys: "config/vpp/acls/v2/acl/services-nat44", spoil: permitAll,
			fails: []string{"source range that has not/4", "internalTrafficPolicy Local/4", "load balancer Local, none here/4"}},
		{name: "cluster IPs without endpoints are dropped", keys: "config/vpp/v2/route/vrf/0/dst/10.96.0.0/12", spoil: dropAll,
			fails: []string{"no endpoints/4", "unused port/4", "no ready endpoints/4"}},
		{name: "the same for external addresses", keys: "config/vpp/v2/route/vrf/0/dst/203.0.113.", spoil: dropAll,
			fails: []string{"external IP without endpoints/4", "source range without endpoints/4"}},
		{name: "no node ports at the host's addresses", keys: "config/linux/contiv/v1/node-ports/", spoil: gone,
			fails: []string{"node port at the host's address/4", "node port Local at the host's address, none here/4"}},
	}
}

// unnoticed returns the cases that no single wrong value makes fail, with the reason.
func unnoticed() map[string]string {
	return map[string]string{
		"node port Local at the host's address, none/4": "a server answers only if the host hands the port to VPP and VPP serves it: two wrong values",
	}
}

// TestFakeNotices checks that faults in the dataplane make cases fail on the fake, each case because of some fault, and that
// the cases pass again after the repair.
func TestFakeNotices(t *testing.T) {
	if !slices.Contains(modes(), fake) {
		t.Skip("fake: skipped: not among the modes")
	}
	w := newWorld(t, fake)
	all := scenarios()
	services := w.putAll(all)
	left := map[string]bool{}
	for _, sc := range all {
		for _, family := range w.mode.families() {
			left[sc.name+"/"+family] = true
		}
	}
	for _, d := range append(natDamages(), otherDamages()...) {
		t.Run(d.name, func(t *testing.T) {
			w := w.in(t)
			fails := append(d.fails, w.answered(all, d.answered)...)
			mend := w.damage(d, all, services)
			for _, what := range fails {
				delete(left, what)
				if err := w.passes(what, all, services); err == nil {
					t.Errorf("%s passes all the same", what)
				} else {
					t.Logf("%s: %.150s", what, strings.ReplaceAll(err.Error(), "\n", " "))
				}
			}
			mend()
			for _, what := range fails {
				if err := w.passes(what, all, services); err != nil {
					t.Errorf("%s fails when all is well again: %v", what, err)
				}
			}
		})
	}
	for what := range left {
		if why := unnoticed()[what]; why != "" {
			t.Logf("%s: %s", what, why)
			continue
		}
		t.Errorf("%s fails of no damage: add it to one, so that it is known to notice something", what)
	}
}

// passes returns why a case fails, or nil.
func (w *world) passes(what string, all []scenario, services []*corev1.Service) error {
	w.t.Helper()
	name, family, _ := strings.Cut(what, "/")
	i := slices.IndexFunc(all, func(sc scenario) bool { return sc.name == name })
	if i < 0 {
		w.t.Fatalf("there is no case %s", what)
	}
	f := slices.Index(families[:], family)
	expect, _ := w.expected(all[i], f)
	for _, text := range expect {
		e, err := parseExpectation(text)
		w.must(err)
		if err := w.meets(services[i], e, f); err != nil {
			return err
		}
	}
	return nil
}

// answered returns the cases of a family in which a server answers.
func (w *world) answered(all []scenario, family string) (cases []string) {
	f := slices.Index(families[:], family)
	for _, sc := range all {
		if f < 0 {
			continue
		}
		expect, _ := w.expected(sc, f)
		if slices.ContainsFunc(expect, func(text string) bool { e, _ := parseExpectation(text); return e.servers != nil }) {
			cases = append(cases, sc.name+"/"+family)
		}
	}
	return cases
}

// damage makes the fault on both nodes.
func (w *world) damage(d damage, all []scenario, services []*corev1.Service) (mend func()) {
	w.t.Helper()
	var undo []func()
	for _, n := range w.fakes.nodes {
		if d.more != nil {
			undo = append(undo, w.serveUnserved(n, d, all, services))
		}
		var spoilt, good []txn.KV
		for _, s := range n.agent.sched.Status(scheduler.Filter{}) {
			v := n.agent.ctl.GetConfig(s.Key)
			if v == nil || !strings.HasPrefix(s.Key, d.keys) {
				continue
			}
			spoilt, good = append(spoilt, txn.KV{Key: s.Key, Value: d.spoil(v)}), append(good, txn.KV{Key: s.Key, Value: v})
		}
		if len(good) == 0 {
			w.t.Fatalf("%s has no value %s", n.name, d.keys)
		}
		w.commit(n, spoilt)
		undo = append(undo, func() { w.commit(n, good) })
	}
	return func() {
		for _, f := range undo {
			f()
		}
	}
}

// serveUnserved makes a node serve addresses that it should not serve.
func (w *world) serveUnserved(n *fakeNode, d damage, all []scenario, services []*corev1.Service) (mend func()) {
	w.t.Helper()
	var there, gone []txn.KV
	for _, place := range unserved() {
		i := slices.IndexFunc(all, func(sc scenario) bool { return sc.name == place[0] })
		to, err := w.destination(services[i], place[1], 0)
		w.must(err)
		for _, udp := range []bool{false, true} {
			v := d.more(to, udp)
			key, err := nb.Key(v)
			w.must(err)
			there, gone = append(there, txn.KV{Key: key, Value: v}), append(gone, txn.KV{Key: key})
		}
	}
	w.commit(n, there)
	return func() { w.commit(n, gone) }
}

// commit changes the dataplane without the agent.
func (w *world) commit(n *fakeNode, values []txn.KV) {
	w.t.Helper()
	if _, err := n.agent.sched.Commit(w.ctx, &txn.Txn{Kind: txn.Update, Values: values}); err != nil {
		w.t.Fatal(err)
	}
	w.within(time.Minute, fmt.Sprintf("%s has %d values", n.name, len(values)), n.ready)
}
