package stack

import (
	"net/netip"
	"strings"
	"testing"

	linux_nodeports "contiv.dev/vswitch/dataplane/nb/linux/nodeports"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func nets(list ...string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// host returns a node's own stack: eth0 towards other hosts, vpp1 towards VPP.
func host() *Stack {
	s := New("host")
	s.Forwards = true
	s.SetLink(Link{Device: "eth0", Addrs: nets("10.99.0.1/24", "fd00:99::1/64")})
	s.SetLink(Link{Device: "vpp1", MAC: vppfake.MAC{2}, Addrs: nets("172.30.1.2/24", "fd00:172::2/64")})
	s.SetRoute("pods", Route{Dst: nets("10.1.0.0/16")[0], Via: addr("172.30.1.1"), Device: "vpp1"})
	s.SetRoute("pods6", Route{Dst: nets("fd10:1::/48")[0], Via: addr("fd00:172::1"), Device: "vpp1"})
	s.SetNeighbor("vpp1", addr("172.30.1.1"), vppfake.MAC{4})
	s.SetPorts(false, &linux_nodeports.NodePorts{
		Ports: []*linux_nodeports.NodePorts_Port{{Port: 30080}, {Port: 30081, KeepClient: true}}, Addresses: []string{"10.99.0.1"}, To: "172.30.1.1", Device: "vpp1",
	})
	return s
}

func packet(src string, sport uint16, dst string, dport uint16) vppfake.Packet {
	return vppfake.Packet{
		Src: addr(src), SrcPort: sport, Dst: addr(dst), DstPort: dport, Proto: vppfake.ProtoTCP, TTL: 64, EthDst: vppfake.MAC{2},
	}
}

// is checks the device by which a packet leaves, and its source and destination.
func is(t *testing.T, what string, o Outcome, device, src, dst string) {
	t.Helper()
	p := o.Packet
	got := netip.AddrPortFrom(p.Src, p.SrcPort).String() + " " + netip.AddrPortFrom(p.Dst, p.DstPort).String()
	if want := src + " " + dst; o.Drop != "" || o.Device != device || o.Local != (device == "") || got != want {
		t.Errorf("%s: by %q (local %t, dropped %q) %s, want by %q %s", what, o.Device, o.Local, o.Drop, got, device, want)
	}
}

func TestRoutes(t *testing.T) {
	s := host()
	o := s.Send(packet("172.30.1.2", 1, "10.1.2.3", 80))
	is(t, "to a pod", o, "vpp1", "172.30.1.2:1", "10.1.2.3:80")
	if o.To != addr("172.30.1.1") || o.Packet.EthDst != (vppfake.MAC{4}) || o.Packet.EthSrc != (vppfake.MAC{2}) {
		t.Errorf("it goes to %s, %s > %s", o.To, o.Packet.EthSrc, o.Packet.EthDst)
	}
	is(t, "to a neighbour", s.Send(packet("10.99.0.1", 1, "10.99.0.2", 80)), "eth0", "10.99.0.1:1", "10.99.0.2:80")
	is(t, "to itself", s.Send(packet("10.99.0.1", 1, "172.30.1.2", 80)), "", "10.99.0.1:1", "172.30.1.2:80")
	is(t, "forwarded", s.Receive("eth0", packet("10.99.0.7", 1, "10.1.2.3", 80)), "vpp1", "10.99.0.7:1", "10.1.2.3:80")
	if o := s.Send(packet("10.99.0.1", 1, "192.0.2.1", 80)); !strings.Contains(o.Drop, "no route") {
		t.Errorf("without a route: %+v", o)
	}
	wrong := packet("10.1.2.3", 1, "10.99.0.1", 80)
	wrong.EthDst = vppfake.MAC{9}
	if o := s.Receive("vpp1", wrong); !strings.Contains(o.Drop, "MAC") {
		t.Errorf("a frame for another MAC address: %+v", o)
	}
	s.Forwards = false
	if o := s.Receive("eth0", packet("10.99.0.7", 1, "10.1.2.3", 80)); !strings.Contains(o.Drop, "does not forward") {
		t.Errorf("without forwarding: %+v", o)
	}
}

func TestSource(t *testing.T) {
	s := host()
	for to, want := range map[string]string{
		"10.1.2.3": "172.30.1.2", "10.99.0.7": "10.99.0.1", "10.99.0.1": "10.99.0.1", "fd10:1::7": "fd00:172::2",
	} {
		if got, err := s.Source(addr(to)); err != nil || got != addr(want) {
			t.Errorf("towards %s the host is %s, %v; want %s", to, got, err, want)
		}
	}
	if got, err := s.Source(addr("192.0.2.1")); err == nil {
		t.Errorf("towards nowhere the host is %s", got)
	}
}

// TestNodePortKeepsClient checks that only the host's own address is replaced.
func TestNodePortKeepsClient(t *testing.T) {
	s := host()
	is(t, "from another host", s.Receive("eth0", packet("10.99.0.7", 5000, "10.99.0.1", 30081)), "vpp1", "10.99.0.7:5000", "172.30.1.1:30081")
	is(t, "the answer", s.Receive("vpp1", packet("172.30.1.1", 30081, "10.99.0.7", 5000)), "eth0", "10.99.0.1:30081", "10.99.0.7:5000")
	is(t, "from the host itself", s.Send(packet("10.99.0.1", 5000, "10.99.0.1", 30081)), "vpp1", "172.30.1.2:5000", "172.30.1.1:30081")
	is(t, "the answer", s.Receive("vpp1", packet("172.30.1.1", 30081, "172.30.1.2", 5000)), "", "10.99.0.1:30081", "10.99.0.1:5000")
}

// TestNodePort checks that a packet to a node port at the host's address is sent to VPP with the host's address, and that the answer comes back.
func TestNodePort(t *testing.T) {
	s := host()
	is(t, "from a neighbour", s.Receive("eth0", packet("10.99.0.7", 5, "10.99.0.1", 30080)), "vpp1", "172.30.1.2:5",
		"172.30.1.1:30080")
	is(t, "its answer", s.Receive("vpp1", packet("172.30.1.1", 30080, "172.30.1.2", 5)), "eth0", "10.99.0.1:30080", "10.99.0.7:5")
	is(t, "more of it", s.Receive("eth0", packet("10.99.0.7", 5, "10.99.0.1", 30080)), "vpp1", "172.30.1.2:5", "172.30.1.1:30080")
	is(t, "another with its port", s.Receive("eth0", packet("10.99.0.8", 5, "10.99.0.1", 30080)), "vpp1", "172.30.1.2:6",
		"172.30.1.1:30080")
	is(t, "its answer", s.Receive("vpp1", packet("172.30.1.1", 30080, "172.30.1.2", 6)), "eth0", "10.99.0.1:30080", "10.99.0.8:5")
	is(t, "from the host", s.Send(packet("10.99.0.1", 9, "10.99.0.1", 30080)), "vpp1", "172.30.1.2:9", "172.30.1.1:30080")
	is(t, "its answer", s.Receive("vpp1", packet("172.30.1.1", 30080, "172.30.1.2", 9)), "", "10.99.0.1:30080", "10.99.0.1:9")
	is(t, "from VPP", s.Receive("vpp1", packet("10.1.2.3", 5, "10.99.0.1", 30080)), "", "10.1.2.3:5", "10.99.0.1:30080")
	is(t, "another port", s.Receive("eth0", packet("10.99.0.7", 5, "10.99.0.1", 22)), "", "10.99.0.7:5", "10.99.0.1:22")
	udp := packet("10.99.0.7", 5, "10.99.0.1", 30080)
	udp.Proto = vppfake.ProtoUDP
	is(t, "another protocol", s.Receive("eth0", udp), "", "10.99.0.7:5", "10.99.0.1:30080")

	e := vppfake.Packet{
		Src: addr("172.30.1.1"), Dst: addr("172.30.1.2"), Proto: vppfake.ProtoICMP, TTL: 64, EthDst: vppfake.MAC{2},
		Error: &vppfake.ICMPError{Type: 3, Code: 3, Inner: packet("172.30.1.2", 5, "172.30.1.1", 30080)},
	}
	o := s.Receive("vpp1", e)
	if inner := o.Packet.Error.Inner; o.Device != "eth0" || inner.Src != addr("10.99.0.7") || inner.Dst != addr("10.99.0.1") ||
		o.Packet.Dst != addr("10.99.0.7") {
		t.Errorf("an error about it: %+v", o)
	}
}
