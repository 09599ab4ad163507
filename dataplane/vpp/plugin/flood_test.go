package plugin_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/ip_neighbor"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed/forge"
	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/netns"
)

const (
	neighboursMax = 16384 // neighbours_limit.c
	newASecond    = 256   // core/neighbours.c
)

// claimKinds are the kinds of messages whose sender VPP stores as a neighbour.
var claimKinds = []string{"ARP request", "ARP reply", "neighbour solicitation", "neighbour advertisement", "router solicitation"}

// TestFloodOfNeighbours: a machine on the uplink's network claims 60,000 addresses by each kind of message, more than VPP's table can hold,
// and continues. Meanwhile VPP accepts static neighbours, and packets of a pod reach a node and a next hop that were not neighbours before.
// Afterwards they reach any other machine.
func TestFloodOfNeighbours(t *testing.T) {
	for _, workers := range []int{0, 2} {
		t.Run(fmt.Sprintf("workers=%d", workers), func(t *testing.T) {
			matrix.Only(t, "workers=2")
			f := newClaimant(t, workers)
			begin := time.Now()
			for _, kind := range claimKinds {
				f.claim(kind, 60_000)
			}
			most := newASecond*int(time.Since(begin).Seconds()+2) + 16
			t.Logf("after %s: %d IPv4, %d IPv6", time.Since(begin).Round(time.Second), f.neighbours("ip4"), f.neighbours("ip6"))
			for _, family := range []string{"ip4", "ip6"} {
				if n := f.neighbours(family); n < newASecond || n > most {
					t.Errorf("%s: VPP has %d neighbours, want %d to %d", family, n, newASecond, most)
				}
			}
			f.while(func() {
				f.static("10.1.2.200")
				f.static("fd00:1:2::200")
				f.network("10.1.2.50/32", contiv.CONTIV_CLASS_API_NODE)
				f.network("fd00:1:2::50/128", contiv.CONTIV_CLASS_API_NODE)
				f.arrives("10.1.2.50", "fd00:1:2::50")
				f.cli("ip route add 10.9.0.0/24 via 10.1.2.60 %s", f.up.device)
				f.cli("ip route add fd00:9::/64 via fd00:1:2::60 %s", f.up.device)
				f.run(f.up.Namespace, "ip addr add 10.1.2.60/24 dev eth0")
				f.run(f.up.Namespace, "ip addr add fd00:1:2::60/64 dev eth0 nodad")
				f.arrives("10.9.0.1", "fd00:9::1")
			})
			f.arrives("10.1.2.70", "fd00:1:2::70")
			for _, node := range []string{"contiv-arp", "contiv-discovery"} {
				if f.counter(node, "neighbour above the limit") == 0 {
					t.Errorf("%s: no message was above the limit", node)
				}
			}
			f.sound()
		})
	}
}

// TestOldestNeighboursGo: if there are more dynamic neighbours than allowed, the oldest are removed. Static ones and those that routes need
// are kept, so that packets still reach them.
func TestOldestNeighboursGo(t *testing.T) {
	matrix.Only(t)
	f := newClaimant(t, 2)
	f.cli("ip route add 10.9.0.0/24 via 10.1.2.60 %s", f.up.device)
	f.cli("ip route add fd00:9::/64 via fd00:1:2::60 %s", f.up.device)
	f.network("10.1.2.50/32", contiv.CONTIV_CLASS_API_NODE)
	f.network("fd00:1:2::50/128", contiv.CONTIV_CLASS_API_NODE)
	kept := []string{"10.1.2.50", "10.1.2.60", "10.1.2.200", "fd00:1:2::50", "fd00:1:2::60", "fd00:1:2::200"}
	for _, a := range kept {
		kind := ""
		if strings.HasSuffix(a, "200") {
			kind = "static"
		}
		f.cli("set ip neighbor %s %s %s 02:09:09:09:09:09", kind, f.up.device, a)
	}
	for _, first := range []string{"172.16.1.0", "fd00:1:2::1:0"} {
		f.cli("set ip neighbor %s %s 02:07:00:00:00:00 count %d", f.up.device, first, neighboursMax+100)
	}
	for _, family := range []string{"ip4", "ip6"} {
		f.eventually("the oldest neighbours go", func() bool { return f.neighbours(family) <= neighboursMax+1 }) // one is static
		if n := f.neighbours(family); n < neighboursMax-1 {
			t.Errorf("%s: only %d neighbours are left", family, n)
		}
	}
	left := f.cli("show ip neighbors")
	for _, a := range append(kept, netip.MustParseAddr("172.16.1.0").Next().String()) {
		if want := a != "172.16.1.1"; strings.Contains(left, " "+a+" ") != want {
			t.Errorf("%s is a neighbour of VPP: %t, want %t", a, !want, want)
		}
	}
	f.sound()
}

// TestNeighboursComeAndGo: VPP's memory does not grow when neighbours are added and removed repeatedly.
func TestNeighboursComeAndGo(t *testing.T) {
	matrix.Only(t)
	f := newClaimant(t, 0)
	round := func() {
		for _, first := range []string{"172.16.1.0", "fd00:1:2::1:0"} {
			f.cli("set ip neighbor %s %s 02:07:00:00:00:00 count 10000", f.up.device, first)
			f.cli("set ip neighbor del %s %s 02:07:00:00:00:00 count 10000", f.up.device, first)
		}
		begin := time.Now()
		f.eventually("the plugin has looked, as it does once a second", func() bool { return time.Since(begin) > 1500*time.Millisecond })
	}
	round()
	before := f.heapUsed()
	for range 10 {
		round()
	}
	if now := f.heapUsed(); now > before+0.5 {
		t.Errorf("VPP used %.1f MB before 200,000 neighbours came and went, %.1f MB afterwards", before, now)
	}
	f.sound()
}

// claimant is a machine on the uplink's network that claims addresses.
type claimant struct {
	*rig
	pod, up *port
	path    forge.Path
	next    uint32
}

func newClaimant(t *testing.T, workers int) *claimant {
	t.Helper()
	ns, err := netns.New(t.Context(), fmt.Sprintf("cvvpp-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Delete(context.Background()) })
	sanitize := ""
	if os.Getenv("CONTIV_SANITIZE") != "" { // the default is the plugin as shipped, because the test compares rates
		sanitize = sanitizers()
	}
	r := newRig(t, vpptest.Options{Vhostshim: true, Netns: ns.Name, Workers: workers, Sanitize: sanitize, HeapMB: 512, Buffers: 16384})
	r.netns = ns
	f := &claimant{rig: r, pod: r.tap("a", ""), up: r.veth("u")}
	r.endpoint(f.up, contiv.CONTIV_ROLE_API_UPLINK)
	r.cli("set interface ip address %s 172.16.0.1/12", f.up.device)
	r.reach(f.pod, f.up.v4)
	r.reach(f.pod, f.up.v6)
	r.reach(f.up, f.pod.v4)
	f.path = r.path(f.up, f.up.v4, f.up.v4)
	return f
}

// neighbours returns the number of neighbours that VPP has on the uplink.
func (f *claimant) neighbours(family string) int {
	f.Helper()
	return strings.Count(f.cli("show %s neighbors", family), f.up.device)
}

var heapUsed = regexp.MustCompile(`used: ([0-9.]+)M`)

// heapUsed returns the used heap in MB.
func (f *claimant) heapUsed() float64 {
	f.Helper()
	m := heapUsed.FindStringSubmatch(f.cli("show memory main-heap"))
	if m == nil {
		f.Fatal("no line of the heap's use")
	}
	used, err := strconv.ParseFloat(m[1], 64)
	f.do(nil, err)
	return used
}

// static adds a static neighbour, like the agent.
func (f *claimant) static(a string) {
	f.Helper()
	req := &ip_neighbor.IPNeighborAddDel{IsAdd: true, Neighbor: ip_neighbor.IPNeighbor{SwIfIndex: f.up.index, Flags: ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC,
		MacAddress: ethernet_types.MacAddress{2, 9, 9, 9, 9, 9}, IPAddress: address(netip.MustParseAddr(a))}}
	if _, err := ip_neighbor.NewServiceClient(f.conn).IPNeighborAddDel(f.Context(), req); err != nil {
		f.Errorf("static neighbour %s: %v", a, err)
	}
}

// arrives adds addresses to the machine, and checks that packets of the pod reach them.
func (f *claimant) arrives(addrs ...string) {
	f.Helper()
	for _, text := range addrs {
		a := netip.MustParseAddr(text)
		if bits := "/24"; a.Is6() {
			f.run(f.up.Namespace, fmt.Sprintf("ip addr add %s/64 dev eth0 nodad", a))
		} else {
			f.run(f.up.Namespace, "ip addr add "+text+bits+" dev eth0")
		}
		begin := time.Now()
		for f.pod.PingOnce(f.Context(), text, 56) != nil {
			if time.Since(begin) > 20*time.Second {
				f.Errorf("packets of the pod do not reach %s within 20 s", a)
				break
			}
		}
		f.Logf("%s is reached after %s", a, time.Since(begin).Round(100*time.Millisecond))
	}
}

// while calls a function while the machine claims 10,000 addresses per second.
func (f *claimant) while(run func()) {
	f.Helper()
	var over context.CancelFunc
	ctx, over := context.WithCancel(f.Context())
	var done sync.WaitGroup
	done.Go(func() {
		s, err := forge.Open(f.up.Namespace, "eth0", false, true)
		if err != nil {
			f.Error(err)
			return
		}
		defer s.Close()
		for tick := time.NewTicker(10 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			for i := range 100 {
				f.message(s, claimKinds[i%len(claimKinds)])
			}
		}
	})
	run()
	over()
	done.Wait()
}

// claim sends n messages, not faster than VPP receives them.
func (f *claimant) claim(kind string, n int) {
	f.Helper()
	s, err := forge.Open(f.up.Namespace, "eth0", false, true)
	f.do(nil, err)
	defer s.Close()
	before := f.received()
	for i := 1; i <= n; i++ {
		f.message(s, kind)
		if i%500 == 0 {
			f.eventually("VPP receives the claims", func() bool { return f.received()-before > i-500 })
		}
	}
}

// message claims another address, with a hardware address of its own.
func (f *claimant) message(s *forge.Socket, kind string) {
	f.next++
	n, p := f.next, f.path
	p.From = net.HardwareAddr{2, 7, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
	v4 := [4]byte(binary.BigEndian.AppendUint32(nil, 0xac100000+(n+256)%0xf0000))
	b := f.up.v6.As16()
	binary.BigEndian.PutUint32(b[12:], 0x10000000+n)
	own, v6 := f.gateway(f.up.v6), netip.AddrFrom16(b)
	var frame []byte
	switch p.Src, p.Dst = v6, own; kind {
	case "neighbour solicitation":
		frame = p.Discovery(forge.NeighborSolicitation, own, p.From)
	case "neighbour advertisement":
		p.Src = f.up.v6
		frame = p.Discovery(forge.NeighborAdvertisement, v6, p.From)
	case "router solicitation":
		p.Dst = netip.MustParseAddr("ff02::2")
		frame = p.Discovery(forge.RouterSolicitation, own, p.From)
	default:
		p.Src = netip.AddrFrom4(v4)
		operation := map[string]uint16{"ARP request": forge.ARPRequest, "ARP reply": forge.ARPReply}[kind]
		frame = p.ARP(operation, netip.MustParseAddr("172.16.0.1"), p.From)
	}
	s.Send(frame, forge.Offload{})
}
