package iface

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/af_packet"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/tapv2"
	"google.golang.org/protobuf/proto"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

func TestRxModes(t *testing.T) {
	const poll, intr, adapt = interface_types.RX_MODE_API_POLLING, interface_types.RX_MODE_API_INTERRUPT, interface_types.RX_MODE_API_ADAPTIVE
	dumped := ifRxModes{Dumped: true, Queues: []queueMode{{0, poll}, {1, intr}}}
	for _, c := range []struct {
		want ifRxModes
		same bool
	}{
		{ifRxModes{}, true},
		{ifRxModes{All: intr}, false},
		{ifRxModes{All: intr, Queues: []queueMode{{0, poll}}}, true},
		{ifRxModes{Queues: []queueMode{{1, adapt}}}, false},
		{ifRxModes{All: interface_types.RX_MODE_API_DEFAULT}, true},
		{ifRxModes{Queues: []queueMode{{7, adapt}}}, true}, // the queue does not exist yet
	} {
		if c.want.sameAs(dumped) != c.same {
			t.Errorf("%v: %t", c.want, !c.same)
		}
	}
	if n := len(ifRxModes{All: intr, Queues: []queueMode{{0, poll}}}.requests(1)); n != 2 {
		t.Errorf("%d requests", n)
	}
}

func TestIndex(t *testing.T) {
	x := NewIndex()
	x.add(&ifEntry{name: "a", Index: 1, kind: kindTap, hostDev: "dev"})
	x.add(&ifEntry{name: "b", Index: 2, kind: kindTap, hostDev: "dev2", moved: true})
	if i, ok := x.IfIndex("a"); i != 1 || !ok {
		t.Errorf("index %d %t", i, ok)
	}
	if dev, inPlace, ok := x.TapPlace("a"); dev != "dev" || inPlace || !ok {
		t.Errorf("device %q %t %t", dev, inPlace, ok)
	}
	if _, inPlace, ok := x.TapPlace("b"); !inPlace || !ok {
		t.Error("a device in a pod")
	}
	x.add(&ifEntry{name: "c", Index: 1}) // VPP has reused the number
	if _, ok := x.IfIndex("a"); ok {
		t.Error("a is still there")
	}
	x.remove("c")
	if _, ok := x.NameByIndex(1); ok {
		t.Error("number 1 is still there")
	}
	x.AddBD("one", x.FreeBD())
	x.AddBD("two", x.FreeBD())
	x.RemoveBD("one")
	if id := x.FreeBD(); id != 1 {
		t.Errorf("free bridge domain %d", id)
	}
	n := 0
	for range x.Interfaces() {
		n++
	}
	if n != 1 {
		t.Errorf("%d interfaces", n)
	}
}

func TestShortNamespace(t *testing.T) {
	for path, want := range map[string]string{
		"/var/run/netns/cni-1": "cni-1", "/run/netns/x": "x", "/proc/12/ns/net": "/proc/12/ns/net", "": "",
		"/run/netns/a/b": "/run/netns/a/b",
	} {
		if got := shortNamespace(path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
	end := tapEnd{namespace: "/" + strings.Repeat("x", 70), device: "eth0"}
	if err := end.addTo(tapRequest(tapSpec{}, "d", "t")); err == nil {
		t.Error("a path that VPP would cut was taken")
	}
}

func TestErrors(t *testing.T) {
	refused := &conn.RetvalError{Message: "tap_create_v3", Retval: int32(api.SYSCALL_ERROR_1)}
	err := Named("create", "pod").Wrap(explainTap(refused))
	if !strings.Contains(err.Error(), "create interface pod") || !strings.Contains(err.Error(), "/dev/vhost-net") {
		t.Error(err)
	}
	if !conn.IsRetval(err, api.SYSCALL_ERROR_1) {
		t.Error("the cause is lost")
	}
	var got error
	done := kit.Join(3, func(err error) { got = err })
	done(nil)
	done(refused)
	if got != nil {
		t.Error("ended early")
	}
	done(nil)
	if !errors.Is(got, refused) {
		t.Errorf("joined error %v", got)
	}
}

func TestEqualInterfaces(t *testing.T) {
	device := func(l string) (string, bool) { return "dev-" + l, l != "unknown" }
	k := New(laneOf(t), slog.New(slog.DiscardHandler), NewIndex(), Deps{LinuxDevice: device})
	desc := k.interfaceDescriptor()
	af := func(dev, linux string) *vpp_interfaces.Interface {
		v := afPacket("a", dev)
		v.GetAfpacket().LinuxInterface = linux
		return v
	}
	for i, c := range []struct {
		desired, applied *vpp_interfaces.Interface
		same             bool
	}{
		{loop("l", ""), loop("l", "02:00:00:00:00:01"), true},
		{loop("l", "02:00:00:00:00:0A"), loop("l", "02:00:00:00:00:0a"), true},
		{loop("l", "02:00:00:00:00:02"), loop("l", "02:00:00:00:00:01"), false},
		{loop("l", ""), tap("l"), false},
		{af("", "x"), af("dev-x", ""), true},
		{af("", "x"), af("dev-y", ""), false},
		{af("", "unknown"), af("dev-y", ""), true},
		{af("", "x"), af("", "y"), false},
		{tap("t"), edit(tap("t"), func(v *vpp_interfaces.Interface) { v.GetTap().HostIfName = "any" }), true},
		{edit(tap("t"), func(v *vpp_interfaces.Interface) { v.GetTap().HostIfName = "vpp1" }), tap("t"), true}, // inside a pod
		{tap("t"), edit(tap("t"), func(v *vpp_interfaces.Interface) { v.GetTap().EnableGso = true }), false},
		{af("eth0", ""), edit(af("eth0", ""), func(v *vpp_interfaces.Interface) { v.Mtu = 1500 }), true},
		{af("eth0", ""), edit(af("eth0", ""), func(v *vpp_interfaces.Interface) { v.Mtu = 1900 }), true},
		{af("eth0", ""), edit(af("eth0", ""), func(v *vpp_interfaces.Interface) { v.Mtu = 9000 }), true},   // frames of NICs fit jumbo frames
		{af("eth0", ""), edit(af("eth0", ""), func(v *vpp_interfaces.Interface) { v.Mtu = 20000 }), false}, // other rings
		{memifOf("m", "/s", 1, true), edit(memifOf("m", "/s", 1, true), func(v *vpp_interfaces.Interface) {
			v.GetMemif().Secret, v.GetMemif().RingSize = unknownText, unknownNumber
		}), true},
		{memifOf("m", "/s", 1, true), edit(memifOf("m", "/s", 1, true), func(v *vpp_interfaces.Interface) {
			v.GetMemif().Secret = "other"
		}), false},
	} {
		if desc.Equal("", c.desired, c.applied) != c.same {
			t.Errorf("case %d: %t", i, !c.same)
		}
	}
}

// TestAfPacketRings checks that a frame to the kernel has room for everything that VPP may copy into it, and one from the kernel
// for a packet of the MTU with two VLAN tags and the kernel's header before it.
func TestAfPacketRings(t *testing.T) {
	const kernel, headers, tunnel = 82, 14 + 8, 70
	for _, mtu := range []uint32{576, 1450, 1500, 1920, 1921, 8950, 9000, 9216, 65535} {
		req := AfPacketRequest("eth0", mtu, DefaultAfPacketRings())
		if req.TxFrameSize < 65535+headers+tunnel+kernel {
			t.Errorf("MTU %d: frames to the kernel have %d bytes", mtu, req.TxFrameSize)
		}
		if req.RxFrameSize < mtu+headers+kernel {
			t.Errorf("MTU %d: frames from the kernel have %d bytes", mtu, req.RxFrameSize)
		}
		if req.Flags&af_packet.AF_PACKET_API_FLAG_CKSUM_GSO != 0 {
			t.Error("VPP takes in what it cannot cut up")
		}
		for _, ring := range []uint32{req.RxFrameSize * req.RxFramesPerBlock, req.TxFrameSize * req.TxFramesPerBlock} {
			if ring%4096 != 0 {
				t.Errorf("MTU %d: a ring of %d bytes is not made of whole pages", mtu, ring)
			}
		}
	}
	if tap := tapRequest(tapSpec{}, "t", ""); tap.TapFlags&(tapv2.TAP_API_FLAG_GSO|tapv2.TAP_API_FLAG_CSUM_OFFLOAD) != 0 {
		t.Error("a TAP has offloads")
	}
	if tap := tapRequest(tapSpec{gso: true}, "t", ""); tap.TapFlags&tapv2.TAP_API_FLAG_GSO == 0 {
		t.Error("a TAP lacks offloads")
	}
}

// TestAfPacketDevice checks that an af_packet interface may name its device by the logical name of a Linux interface.
func TestAfPacketDevice(t *testing.T) {
	device := func(logical string) (string, bool) { return "cvtestb0", logical == "veth-b" }
	byName := &vpp_interfaces.Interface{
		Name: "by-name", Type: vpp_interfaces.Interface_AF_PACKET, Enabled: true,
		Link: &vpp_interfaces.Interface_Afpacket{Afpacket: &vpp_interfaces.AfpacketLink{LinuxInterface: "veth-b"}},
	}
	k := New(laneOf(t), slog.New(slog.DiscardHandler), NewIndex(), Deps{LinuxDevice: device})
	if dev, err := k.afPacketDevice(byName); dev != "cvtestb0" || err != nil {
		t.Errorf("device %q, %v", dev, err)
	}
}

// laneOf returns a lane that is not connected.
func laneOf(t *testing.T) *conn.Lane {
	log := slog.New(slog.DiscardHandler)
	return conn.New(conn.Config{Socket: filepath.Join(t.TempDir(), "none")}, log).Lane()
}

func edit[M proto.Message](m M, change func(M)) M {
	m = proto.Clone(m).(M)
	change(m)
	return m
}

func loop(name, mac string) *vpp_interfaces.Interface {
	return &vpp_interfaces.Interface{Name: name, Type: vpp_interfaces.Interface_SOFTWARE_LOOPBACK, Enabled: true, PhysAddress: mac}
}

func tap(name string) *vpp_interfaces.Interface {
	return &vpp_interfaces.Interface{
		Name: name, Type: vpp_interfaces.Interface_TAP, Enabled: true, Link: &vpp_interfaces.Interface_Tap{Tap: &vpp_interfaces.TapLink{}},
	}
}

func afPacket(name, dev string) *vpp_interfaces.Interface {
	return &vpp_interfaces.Interface{
		Name: name, Type: vpp_interfaces.Interface_AF_PACKET, Enabled: true, PhysAddress: "02:fe:00:00:00:01",
		Link: &vpp_interfaces.Interface_Afpacket{Afpacket: &vpp_interfaces.AfpacketLink{HostIfName: dev}},
	}
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
