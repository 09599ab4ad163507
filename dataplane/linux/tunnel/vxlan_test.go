package tunnel

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/dataplane/netlink/nettest"
)

var ctx = context.Background()

func macOf(t testing.TB, s string) net.HardwareAddr {
	t.Helper()
	m, err := net.ParseMAC(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func apply(t testing.TB, v *VXLAN) {
	t.Helper()
	if err := v.Apply(ctx); err != nil {
		t.Fatal(err)
	}
}

// counting counts requests that write.
type counting struct {
	kernel
	writes int
}

func (c *counting) Do(ctx context.Context, b *netlink.Batch) ([]error, error) {
	c.writes += b.Len()
	return c.kernel.Do(ctx, b)
}

func count(v *VXLAN) *counting {
	c := &counting{}
	open := v.open
	v.open = func() (kernel, error) {
		k, err := open()
		c.kernel = k
		return c, err
	}
	return c
}

var notMTU = strings.NewReplacer("minmtu ", "", "maxmtu ", "")

// state returns the kernel's state of the device.
func state(ns *nettest.NS, dev string) string {
	link := regexp.MustCompile(`\bmtu \d+|,UP|link/ether \S+|id \d+ |` +
		`local \S+|dstport \d+|nolearning|inet6? \S+ scope (global|host)`)
	out := link.FindAllString(notMTU.Replace(ns.IP("-d addr show dev "+dev)), -1)
	fdb := strings.Split(strings.TrimSpace(ns.Run("bridge fdb show dev "+dev)), "\n")
	for i := range fdb {
		fdb[i] = "fdb " + strings.TrimSpace(fdb[i])
	}
	for _, f := range []string{"-4", "-6"} {
		for _, n := range strings.Split(strings.TrimSpace(ns.IP(f+" neigh show dev "+dev+" nud permanent")), "\n") {
			fdb = append(fdb, "neigh "+strings.TrimSpace(n))
		}
	}
	slices.Sort(fdb)
	fdb = slices.DeleteFunc(fdb, func(s string) bool { return s == "fdb " || s == "neigh " })
	return strings.Join(append(out, fdb...), "\n")
}

func local(t testing.TB) []VTEP {
	m := macOf(t, "02:00:00:00:00:01")
	return []VTEP{
		{Node: "n1", MAC: m, TunnelAddr: addr("10.1.1.0"), ParentAddr: addr("192.168.0.1")},
		{Node: "n1", MAC: m, TunnelAddr: addr("fd01::1:0"), ParentAddr: addr("192.168.0.1")},
	}
}

func peers(t testing.TB) []VTEP {
	m2, m3 := macOf(t, "02:00:00:00:00:02"), macOf(t, "02:00:00:00:00:03")
	return []VTEP{
		{Node: "n2", MAC: m2, TunnelAddr: addr("10.1.2.0"), ParentAddr: addr("192.168.0.2")},
		{Node: "n2", MAC: m2, TunnelAddr: addr("fd01::2:0"), ParentAddr: addr("192.168.0.2")},
		{Node: "n3", MAC: m3, TunnelAddr: addr("10.1.3.0"), ParentAddr: addr("192.168.0.3")},
	}
}

const wantState = `,UP
mtu 1430
link/ether 02:00:00:00:00:01
id 10 
local 192.168.0.1
dstport 4789
nolearning
inet 10.1.1.0/32 scope global
inet6 fd01::1:0/128 scope global
fdb 02:00:00:00:00:02 dst 192.168.0.2 self permanent
fdb 02:00:00:00:00:03 dst 192.168.0.3 self permanent
neigh 10.1.2.0 lladdr 02:00:00:00:00:02 PERMANENT proto 202
neigh 10.1.3.0 lladdr 02:00:00:00:00:03 PERMANENT proto 202
neigh fd01::2:0 lladdr 02:00:00:00:00:02 PERMANENT proto 202`

func node(t testing.TB) (*nettest.NS, *VXLAN, *counting) {
	ns := nettest.New(t)
	ns.IP("link add eth0 type veth peer name eth1")
	ns.IP("link set eth1 up")
	ns.IP("link set eth0 mtu 1480 up")
	ns.IP("addr add 192.168.0.1/24 dev eth0")
	v := NewVXLAN(VXLANConfig{NS: ns.Namespace})
	t.Cleanup(func() { v.Close() })
	c := count(v)
	v.SetLocal(local(t)...)
	v.SetVTEPs(peers(t))
	return ns, v, c
}

func checkState(t *testing.T, ns *nettest.NS, what string) {
	t.Helper()
	if got := state(ns, "contiv-vxlan"); got != wantState {
		t.Fatalf("%s:\n got\n%s\nwant\n%s", what, got, wantState)
	}
}

func TestDevice(t *testing.T) {
	ns, v, c := node(t)
	apply(t, v)
	checkState(t, ns, "at first")

	c.writes = 0
	apply(t, v)
	v.Resync()
	apply(t, v)
	again := NewVXLAN(VXLANConfig{NS: ns.Namespace}) // another process
	defer again.Close()
	c2 := count(again)
	again.SetLocal(local(t)...)
	again.SetVTEPs(peers(t))
	apply(t, again)
	if c.writes+c2.writes != 0 {
		t.Errorf("%d and %d writes with nothing to do", c.writes, c2.writes)
	}
}

// TestDisturbed: all changes by other programs to the device are repaired.
func TestDisturbed(t *testing.T) {
	ns, v, _ := node(t)
	apply(t, v)
	for _, step := range []struct {
		what     string
		commands []string
		reported bool // by the interface monitor or the refresh timer; otherwise Apply detects it itself
	}{
		{"down", []string{"ip link set contiv-vxlan down"}, false},
		{"down and up", []string{"ip link set contiv-vxlan down", "ip link set contiv-vxlan up"}, true},
		{"mtu", []string{"ip link set contiv-vxlan mtu 1400"}, false},
		{"mac", []string{"ip link set contiv-vxlan address 02:00:00:00:00:99"}, false},
		{"removed", []string{"ip link del contiv-vxlan"}, false},
		{"address gone", []string{"ip addr del 10.1.1.0/32 dev contiv-vxlan"}, true},
		{"another address", []string{"ip addr add 10.7.7.7/24 dev contiv-vxlan",
			"ip addr add fd07::7/64 dev contiv-vxlan nodad"}, true},
		{"fdb gone", []string{"bridge fdb del 02:00:00:00:00:02 dev contiv-vxlan"}, true},
		{"fdb elsewhere", []string{"bridge fdb replace 02:00:00:00:00:02 dst 192.168.0.77 dev contiv-vxlan"}, true},
		{"fdb twice", []string{"bridge fdb append 02:00:00:00:00:02 dst 192.168.0.77 dev contiv-vxlan"}, true},
		{"fdb dynamic", []string{"bridge fdb del 02:00:00:00:00:03 dev contiv-vxlan",
			"bridge fdb add 02:00:00:00:00:03 dst 192.168.0.3 dynamic dev contiv-vxlan"}, true},
		{"unknown fdb entry", []string{"bridge fdb add 02:00:00:00:00:55 dst 192.168.0.55 dev contiv-vxlan",
			"bridge fdb append 00:00:00:00:00:00 dst 192.168.0.55 dev contiv-vxlan",
			"bridge fdb append 00:00:00:00:00:00 dst 192.168.0.56 dev contiv-vxlan"}, true},
		{"neighbour gone", []string{"ip neigh del 10.1.2.0 dev contiv-vxlan", "ip neigh del fd01::2:0 dev contiv-vxlan"}, true},
		{"neighbour elsewhere", []string{"ip neigh replace 10.1.2.0 lladdr 02:00:00:00:00:77 nud permanent dev contiv-vxlan"}, true},
		{"neighbour learnt", []string{"ip neigh replace 10.1.2.0 lladdr 02:00:00:00:00:77 nud reachable dev contiv-vxlan"}, true},
		{"unknown neighbour", []string{"ip neigh add 10.1.9.0 lladdr 02:00:00:00:00:09 nud permanent dev contiv-vxlan"}, true},
		{"other vni", []string{"ip link del contiv-vxlan",
			"ip link add contiv-vxlan type vxlan id 11 dstport 4789 local 192.168.0.1 nolearning"}, false},
		{"other port", []string{"ip link del contiv-vxlan",
			"ip link add contiv-vxlan type vxlan id 10 dstport 8472 local 192.168.0.1 nolearning"}, false},
		{"learning", []string{"ip link del contiv-vxlan",
			"ip link add contiv-vxlan type vxlan id 10 dstport 4789 local 192.168.0.1"}, false},
		{"group", []string{"ip link del contiv-vxlan",
			"ip link add contiv-vxlan type vxlan id 10 dstport 4789 local 192.168.0.1 nolearning remote 192.168.0.5"}, false},
		{"external", []string{"ip link del contiv-vxlan", "ip link add contiv-vxlan type vxlan external dstport 4789"}, false},
	} {
		for _, cmd := range step.commands {
			ns.Run(cmd)
		}
		if state(ns, "eth0") == "" {
			t.Fatal("no eth0")
		}
		if step.reported {
			v.OnIfaceStateChanged("contiv-vxlan")
		}
		apply(t, v)
		checkState(t, ns, step.what)
	}
}

func TestVTEPDelta(t *testing.T) {
	ns, v, c := node(t)
	apply(t, v)
	c.writes = 0
	moved := peers(t)[2]
	moved.ParentAddr = addr("192.168.0.33")
	v.SetVTEPs(append(peers(t)[:2], moved))
	apply(t, v)
	if c.writes != 1 {
		t.Errorf("%d writes for a VTEP that moved", c.writes)
	}
	if got := state(ns, "contiv-vxlan"); got != strings.Replace(wantState, "dst 192.168.0.3 ", "dst 192.168.0.33 ", 1) {
		t.Error(got)
	}
	c.writes = 0
	v.SetVTEPs(nil)
	apply(t, v)
	if got := state(ns, "contiv-vxlan"); strings.Contains(got, "fdb") || strings.Contains(got, "neigh") || c.writes != 5 {
		t.Errorf("%d writes, left:\n%s", c.writes, got)
	}
	v.SetLocal()
	apply(t, v)
	if ns.Try("ip link show contiv-vxlan") == nil {
		t.Error("the device is still there")
	}
	v.SetLocal(local(t)...)
	v.SetVTEPs(peers(t))
	apply(t, v)
	checkState(t, ns, "back")
	other := local(t)
	for i := range other {
		other[i].ParentAddr = addr("192.168.0.4")
	}
	ns.IP("addr add 192.168.0.4/24 dev eth0")
	v.SetLocal(other...)
	apply(t, v)
	if got := state(ns, "contiv-vxlan"); got != strings.Replace(wantState, "local 192.168.0.1", "local 192.168.0.4", 1) {
		t.Error(got)
	}
}

// TestBadVTEPs: the error names an invalid VTEP, and the others are written.
func TestBadVTEPs(t *testing.T) {
	ns, v, _ := node(t)
	bad := []VTEP{
		{Node: "x-none"},
		{Node: "x-group", MAC: macOf(t, "03:00:00:00:00:07"), ParentAddr: addr("192.168.0.7")},
		{Node: "x-family", MAC: macOf(t, "02:00:00:00:00:07"), ParentAddr: addr("fd00::7")},
		{Node: "x-mac", MAC: macOf(t, "02:00:00:00:00:02"), ParentAddr: addr("192.168.0.7")},
		{Node: "x-tunnel", MAC: macOf(t, "02:00:00:00:00:07"), TunnelAddr: addr("10.1.2.0"), ParentAddr: addr("192.168.0.7")},
	}
	v.SetVTEPs(append(bad, peers(t)...))
	err := v.Apply(ctx)
	if err == nil {
		t.Fatal("no error")
	}
	for _, b := range bad {
		if !strings.Contains(err.Error(), b.Node) {
			t.Errorf("%s is not named in %v", b.Node, err)
		}
	}
	checkState(t, ns, "with bad ones")
	v.SetVTEPs(peers(t))
	apply(t, v)
}

func TestNameOrVNITaken(t *testing.T) {
	ns, v, _ := node(t)
	ns.IP("link add contiv-vxlan type bridge")
	if err := v.Apply(ctx); err == nil || !strings.Contains(err.Error(), `"bridge"`) {
		t.Errorf("a bridge: %v", err)
	}
	if err := ns.Try("ip link show contiv-vxlan"); err != nil {
		t.Error("the bridge of another program was removed")
	}
	ns.IP("link del contiv-vxlan")
	ns.IP("link add other type vxlan id 10 dstport 4789 local 192.168.0.1")
	if err := v.Apply(ctx); !errors.Is(err, unix.EEXIST) || !strings.Contains(err.Error(), "VNI 10") {
		t.Errorf("VNI taken: %v", err)
	}
	ns.IP("link del other")
	apply(t, v)
	checkState(t, ns, "after all")
}

// TestTraffic: two nodes, packets of both families, over both families.
func TestTraffic(t *testing.T) {
	for _, f := range []table.Family{table.IPv4, table.IPv6} {
		t.Run(fmt.Sprintf("IPv%d", f), func(t *testing.T) {
			a, b := nettest.New(t), nettest.New(t)
			a.IP("link add eth0 type veth peer name eth0 netns " + b.Name)
			var vteps [2][]VTEP
			for i, ns := range []*nettest.NS{a, b} {
				ns.Run("sysctl -qw net.ipv6.conf.eth0.accept_dad=0")
				ns.IP("link set eth0 up")
				parent := fmt.Sprintf("192.168.0.%d/24", i+1)
				if f == table.IPv6 {
					parent = fmt.Sprintf("fd00::%d/64", i+1)
				}
				ns.IP("addr add " + parent + " dev eth0")
				m := net.HardwareAddr{2, 0, 0, 0, 0, byte(i + 1)}
				p := netip.MustParsePrefix(parent).Addr()
				vteps[i] = []VTEP{
					{Node: ns.Name, MAC: m, TunnelAddr: addr(fmt.Sprintf("10.1.%d.0", i)), ParentAddr: p},
					{Node: ns.Name, MAC: m, TunnelAddr: addr(fmt.Sprintf("fd01::%d:1", i)), ParentAddr: p},
				}
			}
			for i, ns := range []*nettest.NS{a, b} {
				v := NewVXLAN(VXLANConfig{Device: "vx", Family: f, NS: ns.Namespace})
				defer v.Close()
				v.SetLocal(vteps[i]...)
				v.SetVTEPs(vteps[1-i])
				apply(t, v)
				ns.IP(fmt.Sprintf("route add 10.1.%d.0 dev vx", 1-i))
				ns.IP(fmt.Sprintf("route add fd01::%d:1 dev vx", 1-i))
			}
			size := 1450 - 28
			if f == table.IPv6 {
				size = 1430 - 28
			}
			a.Run(fmt.Sprintf("ping -c1 -w5 -s %d -M do 10.1.1.0", size)) // the largest that fits
			a.Run("ping -6 -c1 -w5 fd01::1:1")                            // the kernel takes a moment to accept an IPv6 address as its own
		})
	}
}

// TestFaults: after a failure at any step, the next Apply without a fault succeeds.
func TestFaults(t *testing.T) {
	ns, v, _ := node(t)
	f := &faulty{rnd: rand.New(rand.NewPCG(1, 2))}
	open := v.open
	v.open = func() (kernel, error) {
		if f.hit() {
			return nil, errInjected
		}
		k, err := open()
		f.kernel = k
		return f, err
	}
	faults := 0
	for round := range 60 {
		switch round % 5 {
		case 0:
			_ = ns.Try("ip link del contiv-vxlan")
		case 1:
			_ = ns.Try("ip link set contiv-vxlan down")
		case 2:
			v.SetVTEPs(peers(t)[round%2:])
		case 3:
			v.SetVTEPs(peers(t))
			v.Resync()
		}
		f.on = true
		if err := v.Apply(ctx); err != nil {
			faults++
		}
		f.on = false
		if round%10 == 9 {
			v.SetVTEPs(peers(t))
			apply(t, v)
			checkState(t, ns, fmt.Sprintf("round %d", round))
		}
	}
	if faults < 10 {
		t.Errorf("only %d faults", faults)
	}
}

var errInjected = errors.New("injected")

// faulty fails one call in five: before its execution, or after it, with a lost answer.
type faulty struct {
	kernel
	on  bool
	rnd *rand.Rand
}

func (f *faulty) hit() bool { return f.on && f.rnd.IntN(5) == 0 }

func (f *faulty) Link(name string) (netlink.Link, bool, error) {
	if f.hit() {
		return netlink.Link{}, false, errInjected
	}
	return f.kernel.Link(name)
}

func (f *faulty) Addresses(index int) ([]netlink.Address, error) {
	if f.hit() {
		return nil, errInjected
	}
	return f.kernel.Addresses(index)
}

func (f *faulty) Forwarding(index int) ([]netlink.Neighbour, error) {
	if f.hit() {
		return nil, errInjected
	}
	return f.kernel.Forwarding(index)
}

func (f *faulty) Neighbours(index int) ([]netlink.Neighbour, error) {
	if f.hit() {
		return nil, errInjected
	}
	return f.kernel.Neighbours(index)
}

func (f *faulty) Do(ctx context.Context, b *netlink.Batch) ([]error, error) {
	if f.hit() {
		return nil, errInjected
	}
	failed, err := f.kernel.Do(ctx, b)
	if err == nil && f.hit() {
		return nil, fmt.Errorf("%w: %w", errInjected, netlink.ErrUnknown)
	}
	return failed, err
}

// BenchmarkNodes: a cluster of 1000 other nodes.
func BenchmarkNodes(b *testing.B) {
	vteps := make([]VTEP, 1000)
	for i := range vteps {
		hi, lo := byte(i>>8), byte(i)
		vteps[i] = VTEP{
			Node: fmt.Sprint("n", i), MAC: net.HardwareAddr{2, 0, 0, 1, hi, lo},
			TunnelAddr: netip.AddrFrom4([4]byte{10, 2, hi, lo}), ParentAddr: netip.AddrFrom4([4]byte{192, 168, hi + 1, lo}),
		}
	}
	b.Run("cold", func(b *testing.B) {
		ns, v, _ := node(b)
		for b.Loop() {
			b.StopTimer()
			_ = ns.Try("ip link del contiv-vxlan")
			b.StartTimer()
			v.SetVTEPs(vteps)
			apply(b, v)
		}
	})
	b.Run("resync", func(b *testing.B) {
		_, v, _ := node(b)
		v.SetVTEPs(vteps)
		apply(b, v)
		for b.Loop() {
			v.Resync()
			apply(b, v)
		}
	})
	b.Run("nothing", func(b *testing.B) {
		_, v, _ := node(b)
		v.SetVTEPs(vteps)
		apply(b, v)
		for b.Loop() {
			apply(b, v)
		}
	})
}
