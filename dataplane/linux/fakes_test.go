package intdataplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/driver/epstate"
	"contiv.dev/vswitch/dataplane/linux/ifacemonitor"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/rules/rulestest"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tunnel"
	"contiv.dev/vswitch/dataplane/proto"
)

// fakeRoutes is a route table in memory.
type fakeRoutes struct {
	want, kernel map[string][]routeTarget
	links        map[string]bool
	resyncs      int
	fail         error
	closed       bool
	onApply      func()
}

func newFakeRoutes() *fakeRoutes {
	return &fakeRoutes{want: map[string][]routeTarget{}, kernel: map[string][]routeTarget{}, links: map[string]bool{}}
}

func (r *fakeRoutes) SetRoutes(class string, targets []routeTarget) { r.want[class] = targets }
func (r *fakeRoutes) DeleteClass(class string)                      { delete(r.want, class) }
func (r *fakeRoutes) OnIfaceStateChanged(name string, index int, up bool) {
	r.links[name] = up
}
func (r *fakeRoutes) OnRouteRemoved(netip.Prefix) {}
func (r *fakeRoutes) Resync()                     { r.resyncs++ }
func (r *fakeRoutes) Again() time.Duration        { return 0 }
func (r *fakeRoutes) Apply(context.Context) error {
	if r.onApply != nil {
		r.onApply()
	}
	if r.fail != nil {
		return r.fail
	}
	r.kernel = maps.Clone(r.want)
	return nil
}
func (r *fakeRoutes) Close() error {
	r.closed = true
	return nil
}

// text returns the programmed state as text.
func (r *fakeRoutes) text() string {
	var lines []string
	for class, targets := range r.kernel {
		for _, t := range targets {
			lines = append(lines, fmt.Sprintf("%s: %v dev=%s mac=%v gw=%v onlink=%v type=%v", class, t.CIDR, t.Iface, t.MAC, t.GW,
				t.OnLink, t.Type))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// fakeVXLAN is a VXLAN device in memory.
type fakeVXLAN struct {
	underlay      table.Family
	local, others []tunnel.VTEP
	applied       int
	resyncs       int
	fail          error
}

func (v *fakeVXLAN) SetLocal(local ...tunnel.VTEP) { v.local = local }
func (v *fakeVXLAN) SetVTEPs(vteps []tunnel.VTEP)  { v.others = vteps }
func (v *fakeVXLAN) SetNode(node string, ends ...tunnel.VTEP) {
	v.others = slices.DeleteFunc(slices.Clone(v.others), func(e tunnel.VTEP) bool { return e.Node == node })
	v.others = slices.SortedFunc(slices.Values(append(v.others, ends...)), func(x, y tunnel.VTEP) int {
		return strings.Compare(x.Node, y.Node)
	})
}
func (v *fakeVXLAN) Resync()      { v.resyncs++ }
func (v *fakeVXLAN) Close() error { return nil }
func (v *fakeVXLAN) Apply(context.Context) error {
	v.applied++
	return v.fail
}

// fakeSysctls are kernel parameters in memory.
type fakeSysctls struct {
	values map[string]string
	fail   func(path string) error
	order  func(what string)
}

func (s *fakeSysctls) Ensure(path, value string) (wrote bool, err error) {
	if s.fail != nil {
		if err := s.fail(path); err != nil {
			return false, err
		}
	}
	if s.order != nil {
		s.order(path)
	}
	wrote = s.values[path] != value
	s.values[path] = value
	return wrote, nil
}

func (s *fakeSysctls) Get(path string) (string, error) {
	if value, has := s.values[path]; has {
		return value, nil
	}
	return "", fs.ErrNotExist
}

// fakeMonitor is an interface monitor that reports the updates of a test.
type fakeMonitor struct {
	updates chan any
	listed  func() bool
}

func (m *fakeMonitor) Run(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}
func (m *fakeMonitor) Updates() <-chan any { return m.updates }
func (m *fakeMonitor) Listed() bool        { return m.listed == nil || m.listed() }

// bench is a driver with fakes. Its loop does not run: step does the work of the loop.
type bench struct {
	t       testing.TB
	d       *InternalDataplane
	fake    *rulestest.Fake
	routes  map[table.Family]*fakeRoutes
	vxlan   *fakeVXLAN
	sysctls *fakeSysctls
	monitor *fakeMonitor
	status  map[any]string
	errs    []error // of managers, in the last step
}

func newBench(t testing.TB, config Config) *bench { return newBenchOn(t, config, rulestest.New()) }

// newBenchOn returns a bench with an existing backend: it simulates a restart.
func newBenchOn(t testing.TB, config Config, fake *rulestest.Fake) *bench {
	t.Helper()
	return newBenchWith(t, config, Options{RetryInterval: time.Second}, fake)
}

// newBenchWith returns a bench with other options.
func newBenchWith(t testing.TB, config Config, o Options, fake *rulestest.Fake) *bench {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	b := &bench{t: t, fake: fake, routes: map[table.Family]*fakeRoutes{}, sysctls: &fakeSysctls{values: map[string]string{
		"net/ipv4/conf/all/rp_filter": "0"}}, monitor: &fakeMonitor{updates: make(chan any, 100)}, status: map[any]string{}}
	orElse(&config.RulesConfig.Hostname, "node1")
	config, err := config.withDefaults()
	if err == nil {
		err = config.validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	p := parts{backend: fake, sysctls: b.sysctls, monitor: b.monitor,
		routes: func(f table.Family, _ func(string) bool) routeTable {
			if b.routes[f] == nil || b.routes[f].closed {
				b.routes[f] = newFakeRoutes()
			}
			return b.routes[f]
		},
		vxlan: func(underlay table.Family) vxlanDevice {
			b.vxlan = &fakeVXLAN{underlay: underlay}
			return b.vxlan
		}}
	b.d, err = assemble(config, o, p)
	if err != nil {
		t.Fatal(err)
	}
	b.d.combiner.queue = b.note
	return b
}

func (b *bench) note(key, msg any) {
	switch msg := msg.(type) {
	case *proto.WorkloadEndpointStatusUpdate:
		b.status[key] = msg.GetStatus().GetStatus()
	case *proto.HostEndpointStatusUpdate:
		b.status[key] = msg.GetStatus().GetStatus()
	case *proto.WorkloadEndpointStatusRemove, *proto.HostEndpointStatusRemove:
		delete(b.status, key)
	default:
		b.t.Fatalf("unknown status message %T", msg)
	}
}

// report passes messages to the managers, as the first phase does.
func (b *bench) report(msgs ...any) {
	for _, msg := range msgs {
		for _, m := range b.managers() {
			m.OnUpdate(msg)
		}
	}
}

func (b *bench) managers() []Manager {
	var all []Manager
	for _, family := range b.d.families {
		all = append(all, family.managers()...)
	}
	return append(all, b.d.vxlan, routeLinks{b.d.routes}, b.d.recheck)
}

// step sends messages and applies, and returns the result.
func (b *bench) step(msgs ...any) error {
	b.report(msgs...)
	b.errs = nil
	for _, m := range b.managers() {
		if err := m.CompleteDeferredWork(); err != nil {
			b.errs = append(b.errs, err)
		}
	}
	return errors.Join(b.d.apply(context.Background()).Err, errors.Join(b.errs...))
}

// must calls step, which must not fail or leave anything broken.
func (b *bench) must(msgs ...any) {
	b.t.Helper()
	if err := b.step(msgs...); err != nil {
		b.t.Fatal(err)
	}
	if p := b.d.progress; len(p.broken)+len(p.isolated) > 0 {
		b.t.Fatalf("broken: %v, isolated: %v", p.broken, p.isolated)
	}
}

// text returns everything that is programmed, and what was reported.
func (b *bench) text() string {
	s := b.fake.Text()
	for _, f := range []table.Family{table.IPv4, table.IPv6} {
		if r := b.routes[f]; r != nil {
			s += fmt.Sprintf("routes v%d:\n%s\n", f, r.text())
		}
	}
	if b.vxlan != nil {
		s += fmt.Sprintf("vxlan: %v %v\n", b.vxlan.local, b.vxlan.others)
	}
	var lines []string
	for key, status := range b.status {
		lines = append(lines, fmt.Sprintf("status %v: %s\n", key, status))
	}
	slices.Sort(lines)
	return s + strings.Join(lines, "")
}

// verdict returns the handling of a packet: accept, drop, or pass if no rule of ours has decided.
func (b *bench) verdict(p rulestest.Packet) string {
	b.t.Helper()
	out, err := b.fake.Send(p)
	if err != nil {
		b.t.Fatal(err)
	}
	if out.Verdict == "accept" && !out.Accepted {
		return "pass"
	}
	return out.Verdict
}

func (b *bench) expect(what string, p rulestest.Packet, want string) {
	b.t.Helper()
	if got := b.verdict(p); got != want {
		b.t.Errorf("%s: %s, want %s\n%+v", what, got, want, p)
	}
}

func (b *bench) expectStatus(key any, want string) {
	b.t.Helper()
	if got := b.status[key]; got != want {
		b.t.Errorf("status of %v is %q, want %q", key, got, want)
	}
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func packet(in, out, src, dst string, port uint16) rulestest.Packet {
	return rulestest.Packet{In: in, Out: out, Src: addr(src), Dst: addr(dst), Proto: 6, SrcPort: 40000, DstPort: port}
}

// Messages.

func wlID(name string) *proto.WorkloadEndpointID {
	return &proto.WorkloadEndpointID{OrchestratorId: "k8s", WorkloadId: name, EndpointId: "eth0"}
}

func wlKey(name string) epstate.WorkloadID { return epstate.WorkloadIDOf(wlID(name)) }

// endpoint returns a workload with addresses 10.65.0.n and fd00:65::n, whose profile allows everything.
func endpoint(name, iface string, n int, change ...func(*proto.WorkloadEndpoint)) *proto.WorkloadEndpointUpdate {
	ep := &proto.WorkloadEndpoint{State: "active", Name: iface, Mac: fmt.Sprintf("02:00:00:00:00:%02x", n),
		ProfileIds: []string{"open"},
		Ipv4Nets:   []string{fmt.Sprintf("10.65.0.%d/32", n)}, Ipv6Nets: []string{fmt.Sprintf("fd00:65::%x/128", n)}}
	for _, f := range change {
		f(ep)
	}
	return &proto.WorkloadEndpointUpdate{Id: wlID(name), Endpoint: ep}
}

func gone(name string) *proto.WorkloadEndpointRemove {
	return &proto.WorkloadEndpointRemove{Id: wlID(name)}
}

func withTiers(tiers ...*proto.TierInfo) func(*proto.WorkloadEndpoint) {
	return func(ep *proto.WorkloadEndpoint) { ep.Tiers = tiers }
}

func ingress(policies ...string) *proto.TierInfo {
	return &proto.TierInfo{Name: "default", IngressPolicies: policies}
}

func openProfile() *proto.ActiveProfileUpdate {
	all := []*proto.Rule{{Action: "allow"}}
	return &proto.ActiveProfileUpdate{Id: &proto.ProfileID{Name: "open"}, Profile: &proto.Profile{InboundRules: all,
		OutboundRules: all}}
}

func policy(name string, inbound ...*proto.Rule) *proto.ActivePolicyUpdate {
	return &proto.ActivePolicyUpdate{Id: &proto.PolicyID{Tier: "default", Name: name},
		Policy: &proto.Policy{InboundRules: inbound}}
}

func noPolicy(name string) *proto.ActivePolicyRemove {
	return &proto.ActivePolicyRemove{Id: &proto.PolicyID{Tier: "default", Name: name}}
}

func tcpPort(action string, port int32) *proto.Rule {
	return &proto.Rule{Action: action, Protocol: &proto.Protocol{NumberOrName: &proto.Protocol_Name{Name: "tcp"}},
		DstPorts: []*proto.PortRange{{First: port, Last: port}}}
}

func fromSet(action, set string) *proto.Rule {
	return &proto.Rule{Action: action, SrcIpSetIds: []string{set}}
}

func ipSet(id string, members ...string) *proto.IPSetUpdate {
	return &proto.IPSetUpdate{Id: id, Type: proto.IPSetUpdate_IP, Members: members}
}

func ifUp(name string, index int) *ifaceState {
	return &ifaceState{Name: name, State: ifacemonitor.StateUp, Index: index}
}

func ifDown(name string) *ifaceState {
	return &ifaceState{Name: name, State: ifacemonitor.StateDown}
}

func ifGone(name string) *ifaceState {
	return &ifaceState{Name: name, State: ifacemonitor.StateAbsent}
}

func ifAddrs(name string, addrs ...string) *ifaceAddrs {
	msg := &ifaceAddrs{Name: name, Addrs: []netip.Addr{}}
	for _, a := range addrs {
		msg.Addrs = append(msg.Addrs, addr(a))
	}
	return msg
}

var both = Config{IPv6Enabled: true}

var ipvsConfig = Config{IPv6Enabled: true, RulesConfig: rules.Config{KubeIPVSSupportEnabled: true}}
