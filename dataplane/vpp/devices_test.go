package vpp

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/af_packet"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/memif"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/kit"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed/poll"
)

func tap(name string, change ...func(*vpp_interfaces.Interface)) *vpp_interfaces.Interface {
	v := &vpp_interfaces.Interface{
		Name: name, Type: vpp_interfaces.Interface_TAP, Enabled: true,
		Link: &vpp_interfaces.Interface_Tap{Tap: &vpp_interfaces.TapLink{}},
	}
	for _, c := range change {
		c(v)
	}
	return v
}

func afPacket(name, dev string) *vpp_interfaces.Interface {
	return &vpp_interfaces.Interface{
		Name: name, Type: vpp_interfaces.Interface_AF_PACKET, Enabled: true, PhysAddress: "02:fe:00:00:00:01",
		Link: &vpp_interfaces.Interface_Afpacket{Afpacket: &vpp_interfaces.AfpacketLink{HostIfName: dev}},
	}
}

func TestTap(t *testing.T) {
	onVPP(t, vpptest.Options{Vhostshim: true}, func(t *testing.T, g *target) {
		roundTrip(t, g, Deps{},
			values{
				tap("tap-a", withIP("10.1.0.1/24"), func(v *vpp_interfaces.Interface) {
					v.PhysAddress = "02:fe:00:00:00:0a"
					v.GetTap().HostIfName, v.GetTap().RxRingSize = "cvtest0", 512
				}),
				tap("tap-b", func(v *vpp_interfaces.Interface) { v.GetTap().RxRingSize, v.Mtu = 512, 1450 }),
				tap("tap-c", func(v *vpp_interfaces.Interface) {
					v.RxModes = []*vpp_interfaces.Interface_RxMode{{DefaultMode: true, Mode: vpp_interfaces.Interface_RxMode_ADAPTIVE}}
				}),
			},
			values{
				tap("tap-a", withIP("10.1.0.1/24"), func(v *vpp_interfaces.Interface) {
					v.PhysAddress = "02:fe:00:00:00:1a"
					v.GetTap().HostIfName = "cvtest0"
				}),
				tap("tap-b"),
				tap("tap-c", func(v *vpp_interfaces.Interface) {
					v.RxModes = []*vpp_interfaces.Interface_RxMode{{Queue: 0, Mode: vpp_interfaces.Interface_RxMode_POLLING}}
				}),
			},
		)
	})
}

func TestRxPlacement(t *testing.T) {
	placed := func(p ...*vpp_interfaces.Interface_RxPlacement) values {
		return values{tap("tap-a", func(v *vpp_interfaces.Interface) { v.RxPlacements = p })}
	}
	onVPP(t, vpptest.Options{Vhostshim: true, Workers: 1}, func(t *testing.T, g *target) {
		roundTrip(t, g, Deps{},
			placed(&vpp_interfaces.Interface_RxPlacement{Queue: 0, Worker: 0}),
			placed(&vpp_interfaces.Interface_RxPlacement{Queue: 0, MainThread: true}),
		)
	})
}

// An interface has as many queues as are placed, each on the desired worker; another number of queues makes the interface
// again.
func TestQueuesAtWorkers(t *testing.T) {
	placed := func(workers ...uint32) (list []*vpp_interfaces.Interface_RxPlacement) {
		for queue, worker := range workers {
			list = append(list, &vpp_interfaces.Interface_RxPlacement{Queue: uint32(queue), Worker: worker})
		}
		return list
	}
	config := func(workers ...uint32) values {
		af := afPacket("af", "cvqueue0")
		af.RxPlacements = placed(workers...)
		return values{tap("tap-a", func(v *vpp_interfaces.Interface) { v.RxPlacements = placed(workers...) }), af}
	}
	onVPP(t, vpptest.Options{Vhostshim: true, Workers: 2}, func(t *testing.T, g *target) {
		if g.real != nil {
			veth(t, "cvqueue0", "cvqueue1")
		}
		roundTrip(t, g, Deps{Interfaces: iface.Deps{AfPacket: iface.AfPacketRings{RxFrames: 16, TxFrames: 16}}}, config(0, 1), config(1, 0), config(1), config(0, 1))
		a := newAgent(t, g, Deps{Interfaces: iface.Deps{AfPacket: iface.AfPacketRings{RxFrames: 16, TxFrames: 16}}})
		a.resync(config(0, 1)...)
		a.mustNotWrite("again", config(0, 1))
		got := map[string][]uint32{}
		conn.Dump(a.lane, &interfaces.SwInterfaceRxPlacementDump{SwIfIndex: interface_types.InterfaceIndex(kit.None)},
			func(d *interfaces.SwInterfaceRxPlacementDetails) {
				if name, ok := a.idx.NameByIndex(uint32(d.SwIfIndex)); ok {
					got[name] = append(got[name], d.WorkerID)
				}
			}, func(err error) {
				if err != nil {
					t.Error(err)
				}
			})
		a.lane.Flush(t.Context())
		if want := map[string][]uint32{"tap-a": {1, 2}, "af": {1, 2}}; !maps.EqualFunc(got, want, slices.Equal) { // threads; 0 is the main thread
			t.Errorf("queues at %v, want %v", got, want)
		}
	})
}

// A pod keeps its device when VPP dies, and the new VPP attaches to it.
func TestTapSurvivesVPP(t *testing.T) {
	v := vpptest.Start(t, vpptest.Options{Vhostshim: true})
	ns := "cvtest-pod"
	_ = exec.Command("ip", "netns", "del", ns).Run() // a leftover
	run(t, "ip netns add "+ns)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
	podMAC, _ := net.ParseMAC("02:fe:00:00:01:01")
	moved := false
	deps := Deps{Interfaces: iface.Deps{
		LinuxTap: func(name string) (string, string, bool) {
			return "/var/run/netns/" + ns, "eth0", moved && name == "pod"
		},
		LinuxTapMAC: func(string) (net.HardwareAddr, bool) {
			return podMAC, true
		},
	}}
	a := newAgent(t, &target{socket: v.Socket(), real: v}, deps)
	config := values{
		tap("pod", withIP("10.1.0.1/24"), func(v *vpp_interfaces.Interface) { v.PhysAddress = "02:fe:00:00:00:01" }),
		&vpp_l3.ARPEntry{Interface: "pod", IpAddress: "10.1.0.2", PhysAddress: podMAC.String(), Static: true},
	}
	a.resync(config...)
	dev, inPlace, ok := a.idx.TapPlace("pod")
	if !ok || inPlace {
		t.Fatal("no device of the TAP")
	}
	run(t, fmt.Sprintf("ip link set %s netns %s name eth0 address %s", dev, ns, podMAC))
	run(t, "ip -n "+ns+" addr add 10.1.0.2/24 dev eth0 && ip -n "+ns+" link set eth0 up && ip -n "+ns+
		" neigh replace 10.1.0.1 lladdr 02:fe:00:00:00:01 dev eth0")
	moved = true
	run(t, "ip netns exec "+ns+" ping -c 2 -W 2 10.1.0.1")

	a.mustNotWrite("moved", config)
	if err := v.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.awaitNewBoot()
	run(t, "ip -n "+ns+" link show eth0")
	a.resync(config...)
	run(t, "ip netns exec "+ns+" ping -c 2 -W 2 10.1.0.1")
	if out := run(t, "ip -n "+ns+" link show eth0"); !strings.Contains(out, podMAC.String()) {
		t.Errorf("the pod's hardware address has changed:\n%s", out)
	}
	if _, inPlace, ok := a.idx.TapPlace("pod"); !ok || !inPlace {
		t.Error("the device is not known to be inside the pod")
	}
	a.mustNotWrite("attached", config)
	a.stop()
	a = newAgent(t, &target{socket: v.Socket(), real: v}, deps)
	a.mustNotWrite("restarted agent", config)
	a.commit(txn.Update, deletions(t, config)...)
	if err := exec.Command("ip", "-n", ns, "link", "show", "eth0").Run(); err == nil {
		t.Error("the device is still there after the TAP was deleted")
	}
}

// Two pods as contiv connects them: unnumbered in the pod table, /32 routes, static neighbours. They reach each other and
// the gateway with the first packet.
func TestPodsReachEachOther(t *testing.T) {
	v := vpptest.Start(t, vpptest.Options{Vhostshim: true})
	a := newAgent(t, &target{socket: v.Socket(), real: v}, Deps{})
	config := all(tables(1, "pod"), values{loop("gw", "02:fe:00:00:00:aa", inTable(1), withIP("10.1.1.1/32", "fd00:1::1/128"))})
	for i := 1; i <= 2; i++ {
		ns := fmt.Sprintf("cvtest-pod%d", i)
		_ = exec.Command("ip", "netns", "del", ns).Run() // a leftover
		run(t, "ip netns add "+ns)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
		name, mac := fmt.Sprintf("pod%d", i), fmt.Sprintf("02:fe:00:00:01:0%d", i)
		config = append(config, tap(name, inTable(1), unnumberedTo("gw"), func(v *vpp_interfaces.Interface) {
			v.PhysAddress = fmt.Sprintf("02:fe:00:00:02:0%d", i)
			v.GetTap().ToMicroservice, v.GetTap().HostIfName = "/var/run/netns/"+ns, "eth0"
		}))
		for _, ip := range []string{fmt.Sprintf("10.1.1.1%d", i), fmt.Sprintf("fd00:1::1%d", i)} {
			bits := 32
			if strings.Contains(ip, "::") {
				bits = 128
			}
			config = append(config,
				&vpp_l3.ARPEntry{Interface: name, IpAddress: ip, PhysAddress: mac, Static: true},
				&vpp_l3.Route{
					VrfId: 1, DstNetwork: fmt.Sprintf("%s/%d", ip, bits), NextHopAddr: ip, OutgoingInterface: name,
				})
		}
	}
	a.resync(config...)
	for i := 1; i <= 2; i++ {
		in := fmt.Sprintf("ip -n cvtest-pod%d ", i)
		run(t, fmt.Sprintf("%[1]slink set eth0 address 02:fe:00:00:01:0%[2]d up && "+
			"%[1]saddr add 10.1.1.1%[2]d/32 dev eth0 && %[1]saddr add fd00:1::1%[2]d/128 dev eth0 nodad && "+
			"%[1]sneigh replace 10.1.1.1 lladdr 02:fe:00:00:02:0%[2]d dev eth0 && "+
			"%[1]sneigh replace fd00:1::1 lladdr 02:fe:00:00:02:0%[2]d dev eth0 && "+
			"%[1]sroute add 10.1.1.1 dev eth0 scope link && %[1]sroute add default via 10.1.1.1 && "+
			"%[1]s-6 route add fd00:1::1 dev eth0 && %[1]s-6 route add default via fd00:1::1", in, i))
	}
	for _, ip := range []string{"10.1.1.1", "10.1.1.12", "fd00:1::1", "fd00:1::12"} {
		run(t, "ip netns exec cvtest-pod1 ping -c 1 -W 2 "+ip)
	}
	a.commit(txn.Update, deletions(t, config)...)
}

// The Linux end of a TAP is made directly in the pod's namespace.
func TestTapInPlace(t *testing.T) {
	v := vpptest.Start(t, vpptest.Options{Vhostshim: true})
	ns := "cvtest-inplace"
	_ = exec.Command("ip", "netns", "del", ns).Run() // a leftover
	run(t, "ip netns add "+ns)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
	pod := func(ns, dev string) *vpp_interfaces.Interface {
		return tap("pod", func(v *vpp_interfaces.Interface) {
			v.GetTap().ToMicroservice, v.GetTap().HostIfName = "/var/run/netns/"+ns, dev
		})
	}
	g := &target{socket: v.Socket(), real: v}
	roundTrip(t, g, Deps{}, values{pod(ns, "eth0")})
	a := newAgent(t, g, Deps{})
	a.resync(pod(ns, ""))
	a.mustNotWrite("no name", values{pod(ns, "")})
	a.resync(pod(ns, "eth0"))
	run(t, "ip -n "+ns+" link show eth0")
	if dev, inPlace, ok := a.idx.TapPlace("pod"); dev != "eth0" || !inPlace || !ok {
		t.Errorf("device %q %t %t", dev, inPlace, ok)
	}
	a.commit(txn.Update, deletions(t, values{pod(ns, "eth0")})...)
}

// awaitNewBoot waits for the session with a restarted VPP.
func (a *agent) awaitNewBoot() {
	a.t.Helper()
	poll.Await(a.t, "new session with VPP", 20*time.Second, func() bool {
		s := a.conn.State()
		return s.Connected() && s.Session > 1
	})
}

func TestTapWithoutVhost(t *testing.T) {
	v := vpptest.Start(t, vpptest.Options{})
	a := newAgent(t, &target{socket: v.Socket(), real: v}, Deps{})
	_, err := a.s.Commit(t.Context(), &txn.Txn{Kind: txn.FullResync, Values: kvs(t, values{tap("pod")}), NoRetry: true})
	if err == nil {
		t.Skip("this kernel has vhost-net")
	}
	if !strings.Contains(err.Error(), "useTAPInterfaces: false") {
		t.Errorf("the error does not tell what to do: %v", err)
	}
}

func TestAfPacket(t *testing.T) {
	veth(t, "cvtesta0", "cvtesta1")
	veth(t, "cvtestb0", "cvtestb1")
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		a, b := afPacket("a", "cvtesta0"), afPacket("a", "cvtesta1")
		b.PhysAddress = "02:fe:00:00:00:02"
		roundTrip(t, g, Deps{}, values{a}, values{b})
	})
}

// An interface that VPP still has on a device does not work if its peer was deleted: it is made again.
func TestAfPacketLeftover(t *testing.T) {
	veth(t, "cvtesta0", "cvtesta1")
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		a.invoke(iface.AfPacketRequest("cvtesta0", 1500, iface.DefaultAfPacketRings()), &af_packet.AfPacketCreateV3Reply{})
		a.resync(afPacket("a", "cvtesta0"))
		a.mustNotWrite("after", values{afPacket("a", "cvtesta0")})
		_, err := a.s.Commit(t.Context(), &txn.Txn{
			Kind: txn.Update, Values: kvs(t, values{afPacket("b", "cvtesta0")}), NoRetry: true,
		})
		if err == nil || !strings.Contains(err.Error(), "in use by interface a") {
			t.Errorf("a second interface on the same device: %v", err)
		}
	})
}

func memifOf(name, socket string, id uint32, master bool) *vpp_interfaces.Interface {
	return &vpp_interfaces.Interface{
		Name: name, Type: vpp_interfaces.Interface_MEMIF, Enabled: true, PhysAddress: "02:fe:00:00:02:01",
		Link: &vpp_interfaces.Interface_Memif{Memif: &vpp_interfaces.MemifLink{
			Id: id, Master: master, SocketFilename: socket, Secret: "secret", RingSize: 512, RxQueues: 1, TxQueues: 1,
		}},
		RxModes: []*vpp_interfaces.Interface_RxMode{{DefaultMode: true, Mode: vpp_interfaces.Interface_RxMode_INTERRUPT}},
	}
}

func TestMemif(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		dir := t.TempDir()
		one, two := filepath.Join(dir, "one.sock"), filepath.Join(dir, "two.sock")
		plain := memifOf("plain", "", 5, true)
		plain.GetMemif().Mode, plain.PhysAddress = vpp_interfaces.MemifLink_IP, ""
		roundTrip(t, g, Deps{},
			values{memifOf("m1", one, 1, true), memifOf("m2", one, 2, true), memifOf("s1", two, 1, false), plain},
			values{memifOf("m1", two, 1, true), memifOf("m2", one, 3, true)},
		)
		a := newAgent(t, g, Deps{})
		count := 0
		conn.Dump(a.lane, &memif.MemifSocketFilenameDump{}, func(*memif.MemifSocketFilenameDetails) { count++ }, func(error) {})
		a.lane.Flush(t.Context())
		if count > 1 { // the default one
			t.Errorf("%d sockets are left", count)
		}
	})
}

// VPP makes the queues of a memif when its peer connects, in VPP's default mode.
func TestMemifRxModeAfterPeer(t *testing.T) {
	dir := t.TempDir()
	v1, v2 := vpptest.Start(t, vpptest.Options{}), vpptest.Start(t, vpptest.Options{})
	a1 := newAgent(t, &target{socket: v1.Socket(), real: v1}, Deps{})
	a2 := newAgent(t, &target{socket: v2.Socket(), real: v2}, Deps{})
	keeper := iface.NewRxModeKeeper(a1.conn, a1.idx, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = keeper.Run(ctx) // ends with ctx
	}()
	defer func() {
		cancel()
		<-ended
	}()
	socket := filepath.Join(dir, "memif.sock")
	master, slave := memifOf("m", socket, 1, true), memifOf("s", socket, 1, false)
	a1.resync(master)
	a2.resync(slave)
	index, _ := a1.idx.IfIndex("m")
	modes := func() (modes []interface_types.RxMode) {
		conn.Dump(a1.lane, &interfaces.SwInterfaceRxPlacementDump{SwIfIndex: interface_types.InterfaceIndex(index)},
			func(d *interfaces.SwInterfaceRxPlacementDetails) { modes = append(modes, d.Mode) }, func(error) {})
		a1.lane.Flush(t.Context())
		return modes
	}
	poll.Succeeds(t, "connected memifs in interrupt mode", 10*time.Second, func() error {
		if m := modes(); len(m) == 0 || m[0] != interface_types.RX_MODE_API_INTERRUPT {
			return fmt.Errorf("modes %s", m)
		}
		return nil
	})
	a1.mustNotWrite("connected", values{master})
}

func TestPhysical(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		other := newAgent(t, g, Deps{})
		var reply interfaces.CreateLoopbackInstanceReply
		other.invoke(&interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: 7}, &reply)
		nic := func(change ...func(*vpp_interfaces.Interface)) *vpp_interfaces.Interface {
			return loop("loop7", "02:00:00:00:00:07", append(change, func(v *vpp_interfaces.Interface) {
				v.Type = vpp_interfaces.Interface_DPDK
			})...)
		}
		a := newAgent(t, g, Deps{})
		before := vppState(t, a)
		with := nic(withIP("10.1.0.1/24"), func(v *vpp_interfaces.Interface) { v.Mtu = 1600 })
		a.resync(with)
		a.mustNotWrite("resync", values{with})
		a.commit(txn.Update, deletions(t, values{with})...)
		if after := vppState(t, a); after != before {
			t.Errorf("VPP is not as before:\n%s", diffText(before, after))
		}
		roundTripKeepsMAC := nic(inTable(0))
		a.resync(roundTripKeepsMAC)
		a.stop()
		a = newAgent(t, g, Deps{})
		a.mustNotWrite("restarted agent", values{roundTripKeepsMAC})
	})
}

func TestPhysicalMissing(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		nic := &vpp_interfaces.Interface{Name: "GigabitEthernet0/8/0", Type: vpp_interfaces.Interface_DPDK}
		_, err := a.s.Commit(t.Context(), &txn.Txn{Kind: txn.Update, Values: kvs(t, values{nic}), NoRetry: true})
		if err == nil || !strings.Contains(err.Error(), "start-up configuration") {
			t.Errorf("%v", err)
		}
	})
}

// Adding an address that the interface already has succeeds; adding one that overlaps with another fails.
func TestAddressInUse(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		a.resync(loop("a", "", withIP("10.1.0.1/24")))
		other := loop("b", "", withIP("10.1.0.2/24"))
		_, err := a.s.Commit(t.Context(), &txn.Txn{Kind: txn.Update, Values: kvs(t, values{other}), NoRetry: true})
		if !conn.IsRetval(err, api.ADDRESS_IN_USE) {
			t.Errorf("an overlapping address: %v", err)
		}
		index, _ := a.idx.IfIndex("a")
		a.invoke(&interfaces.SwInterfaceAddDelAddress{IsAdd: true, SwIfIndex: interface_types.InterfaceIndex(index),
			Prefix: ip_types.AddressWithPrefix{Address: kit.ToAddress(netip.MustParseAddr("10.9.0.1")), Len: 24}}, &interfaces.SwInterfaceAddDelAddressReply{})
		a.commit(txn.Update, kvs(t, values{loop("a", "", withIP("10.1.0.1/24", "10.9.0.1/24"))})...)
	})
}

// A restarted VPP is configured completely.
func TestVPPRestart(t *testing.T) {
	v := vpptest.Start(t, vpptest.Options{})
	g := &target{socket: v.Socket(), real: v}
	a := newAgent(t, g, Deps{})
	config := all(tables(1, "pod"), values{
		loop("gw", "02:00:00:00:01:01", inTable(1), withIP("10.1.0.1/24")), loop("pod", "", inTable(1), unnumberedTo("gw")),
		&vpp_l3.Route{VrfId: 1, DstNetwork: "10.15.0.1/32", NextHopAddr: "10.15.0.1", OutgoingInterface: "pod"},
	})
	a.resync(config...)
	want := vppState(t, a)
	if err := v.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.awaitNewBoot()
	a.resync(config...)
	if got := vppState(t, a); got != want {
		t.Errorf("the new VPP is not like the old one:\n%s", diffText(want, got))
	}
	a.mustNotWrite("after", config)
}
