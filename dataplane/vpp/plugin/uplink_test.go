package plugin_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/af_packet"
	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed/bulk"
	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/netns"
)

// TestUplink: large packets pass from one VPP to another without segmentation, with and without VXLAN, over IPv4 and IPv6. Every byte
// arrives, and VPP's own rings get none of the packets.
func TestUplink(t *testing.T) {
	for _, mode := range []string{"plain", "VXLAN over IPv4", "VXLAN over IPv6"} {
		t.Run(mode, func(t *testing.T) {
			matrix.Only(t, "VXLAN_over_IPv4")
			one, two := uplinkRigs(t)
			a, b, c := one.tap("a", "gso"), two.tap("b", "gso"), two.veth("c")
			for _, end := range []struct{ own, other *rig }{{one, two}, {two, one}} {
				end.own.joinOver(mode, end.own.number(), end.other.number())
			}
			one.carrySome(a, b)
			one.carrySome(a, c)
			for _, r := range []*rig{one, two} {
				for node, what := range map[string]string{"contiv-offload-output": "that the kernel may cut", "contiv-uplink-input": "of several segments"} {
					if r.counter(node, what) == 0 {
						r.Errorf("rig %d: %s has counted no packets %s", r.number(), node, what)
					}
				}
				if n := r.counter("af-packet-input", "partial"); n != 0 {
					r.Errorf("rig %d: %d large packets came to VPP's own ring", r.number(), n)
				}
				r.noneRefused()
			}
		})
	}
}

// TestUplinkTaken: an interface that is no longer an uplink has no sockets of the plugin: VPP's own ring receives everything, and the
// neighbour sends no more large packets. When it becomes an uplink again, large packets pass again.
func TestUplinkTaken(t *testing.T) {
	one, two := uplinkRigs(t)
	a, b := one.tap("a", "gso"), two.tap("b", "gso")
	one.joinOver("plain", 1, 2)
	two.joinOver("plain", 2, 1)
	taken := func() int { return two.counter("contiv-uplink-input", "of several segments") }
	for n := range 3 {
		before, is := taken(), n%2 == 0
		two.takeUplink(is)
		one.carrySome(a, b)
		if !is && taken() != before {
			t.Errorf("round %d: %d large packets by the uplink before, %d afterwards", n, before, taken())
		}
		if is {
			one.eventually("large packets pass", func() bool { // the neighbour is queried once per second
				one.carrySome(a, b)
				return taken() > before
			})
		}
	}
}

// TestUplinkOpensLater: the kernel rejects the sockets of an uplink, because VPP has too many files. Packets pass, segmented by VPP. When the kernel
// accepts the sockets, large packets pass.
func TestUplinkOpensLater(t *testing.T) {
	one, two := uplinkRigs(t)
	a, b := one.tap("a", "gso"), two.tap("b", "gso")
	one.joinOver("plain", 1, 2)
	two.joinOver("plain", 2, 1)
	two.takeUplink(false)
	var limit unix.Rlimit
	two.do(nil, unix.Prlimit(two.vpp.PID(), unix.RLIMIT_NOFILE, nil, &limit))
	two.do(nil, unix.Prlimit(two.vpp.PID(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1, Max: limit.Max}, nil))
	two.takeUplink(true)
	large := func() int { return two.counter("contiv-uplink-input", "of several segments") }
	before := large()
	one.carrySome(a, b)
	if n := large(); n != before {
		t.Fatalf("%d large packets without sockets", n-before)
	}
	two.do(nil, unix.Prlimit(two.vpp.PID(), unix.RLIMIT_NOFILE, &limit, nil))
	one.eventually("large packets pass", func() bool {
		one.carrySome(a, b)
		return large() > before
	})
}

// offloads turns the offloads of a pod's kernel to its device on or off.
func (r *rig) offloads(p *port, value string) {
	r.Helper()
	for _, feature := range []string{"tx", "tso", "gso", "tx-udp-segmentation"} {
		if _, err := p.Run(r.Context(), "ethtool", "-K", "eth0", feature, value); err != nil {
			r.Fatal(err)
		}
	}
}

// carrySome transfers less data than carry.
func (r *rig) carrySome(a, to *port) {
	r.Helper()
	r.carryLoads(a, to, bulk.Load{Up: 1, Length: 8 << 20}, bulk.Load{Up: 2, Down: 2, Length: 2 << 20})
}

// ---- two rigs ----

type uplinkOptions struct {
	workers int
	without int // number of the rig without the plugin; 0: both have it
}

func uplinkRigs(t *testing.T) (one, two *rig) {
	t.Helper()
	return uplinkRigsOf(t, uplinkOptions{})
}

// uplinkRigsOf returns two VPPs, each in a namespace with one end of a VETH, which is its uplink. The MTU has room for a tunnel header
// around packets of pods.
func uplinkRigsOf(t *testing.T, o uplinkOptions) (one, two *rig) {
	t.Helper()
	const mtu = 1600
	var rigs []*rig
	for n := range 2 {
		ns, err := netns.New(t.Context(), fmt.Sprintf("cvup%d-%d", n, os.Getpid()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ns.Delete(context.Background()) })
		opts := vpptest.Options{Vhostshim: true, Netns: ns.Name, Workers: o.workers, Buffers: 16384, FewPlugins: []string{"af_packet", "vxlan"}}
		make := newRig
		if o.without == n+1 {
			make = newPlainRig
		}
		r := make(t, opts)
		r.netns, r.pods = ns, 10*n
		rigs = append(rigs, r)
	}
	one, two = rigs[0], rigs[1]
	if _, err := one.netns.Run(t.Context(), "ip", "link", "add", "u0", "mtu", fmt.Sprint(mtu), "type", "veth", "peer", "name", "u0", "mtu", fmt.Sprint(mtu), "netns", two.netns.Name); err != nil {
		t.Fatal(err)
	}
	for n, r := range rigs {
		if _, err := r.netns.Run(t.Context(), "ip", "link", "set", "u0", "up"); err != nil {
			t.Fatal(err)
		}
		req := iface.AfPacketRequest("u0", mtu, iface.DefaultAfPacketRings())
		req.NumRxQueues = uint16(max(o.workers, 1))
		req.NumTxQueues = req.NumRxQueues
		r.do(nil, r.conn.Invoke(t.Context(), req, &af_packet.AfPacketCreateV3Reply{}))
		r.cli("set interface mtu %d host-u0", mtu)
		r.cli("set interface state host-u0 up")
		r.cli("set interface ip address host-u0 10.2.0.%d/24", n+1)
		r.cli("set interface ip address host-u0 fd00:2::%d/64", n+1)
		if o.without == n+1 {
			continue
		}
		r.do(r.api.ContivConfigSet(t.Context(), &contiv.ContivConfigSet{TunnelPorts: []uint16{4789, 0, 0, 0}}))
		r.takeUplink(true)
	}
	return one, two
}

// number returns 1 or 2.
func (r *rig) number() int { return map[bool]int{true: 1, false: 2}[r.pods < 10] }

// joinOver gives a rig the path to the pods of the other rig, through the uplink itself or through VXLAN.
func (r *rig) joinOver(mode string, own, other int) {
	r.Helper()
	v4, v6 := "10.2.0.%d", "fd00:2::%d"
	if mode != "plain" {
		ends := fmt.Sprintf("src 10.2.0.%d dst 10.2.0.%d", own, other)
		if strings.Contains(mode, "IPv6") {
			ends = fmt.Sprintf("src fd00:2::%d dst fd00:2::%d", own, other)
		}
		r.cli("create vxlan tunnel %s vni 5", ends)
		r.cli("create loopback interface mac 02:00:00:00:00:0%d", own) // otherwise both have the same address
		for _, command := range []string{"l2 bridge loop0 1 bvi", "l2 bridge vxlan_tunnel0 1", fmt.Sprintf("ip address loop0 10.3.0.%d/24", own),
			fmt.Sprintf("ip address loop0 fd00:3::%d/64", own), "state loop0 up", "state vxlan_tunnel0 up"} {
			r.cli("set interface %s", command)
		}
		v4, v6 = "10.3.0.%d", "fd00:3::%d"
	}
	r.routeOver(v4, v6, other)
}

// routeOver gives a rig the routes to the pods of the other rig, via the other's addresses.
func (r *rig) routeOver(v4, v6 string, other int) {
	r.Helper()
	for n := range 2 {
		third := 10*(other-1) + n + 1
		r.cli("ip route add 10.1.%d.0/24 via %s", third, fmt.Sprintf(v4, other))
		r.cli("ip route add fd00:1:%d::/64 via %s", third, fmt.Sprintf(v6, other))
	}
}
