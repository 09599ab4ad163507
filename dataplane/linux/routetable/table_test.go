package routetable

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var ctx = context.Background()

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func to(iface string, cidr string) Target { return Target{CIDR: prefix(cidr), Iface: iface} }

func mustApply(t testing.TB, tab *Table) {
	t.Helper()
	if err := tab.Apply(ctx); err != nil {
		t.Fatal(err)
	}
}

func wantState(t testing.TB, f *fakeKernel, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := f.state(); got != strings.Join(want, "\n") {
		t.Fatalf(" got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// drain waits until all pending removals of connections are done.
func drain(tab *Table) {
	for {
		tab.flush.mu.Lock()
		var p *pass
		for _, w := range tab.flush.waiting {
			p = w
		}
		tab.flush.mu.Unlock()
		if p == nil {
			return
		}
		<-p.done
	}
}

func TestLinkComesAndGoes(t *testing.T) {
	f := newFake(t)
	tab := fakeTable(f, Config{})
	tab.SetRoutes("ep/a", []Target{{CIDR: prefix("10.0.0.1/32"), Iface: "a", MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}}})
	mustApply(t, tab) // no link yet
	wantState(t, f)
	f.setLink(1, true)
	tab.OnIfaceStateChanged("a", 1, true)
	mustApply(t, tab)
	both := []string{"10.0.0.1/32 dev 1 proto 202", "neigh 10.0.0.1 dev 1 020000000001"}
	wantState(t, f, both...)
	f.setLink(1, false)
	tab.OnIfaceStateChanged("a", 1, false)
	mustApply(t, tab)
	wantState(t, f)
	f.setLink(1, true)
	tab.OnIfaceStateChanged("a", 1, true)
	mustApply(t, tab)
	wantState(t, f, both...)
	// Down and up at once, with only the report that it is up.
	f.setLink(1, false)
	f.setLink(1, true)
	tab.OnIfaceStateChanged("a", 1, true)
	mustApply(t, tab)
	wantState(t, f, both...)
	if got := f.forgotten(); got != "" {
		t.Errorf("connections of %s were forgotten, though its link is the same", got)
	}
	// Removed and created again as another link: the name now belongs to another link.
	f.delLink(1)
	tab.OnIfaceStateChanged("a", 1, false)
	mustApply(t, tab)
	f.setLink(2, true)
	tab.OnIfaceStateChanged("a", 2, true)
	mustApply(t, tab)
	wantState(t, f, "10.0.0.1/32 dev 2 proto 202", "neigh 10.0.0.1 dev 2 020000000001")
	if got := f.forgotten(); got != "10.0.0.1" {
		t.Errorf("connections of %q were forgotten", got)
	}
	tab.DeleteClass("ep/a")
	mustApply(t, tab)
	wantState(t, f)
	drain(tab)
	if got := f.forgotten(); got != "10.0.0.1" {
		t.Errorf("connections of %q were forgotten", got)
	}
	tab.OnIfaceStateChanged("a", 2, false)
	if len(tab.entries)+len(tab.links)+len(tab.names)+len(tab.neighs)+len(tab.neighDo)+len(tab.seen) != 0 || tab.Pending() {
		t.Errorf("something is left: %+v", tab)
	}
}

// TestVanishing: a link that is removed between our read and our write is not an error.
func TestVanishing(t *testing.T) {
	for _, gone := range []func(f *fakeKernel){
		func(f *fakeKernel) { f.delLink(1) }, func(f *fakeKernel) { f.setLink(1, false) },
	} {
		f := newFake(t)
		tab := fakeTable(f, Config{})
		f.setLink(1, true)
		f.setLink(2, true)
		tab.OnIfaceStateChanged("a", 1, true)
		tab.OnIfaceStateChanged("b", 2, true)
		tab.SetRoutes("x", []Target{to("a", "10.0.0.1/32"), to("b", "10.0.0.2/32"), to("a", "10.0.0.3/32")})
		f.before = func(op) { gone(f) }
		mustApply(t, tab)
		wantState(t, f, "10.0.0.2/32 dev 2 proto 202")
		f.before = nil
		mustApply(t, tab) // not reported yet
		f.setLink(1, true)
		mustApply(t, tab) // the recorded state has not changed
		wantState(t, f, "10.0.0.1/32 dev 1 proto 202", "10.0.0.2/32 dev 2 proto 202", "10.0.0.3/32 dev 1 proto 202")
	}
}

func TestFailuresAreIsolated(t *testing.T) {
	f := newFake(t)
	tab := fakeTable(f, Config{})
	f.setLink(1, true)
	tab.OnIfaceStateChanged("a", 1, true)
	var all []Target
	var want []string
	for i := range 50 {
		all = append(all, to("a", fmt.Sprintf("10.0.0.%d/32", i)))
		want = append(want, fmt.Sprintf("10.0.0.%d/32 dev 1 proto 202", i))
	}
	tab.SetRoutes("x", all)
	f.fail = func(o op) error {
		if o.route.dst.Addr().As4()[3]%2 == 0 {
			return unix.ENOMEM
		}
		return nil
	}
	err := tab.Apply(ctx)
	if !errors.Is(err, unix.ENOMEM) || !strings.Contains(err.Error(), "and 17 more") || len(f.routes) != 25 {
		t.Errorf("%d routes, %v", len(f.routes), err)
	}
	f.fail, f.writes = nil, 0
	mustApply(t, tab)
	wantState(t, f, want...)
	if f.writes != 25 || f.execs != 2 || f.lists != 1 {
		t.Errorf("%d writes in %d batches, %d listings", f.writes, f.execs, f.lists)
	}
}

func TestForeignRoutesStay(t *testing.T) {
	f := newFake(t)
	f.setLink(1, true)
	f.setLink(2, true)
	foreign := func(dst string, index int) route {
		return route{dst: prefix(dst), typ: unix.RTN_UNICAST, protocol: unix.RTPROT_STATIC, index: index}
	}
	f.routes = []route{foreign("10.0.0.1/32", 2), foreign("10.0.0.2/32", 1), foreign("10.0.0.9/32", 1)}
	tab := fakeTable(f, Config{})
	tab.OnIfaceStateChanged("a", 1, true)
	tab.OnIfaceStateChanged("eth0", 2, true)
	tab.SetRoutes("x", []Target{to("a", "10.0.0.1/32"), to("a", "10.0.0.2/32"), to("a", "10.0.0.3/32")})
	err := tab.Apply(ctx)
	if err == nil || !strings.Contains(err.Error(), "routing protocol 4 has one for 10.0.0.1/32 over link eth0") {
		t.Errorf("error %v", err)
	}
	wantState(t, f, "10.0.0.1/32 dev 2 proto 4", "10.0.0.2/32 dev 1 proto 202", "10.0.0.3/32 dev 1 proto 202",
		"10.0.0.9/32 dev 1 proto 4")
	f.routes = slices.DeleteFunc(f.routes, func(r route) bool { return r.index == 2 })
	mustApply(t, tab)
	tab.DeleteClass("x")
	mustApply(t, tab)
	wantState(t, f, "10.0.0.9/32 dev 1 proto 4")
}

func TestRemoveExternal(t *testing.T) {
	f := newFake(t)
	f.setLink(1, true)
	f.setLink(2, true)
	f.routes = []route{
		{dst: prefix("10.0.0.1/32"), typ: unix.RTN_UNICAST, protocol: unix.RTPROT_BOOT, index: 1},
		{dst: prefix("10.0.0.2/32"), typ: unix.RTN_UNICAST, protocol: unix.RTPROT_BOOT, index: 1},
		{dst: prefix("10.0.0.0/24"), typ: unix.RTN_UNICAST, protocol: unix.RTPROT_KERNEL, index: 1},
		{dst: prefix("10.0.0.3/32"), typ: unix.RTN_UNICAST, protocol: unix.RTPROT_BOOT, index: 2},
	}
	now := time.Unix(1000, 0)
	tab := fakeTable(f, Config{
		RemoveExternal: true, OwnsIface: func(n string) bool { return strings.HasPrefix(n, "cali") },
		Now: func() time.Time { return now },
	})
	tab.OnIfaceStateChanged("cali1", 1, true)
	tab.OnIfaceStateChanged("eth0", 2, true)
	tab.SetRoutes("ep/cali1", []Target{to("cali1", "10.0.0.1/32")})
	mustApply(t, tab)
	rest := []string{"10.0.0.0/24 dev 1 proto 2", "10.0.0.1/32 dev 1 proto 202", "10.0.0.3/32 dev 2 proto 3"}
	wantState(t, f, append(rest, "10.0.0.2/32 dev 1 proto 3")...)
	now = now.Add(defaultGrace)
	mustApply(t, tab)
	wantState(t, f, rest...)
}

// TestGrace: the CNI plugin may add a route before its endpoint is sent.
func TestGrace(t *testing.T) {
	f := newFake(t)
	for i := 1; i <= 3; i++ {
		f.setLink(i, true)
	}
	ours := func(dst string, index int, metric uint32) route {
		return route{dst: prefix(dst), typ: unix.RTN_UNICAST, protocol: 202, index: index, metric: metric}
	}
	f.routes = []route{ours("10.0.0.1/32", 1, 0), ours("10.0.0.2/32", 1, 0), ours("10.0.0.3/32", 2, 0), ours("10.0.0.4/32", 3, 0),
		ours("10.0.0.5/32", 1, 77)}
	now := time.Unix(1000, 0)
	tab := fakeTable(f, Config{OwnsIface: func(n string) bool { return n == "cali1" }, Now: func() time.Time { return now }})
	tab.OnIfaceStateChanged("cali1", 1, true)
	tab.OnIfaceStateChanged("eth0", 2, true) // not ours: no grace. Link 3 has not been reported: may be ours.
	mustApply(t, tab)
	one, two := "10.0.0.1/32 dev 1 proto 202", "10.0.0.2/32 dev 1 proto 202"
	wantState(t, f, one, two, "10.0.0.4/32 dev 3 proto 202", "10.0.0.5/32 dev 1 proto 202")
	if tab.Again() != 10*time.Second || tab.Pending() {
		t.Errorf("again after %s, pending %t", tab.Again(), tab.Pending())
	}
	now = now.Add(6 * time.Second)
	tab.SetRoutes("ep/cali1", []Target{to("cali1", "10.0.0.1/32")}) // now the endpoint is sent
	mustApply(t, tab)
	if tab.Again() != 4*time.Second {
		t.Errorf("again after %s", tab.Again())
	}
	now = now.Add(4 * time.Second)
	if !tab.Pending() {
		t.Error("the grace is over, but nothing pending")
	}
	mustApply(t, tab)
	wantState(t, f, one)
	if tab.Again() != 0 || tab.Pending() {
		t.Errorf("again after %s, pending %t", tab.Again(), tab.Pending())
	}
	// Routes that we have added ourselves have no grace, even on a link that was just seen.
	f.setLink(9, true)
	tab.OnIfaceStateChanged("cali1", 9, true)
	mustApply(t, tab)
	tab.DeleteClass("ep/cali1")
	mustApply(t, tab)
	if strings.Contains(f.state(), "dev 9") {
		t.Error(f.state())
	}
}

// TestStrays: routes with our protocol that differ from the form that we write are removed, even next to desired ones.
func TestStrays(t *testing.T) {
	f := newFake(t)
	f.setLink(1, true)
	f.setLink(2, true)
	r := route{dst: prefix("10.0.0.1/32"), typ: unix.RTN_UNICAST, protocol: 202, index: 1}
	metric, tos, odd, elsewhere := r, r, r, r
	metric.metric, tos.tos, odd.odd, odd.metric, elsewhere.index, elsewhere.metric = 5, 8, true, 6, 2, 0
	f.routes = []route{elsewhere, r, metric, tos, odd}
	tab := fakeTable(f, Config{})
	tab.OnIfaceStateChanged("a", 1, true)
	tab.SetRoutes("x", []Target{to("a", "10.0.0.1/32")})
	f.before = func(o op) {
		if o.verb != delRoute {
			t.Errorf("write %+v", o)
		}
	}
	mustApply(t, tab)
	wantState(t, f, "10.0.0.1/32 dev 1 proto 202")
}

func TestPrecedence(t *testing.T) {
	f := newFake(t)
	tab := fakeTable(f, Config{})
	for i, name := range []string{"a", "b"} {
		f.setLink(i+1, true)
		tab.OnIfaceStateChanged(name, i+1, true)
	}
	tab.SetRoutes("ep/2", []Target{to("b", "10.0.0.1/32")})
	mustApply(t, tab)
	wantState(t, f, "10.0.0.1/32 dev 2 proto 202")
	tab.SetRoutes("ep/1", []Target{to("a", "10.0.0.1/32"), to("a", "10.0.0.1/32")})
	mustApply(t, tab)
	wantState(t, f, "10.0.0.1/32 dev 1 proto 202")
	f.delLink(1)
	tab.OnIfaceStateChanged("a", 1, false)
	mustApply(t, tab)
	wantState(t, f, "10.0.0.1/32 dev 2 proto 202")
	tab.DeleteClass("ep/1")
	mustApply(t, tab)
	wantState(t, f, "10.0.0.1/32 dev 2 proto 202")
}

func TestInvalidTargets(t *testing.T) {
	f := newFake(t)
	f.setLink(1, true)
	tab := fakeTable(f, Config{})
	tab.OnIfaceStateChanged("a", 1, true)
	good := to("a", "10.0.0.0/24")
	bad := map[string]Target{
		"family":      to("a", "fd00::/64"),
		"no prefix":   {Iface: "a"},
		"no link":     {CIDR: prefix("10.1.0.0/16")},
		"gateway":     {CIDR: prefix("10.1.0.0/16"), Iface: "a", GW: netip.MustParseAddr("fd00::1")},
		"source":      {CIDR: prefix("10.1.0.0/16"), Iface: "a", Src: netip.MustParseAddr("fd00::1")},
		"type":        {CIDR: prefix("10.1.0.0/16"), Iface: "a", Type: 9},
		"MAC length":  {CIDR: prefix("10.1.0.1/32"), Iface: "a", MAC: net.HardwareAddr{1}},
		"MAC for net": {CIDR: prefix("10.1.0.0/16"), Iface: "a", MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}},
	}
	for what, target := range bad {
		tab.SetRoutes("x", []Target{target, good})
		if err := tab.Apply(ctx); err == nil || !strings.Contains(err.Error(), "of x: ") {
			t.Errorf("%s: %v", what, err)
		}
		wantState(t, f, "10.0.0.0/24 dev 1 proto 202")
	}
	tab.SetRoutes("x", []Target{good})
	mustApply(t, tab)
}

// TestHeldUntilForgotten: a route waits until the connections of the address's last owner are removed; the others do not wait.
func TestHeldUntilForgotten(t *testing.T) {
	f := newFake(t)
	tab := fakeTable(f, Config{})
	started, release := make(chan struct{}), make(chan struct{})
	tab.flush.deleteFlows = func(ctx context.Context, addrs []netip.Addr) error {
		close(started)
		<-release
		return f.conntrack(ctx, addrs)
	}
	for i, name := range []string{"a", "b"} {
		f.setLink(i+1, true)
		tab.OnIfaceStateChanged(name, i+1, true)
	}
	tab.SetRoutes("ep/a", []Target{to("a", "10.0.0.1/32")})
	mustApply(t, tab)
	tab.DeleteClass("ep/a")
	mustApply(t, tab) // does not wait
	<-started
	tab.SetRoutes("ep/b", []Target{to("b", "10.0.0.1/32"), to("b", "10.0.0.2/32")})
	short, cancel := context.WithCancel(ctx)
	f.before = func(op) { cancel() }
	if err := tab.Apply(short); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	wantState(t, f, "10.0.0.2/32 dev 2 proto 202")
	f.before = func(o op) {
		if len(f.served) > 1 {
			t.Error("added too early")
		}
	}
	close(release)
	mustApply(t, tab)
	wantState(t, f, "10.0.0.1/32 dev 2 proto 202", "10.0.0.2/32 dev 2 proto 202")
}

// TestFlushFails: the address's new owner still gets its route, after three tries.
func TestFlushFails(t *testing.T) {
	f := newFake(t)
	tab := fakeTable(f, Config{})
	tries := 0
	tab.flush.deleteFlows = func(context.Context, []netip.Addr) error {
		tries++
		return errFault
	}
	for i, name := range []string{"a", "b"} {
		f.setLink(i+1, true)
		tab.OnIfaceStateChanged(name, i+1, true)
	}
	tab.SetRoutes("ep/a", []Target{to("a", "10.0.0.1/32")})
	mustApply(t, tab)
	tab.DeleteClass("ep/a")
	f.served = map[netip.Addr]int{}
	tab.SetRoutes("ep/b", []Target{to("b", "10.0.0.1/32")})
	mustApply(t, tab)
	wantState(t, f, "10.0.0.1/32 dev 2 proto 202")
	if tries != 3 {
		t.Errorf("%d tries", tries)
	}
}

// TestRestartWritesNothing: another process with the same desired state writes nothing.
func TestRestartWritesNothing(t *testing.T) {
	f := newFake(t)
	f.setLink(1, true)
	for range 2 {
		f.writes, f.lists = 0, 0
		tab := fakeTable(f, Config{})
		tab.OnIfaceStateChanged("a", 1, true)
		tab.SetRoutes("x", []Target{
			to("a", "10.0.0.1/32"), {CIDR: prefix("10.1.0.0/16"), Iface: "a", GW: netip.MustParseAddr("10.0.0.1"), MTU: 1400,
				MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}},
			{CIDR: prefix("10.2.0.0/16"), Type: Blackhole}, {CIDR: prefix("10.3.0.0/16"), Type: Throw},
		})
		mustApply(t, tab)
	}
	if f.writes != 0 || f.lists != 1 {
		t.Errorf("%d writes, %d listings", f.writes, f.lists)
	}
}

// model is a random sequence of events, with the expected result.
type model struct {
	t     *testing.T
	rnd   *rand.Rand
	f     *fakeKernel
	tab   *Table
	want  map[string][]Target
	index map[string]int // 0: the link does not exist
	last  int

	foreign map[netip.Prefix]bool // routes of others that have the place of ours for a while
}

func TestRandom(t *testing.T) {
	for seed := range uint64(1000) {
		m := &model{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), f: newFake(t), want: map[string][]Target{}, index: map[string]int{},
			foreign: map[netip.Prefix]bool{}}
		m.tab = fakeTable(m.f, Config{})
		m.f.routes = []route{{dst: prefix("10.9.9.9/32"), typ: unix.RTN_UNICAST, protocol: unix.RTPROT_STATIC}}
		for range 60 {
			m.step()
		}
		m.f.fail, m.f.lose, m.f.failList, m.f.before = nil, nil, nil, nil
		m.removeForeign()
		for range 2 { // the first one may find that the recorded state is wrong
			mustApply(t, m.tab)
			m.tab.Resync()
		}
		mustApply(t, m.tab)
		wantState(t, m.f, m.expected()...)
		if m.tab.Pending() {
			t.Errorf("seed %d: pending", seed)
		}
		m.restart()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// restart replaces the table by that of another process with the same desired state: it must find nothing to do.
func (m *model) restart() {
	tab := fakeTable(m.f, Config{})
	m.f.writes = 0
	for name, index := range m.index {
		if index > 0 {
			tab.OnIfaceStateChanged(name, index, m.f.links[index].up)
		}
	}
	for class, targets := range m.want {
		tab.SetRoutes(class, targets)
	}
	mustApply(m.t, tab)
	if m.f.writes > 0 {
		m.t.Errorf("%d writes after a restart", m.f.writes)
	}
}

var linkNames = []string{"a", "b", "c"}

func (m *model) step() {
	name := linkNames[m.rnd.IntN(len(linkNames))]
	index := m.index[name]
	switch m.rnd.IntN(11) {
	case 7:
		m.addForeign()
	case 0, 1, 2:
		class := fmt.Sprintf("class%d", m.rnd.IntN(3))
		m.want[class] = m.targets()
		m.tab.SetRoutes(class, m.want[class])
	case 3: // a link appears, or comes up
		if index == 0 {
			m.last++
			index = m.last
			m.index[name] = index
		}
		m.f.setLink(index, true)
		m.tab.OnIfaceStateChanged(name, index, true)
	case 4: // down; or down and up, of which only the latter is reported
		if index > 0 {
			flap := m.f.links[index].up && chance(m.rnd, 50)
			m.f.setLink(index, false)
			if flap {
				m.f.setLink(index, true)
			}
			m.tab.OnIfaceStateChanged(name, index, flap)
		}
	case 5:
		if index > 0 {
			m.f.delLink(index)
			m.index[name] = 0
			m.tab.OnIfaceStateChanged(name, index, false)
		}
	case 6: // another program removes a route of ours
		if n := len(m.f.routes); m.f.routes[n-1].protocol == DefaultProtocol {
			m.f.routes = slices.Delete(m.f.routes, n-1, n)
			m.tab.Resync()
		}
	default:
		m.f.lose = func() bool { return chance(m.rnd, 2) }
		m.f.failList = func() bool { return chance(m.rnd, 10) }
		m.f.fail = func(op) error {
			if chance(m.rnd, 10) {
				return unix.ENOMEM
			}
			return nil
		}
		if err := m.tab.Apply(ctx); err != nil && !errors.Is(err, unix.ENOMEM) && !errors.Is(err, errFault) &&
			!errors.Is(err, unix.EEXIST) && !strings.Contains(err.Error(), "routing protocol 4 has one") {
			m.t.Error(err)
		}
	}
}

// addForeign adds a route of another program to a destination without a route.
func (m *model) addForeign() {
	dst := prefix(fmt.Sprintf("10.0.0.%d/32", m.rnd.IntN(6)))
	if !slices.ContainsFunc(m.f.routes, func(r route) bool { return r.dst == dst }) {
		m.f.routes = append(m.f.routes, route{dst: dst, typ: unix.RTN_UNICAST, protocol: unix.RTPROT_STATIC, index: 99})
		m.foreign[dst] = true
		m.tab.Resync() // the recorded state may no longer be true
	}
}

// removeForeign removes the other program's routes, all of which must still exist.
func (m *model) removeForeign() {
	m.f.routes = slices.DeleteFunc(m.f.routes, func(r route) bool {
		theirs := r.index == 99 && m.foreign[r.dst]
		if theirs {
			delete(m.foreign, r.dst)
		}
		return theirs
	})
	if len(m.foreign) > 0 {
		m.t.Errorf("routes of others are gone: %v", m.foreign)
	}
}

func (m *model) targets() (out []Target) {
	for range m.rnd.IntN(5) {
		t := Target{CIDR: prefix(fmt.Sprintf("10.0.0.%d/32", m.rnd.IntN(6))), Iface: linkNames[m.rnd.IntN(len(linkNames))]}
		switch m.rnd.IntN(6) {
		case 0:
			t.CIDR = prefix(fmt.Sprintf("10.%d.0.0/16", m.rnd.IntN(3)))
			t.GW = netip.MustParseAddr("10.7.7.7")
		case 1:
			t.Type, t.Iface = Blackhole, ""
		case 2:
			t.MTU = 1400
		case 3, 4:
			t.MAC = net.HardwareAddr{2, 0, 0, 0, 0, byte(m.rnd.IntN(2))}
		}
		out = append(out, t)
	}
	return out
}

// expected computes the kernel's state from scratch.
func (m *model) expected() (out []string) {
	all := map[netip.Prefix][]claim{}
	for class, targets := range m.want {
		for _, target := range targets {
			c, err := claimOf(class, 4, &target)
			if err != nil {
				m.t.Fatal(err)
			}
			if c.iface == "" || m.index[c.iface] > 0 && m.f.links[m.index[c.iface]].up {
				all[c.dst] = append(all[c.dst], c)
			}
		}
	}
	neighs := map[string]bool{}
	for dst, claims := range all {
		c := slices.MinFunc(claims, compareClaims)
		s := fmt.Sprintf("%s dev %d proto 202", dst, m.index[c.iface])
		if c.typ != unix.RTN_UNICAST {
			s = fmt.Sprintf("type %d %s", c.typ, s)
		}
		if c.gw.IsValid() {
			s += " via " + c.gw.String()
		}
		if c.mtu > 0 {
			s += fmt.Sprintf(" mtu %d", c.mtu)
		}
		out = append(out, s)
		if c.hasMAC {
			neighs[fmt.Sprintf("neigh %s dev %d %x", c.neighbour(), m.index[c.iface], c.mac)] = true
		}
	}
	for n := range neighs {
		out = append(out, n)
	}
	return append(out, "10.9.9.9/32 dev 0 proto 4")
}
