package vppfake_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/feature"
	"go.fd.io/govpp/binapi/fib_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/tapv2"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// node is a fake configured as contiv configures a node: a pod interface in the pods' VRF, an uplink, a BVI with a tunnel to the other node.
type node struct {
	*vppfake.Fake
	*script
	n int
}

func bviMAC(n int) vppfake.MAC { return vppfake.MAC{0x1a, 0x2b, 0x3c, 0x4d, 0x5e, byte(n)} }

// newNode returns node n of two.
func newNode(t *testing.T, n int) *node {
	t.Helper()
	f, conn := client(t, vppfake.Config{Seed: uint64(n)})
	node := &node{Fake: f, script: &script{t: t, conn: conn}, n: n}
	peer := 3 - n
	node.table(1, false)
	for _, name := range []string{"uplink", "pod"} { // sw_if_index 1 and 2
		must(t, conn, &tapv2.TapCreateV3{ID: none, MacAddress: portMAC(10*n + len(name)), HostIfNameSet: true, HostIfName: name, Tag: name + "\x00"})
	}
	node.up(1)
	node.addr(1, fmt.Sprintf("192.168.16.%d/24", n))
	node.neighbor(true, 1, fmt.Sprintf("192.168.16.%d", peer), portMAC(10*peer+6).String(), 1)
	must(t, conn, &interfaces.CreateLoopbackInstance{MacAddress: bviMAC(n)}) // 3
	must(t, conn, &interfaces.SwInterfaceSetTable{SwIfIndex: 3, VrfID: 1})
	node.up(3)
	node.addr(3, fmt.Sprintf("192.168.30.%d/24", n))
	must(t, conn, tunnel(fmt.Sprintf("192.168.16.%d", n), fmt.Sprintf("192.168.16.%d", peer), 10)) // 4
	node.bd(1)
	node.bridge(3, 1, l2.L2_API_PORT_TYPE_BVI, 1)
	node.bridge(4, 1, l2.L2_API_PORT_TYPE_NORMAL, 1)
	must(t, conn, &l2.L2fibAddDel{IsAdd: true, Mac: bviMAC(peer), BdID: 1, SwIfIndex: 4, StaticMac: true})
	node.neighbor(true, 3, fmt.Sprintf("192.168.30.%d", peer), bviMAC(peer).String(), 1)
	node.route(true, 1, fmt.Sprintf("10.1.%d.0/24", peer), via(fmt.Sprintf("192.168.30.%d", peer), 3))
	node.pod()
	return node
}

// pod configures the pod's interface: 10.1.n.2, MAC of host n.
func (n *node) pod() {
	ip := fmt.Sprintf("10.1.%d.2", n.n)
	must(n.t, n.conn, &interfaces.SwInterfaceSetTable{SwIfIndex: 2, VrfID: 1})
	must(n.t, n.conn, &interfaces.SwInterfaceSetUnnumbered{SwIfIndex: 3, UnnumberedSwIfIndex: 2, IsAdd: true})
	n.neighbor(true, 2, ip, hostMAC(n.n).String(), 1)
	n.route(true, 1, ip+"/32", via(ip, 2))
	n.up(2)
}

// fromPod returns a packet of node n's pod.
func fromPod(n int, dst string) vppfake.Packet {
	p := udp(n, 10*n+3, fmt.Sprintf("10.1.%d.2", n), dst)
	return p
}

func TestPodToPodAcrossNodes(t *testing.T) {
	a, b := newNode(t, 1), newNode(t, 2)
	vppfake.Wire(a.Fake, "uplink", b.Fake, "uplink")
	for _, c := range []struct {
		from, to *node
		dst      string
	}{{a, b, "10.1.2.2"}, {b, a, "10.1.1.2"}} {
		r, err := c.from.Send("pod", fromPod(c.from.n, c.dst))
		if err != nil {
			t.Fatalf("%v\n%s", err, r)
		}
		d, ok := r.Delivered()
		if !ok || d.Fake != c.to.Fake || d.Tag != "pod" || d.Packet.EthDst != hostMAC(c.to.n) || d.Packet.TTL != 62 {
			t.Errorf("%+v\n%s", d, r)
		}
	}
	t.Run("no such pod", func(t *testing.T) {
		r, _ := a.Send("pod", fromPod(1, "10.1.2.77"))
		if reason, ok := r.Dropped(); !ok || !strings.Contains(reason, "drop route") {
			t.Errorf("%q\n%s", reason, r)
		}
	})
	t.Run("pod interface down", func(t *testing.T) {
		b.down(2)
		defer b.up(2)
		if r, _ := a.Send("pod", fromPod(1, "10.1.2.2")); len(r.Out) > 0 {
			t.Error(r)
		}
	})
	t.Run("uplink unplugged", func(t *testing.T) {
		vppfake.Unwire(a.Fake, "uplink", b.Fake, "uplink")
		defer vppfake.Wire(a.Fake, "uplink", b.Fake, "uplink")
		r, _ := a.Send("pod", fromPod(1, "10.1.2.2"))
		d, ok := r.Delivered()
		if !ok || d.Tag != "uplink" || d.Packet.VXLAN == nil || d.Packet.VXLAN.VNI != 10 || d.Packet.VXLAN.Inner.EthDst != bviMAC(2) {
			t.Errorf("%+v\n%s", d, r)
		}
	})
	t.Run("other node dead", func(t *testing.T) {
		b.Kill()
		if _, err := a.Send("pod", fromPod(1, "10.1.2.2")); err == nil {
			t.Error("walked into a dead VPP")
		}
	})
}

func TestMultipath(t *testing.T) {
	f, conn := client(t, vppfake.Config{})
	s := newPacketScript(&script{t: t, conn: conn})
	s.addr(1, "10.1.0.1/24")
	s.addr(2, "10.2.0.1/24")
	s.addr(3, "10.3.0.1/24")
	s.host(2, "10.2.0.2", 2)
	s.host(3, "10.3.0.2", 3)
	heavy := via("10.3.0.2", 3)
	heavy.weight = 3
	s.route(true, 0, "10.50.0.0/16", via("10.2.0.2", 2), heavy)
	count := map[string]int{}
	for port := range uint16(400) {
		p := udp(1, 0, "10.1.0.2", "10.50.0.1")
		p.SrcPort = port
		r, err := f.SendIndex(1, p)
		d, ok := r.Delivered()
		if err != nil || !ok {
			t.Fatal(err, r)
		}
		again, _ := f.SendIndex(1, p)
		if d2, _ := again.Delivered(); d2.Interface != d.Interface {
			t.Fatalf("port %d went to %s, then to %s", port, d.Interface, d2.Interface)
		}
		count[d.Interface]++
	}
	if count["pg1"] < 60 || count["pg1"] > 140 {
		t.Errorf("%v, want about 100 and 300", count)
	}
}

// TestNotUnderstood tests that a walk that reaches something that the fake does not model returns an error.
func TestNotUnderstood(t *testing.T) {
	setups := map[string]func(*packetScript){
		"labels": func(s *packetScript) {
			q := s.routeMsg(true, false, 0, "10.50.0.0/16", []fibPath{via("10.2.0.2", 2)})
			q.Route.Paths[0].NLabels = 1
			s.do(q)
		},
		"resolve via host": func(s *packetScript) {
			q := s.routeMsg(true, false, 0, "10.50.0.0/16", []fibPath{via("10.2.0.2", 2)})
			q.Route.Paths[0].Flags = fib_types.FIB_API_PATH_FLAG_RESOLVE_VIA_HOST
			s.do(q)
		},
		"source lookup": func(s *packetScript) {
			s.route(true, 0, "10.50.0.0/16", fibPath{typ: fib_types.FIB_API_PATH_TYPE_SOURCE_LOOKUP})
		},
		"feature": func(s *packetScript) {
			must(s.t, s.conn, &feature.FeatureEnableDisable{SwIfIndex: 1, Enable: true, ArcName: "ip4-unicast", FeatureName: "nat44-ed-in2out"})
		},
	}
	for name, setup := range setups {
		t.Run(name, func(t *testing.T) {
			f, conn := client(t, vppfake.Config{})
			s := newPacketScript(&script{t: t, conn: conn})
			s.addr(1, "10.1.0.1/24")
			s.addr(2, "10.2.0.1/24")
			s.host(2, "10.2.0.2", 2)
			setup(s)
			if r, err := f.Send("pg0", udp(1, 0, "10.1.0.2", "10.50.0.1")); !errors.Is(err, vppfake.ErrNotUnderstood) {
				t.Errorf("%v\n%s", err, r)
			}
		})
	}
	f, conn := client(t, vppfake.Config{})
	newPacketScript(&script{t: t, conn: conn}).addr(1, "10.1.0.1/24")
	if _, err := f.Send("pg0", udp(1, 0, "10.1.0.2", "224.0.0.5")); !errors.Is(err, vppfake.ErrNotUnderstood) {
		t.Errorf("multicast: %v", err)
	}
	if _, err := f.Send("nowhere", udp(1, 0, "10.1.0.2", "10.2.0.2")); err == nil {
		t.Error("an interface that is not there")
	}
	if _, err := f.Send("pg0", vppfake.Packet{}); err == nil {
		t.Error("an empty packet")
	}
}

func TestLoops(t *testing.T) {
	f, conn := client(t, vppfake.Config{})
	s := newPacketScript(&script{t: t, conn: conn})
	s.addr(1, "10.1.0.1/24")
	s.table(1, false)
	s.route(true, 0, "10.50.0.0/16", fibPath{table: 1})
	s.route(true, 1, "10.50.0.0/16", fibPath{table: 0})
	r, err := f.Send("pg0", udp(1, 0, "10.1.0.2", "10.50.0.1"))
	if reason, ok := r.Dropped(); err != nil || !ok || !strings.Contains(reason, "lookups") {
		t.Errorf("%v %s", err, r)
	}
	must(t, conn, &l2.BridgeDomainAddDelV2{IsAdd: true, BdID: 7, Flood: true})
	s.bridge(2, 7, 0, 0)
	s.bridge(3, 7, 0, 0)
	vppfake.Wire(f, "pg1", f, "pg2")
	if r, err := f.Send("pg1", arpRequest(1, "10.1.0.2", "10.1.0.3")); err != nil || len(r.Walk) < 100 {
		t.Errorf("a storm: %v %s", err, r)
	}
}

func TestFragments(t *testing.T) {
	f, conn := client(t, vppfake.Config{})
	s := newPacketScript(&script{t: t, conn: conn})
	s.addr(1, "10.1.0.1/24")
	s.addr(2, "10.2.0.1/24")
	s.host(2, "10.2.0.2", 2)
	must(t, conn, &interfaces.SwInterfaceSetMtu{SwIfIndex: 2, Mtu: []uint32{1000, 0, 0, 0}})
	p := udp(1, 0, "10.1.0.2", "10.2.0.2")
	p.Size = 2000
	r, _ := f.Send("pg0", p)
	if d, ok := r.Delivered(); !ok || !d.Fragments {
		t.Errorf("%+v\n%s", d, r)
	}
}

func TestLocalDelivery(t *testing.T) {
	f, conn := client(t, vppfake.Config{})
	newPacketScript(&script{t: t, conn: conn}).addr(1, "10.1.0.1/24")
	r, err := f.Send("pg0", udp(1, 0, "10.1.0.2", "10.1.0.1"))
	if d, ok := r.Delivered(); err != nil || !ok || !d.Local {
		t.Errorf("%v %+v\n%s", err, d, r)
	}
}

// A walk ends where a bridge domain answers ARP itself or VLAN tags are rewritten.
func TestBridgeNotUnderstood(t *testing.T) {
	f, conn := client(t, vppfake.Config{})
	s := newPacketScript(&script{t: t, conn: conn})
	s.bd(7)
	must(t, conn, &l2.BridgeFlags{BdID: 7, IsSet: true, Flags: l2.BRIDGE_API_FLAG_ARP_TERM | l2.BRIDGE_API_FLAG_FLOOD | l2.BRIDGE_API_FLAG_UU_FLOOD})
	for i := range index(2) {
		s.bridge(1+i, 7, l2.L2_API_PORT_TYPE_NORMAL, 0)
	}
	must(t, conn, &l2.BdIPMacAddDel{IsAdd: true, Entry: l2.BdIPMac{BdID: 7, IP: address("10.1.0.9"), Mac: mac("02:00:00:00:00:99")}})
	try := func(p vppfake.Packet, understood bool) {
		t.Helper()
		if r, err := f.Send("pg0", p); errors.Is(err, vppfake.ErrNotUnderstood) == understood {
			t.Errorf("%v\n%s", err, r)
		}
	}
	try(arpRequest(1, "10.1.0.1", "10.1.0.8"), true)
	try(arpRequest(1, "10.1.0.1", "10.1.0.9"), false)
	try(udp(1, 2, "10.1.0.1", "10.1.0.9"), true)
	s.rewrite(2, 1, 1, 100, 0)
	try(udp(1, 2, "10.1.0.1", "10.1.0.9"), false)
	s.rewrite(2, 0, 0, 0, 0)
	s.rewrite(1, 1, 1, 100, 0)
	try(udp(1, 2, "10.1.0.1", "10.1.0.9"), false)
}
