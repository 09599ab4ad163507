package plugin_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed/matrix"
)

// site has the interfaces of two pods, a client and a server, and a service of each family in front of the server.
type site struct {
	*rig
	client, server *generator
	all            []*generator
}

func newSite(r *rig) *site {
	r.Helper()
	s := &site{rig: r, client: r.pg(""), server: r.pg("")}
	s.all = []*generator{s.client, s.server}
	for _, g := range s.all {
		r.pgEndpoint(g, contiv.CONTIV_ROLE_API_POD, g.v4, g.v6)
	}
	r.network("10.1.0.0/16", contiv.CONTIV_CLASS_API_POD)
	r.network("fd00:1::/32", contiv.CONTIV_CLASS_API_POD)
	r.masquerade("10.1.1.1", "fd00:1:1::1")
	id := uint64(0)
	for _, proto := range []uint8{tcp, udp, sctp} {
		for _, ends := range [][2]string{{"10.96.0.1:80", "10.1.2.2:8080"}, {"[fd00:96::1]:80", "[fd00:1:2::2]:8080"}} {
			id++
			r.service(id, ends[0], proto, ends[1])
		}
	}
	return s
}

// onSite runs a test without worker threads, and with 1 to workers threads. Two take a long time on a small machine: they are for tests
// where one thread has data that another one needs.
func onSite(t *testing.T, workers int, run func(s *site)) {
	for n := range workers + 1 {
		t.Run(fmt.Sprintf("workers=%d", n), func(t *testing.T) {
			matrix.Only(t, "workers=2")
			run(newSite(newRig(t, vpptest.Options{Workers: n})))
		})
	}
}

// requestFlow returns the flow that a client sends to a service, and the flow that the server receives.
func requestFlow(v6 bool, proto uint8, port uint16) (sent, got flow) {
	if v6 {
		client := netip.AddrPortFrom(netip.MustParseAddr("fd00:1:1::2"), port)
		return flow{proto, client, netip.MustParseAddrPort("[fd00:96::1]:80")}, flow{proto, client, netip.MustParseAddrPort("[fd00:1:2::2]:8080")}
	}
	client := netip.AddrPortFrom(netip.MustParseAddr("10.1.1.2"), port)
	return flow{proto, client, netip.MustParseAddrPort("10.96.0.1:80")}, flow{proto, client, netip.MustParseAddrPort("10.1.2.2:8080")}
}

// expect sends packets and compares the flows that a generator receives; no other packet may be received.
func (s *site) expect(from, to *generator, packets [][]byte, want ...flow) [][]byte {
	s.Helper()
	out := s.send(from, s.all, packets...)
	var got []flow
	for _, p := range out[to.n] {
		f, _, right := read(p)
		if !right {
			s.Errorf("wrong checksum: % x", p)
		}
		got = append(got, f)
	}
	if !slices.Equal(got, want) {
		s.Errorf("came out of pg%d: %v, want %v", to.n, got, want)
	}
	for n, all := range out {
		if n != to.n && len(all) > 0 {
			s.Errorf("came out of pg%d: % x", n, all)
		}
	}
	return out[to.n]
}

var families = []bool{false, true}

// Packets to a service and their answers are translated, with correct checksums.
func TestTranslation(t *testing.T) {
	onSite(t, 2, func(s *site) {
		for _, v6 := range families {
			for _, proto := range []uint8{tcp, udp} {
				sent, got := requestFlow(v6, proto, 1000)
				s.expect(s.client, s.server, [][]byte{sent.packet(syn, []byte("to the service"))}, got)
				s.expect(s.server, s.client, [][]byte{got.back().packet(syn|ack, []byte("back"))}, sent.back())
				if trace := s.trace(s.client, sent.packet(ack, nil)); !bytes.Contains(trace, []byte(fmt.Sprint("as ", got.src, " -> ", got.dst))) {
					s.Errorf("trace: %s", trace)
				}
			}
		}
	})
}

func (s *site) trace(from *generator, p []byte) []byte {
	s.Helper()
	s.cli("clear trace")
	s.cli("trace add pg-input 1")
	s.send(from, s.all, p)
	return []byte(s.cli("show trace"))
}

// Fragments of a large datagram reach the backend in any order. Fragments without a first fragment are not forwarded.
func TestFragments(t *testing.T) {
	onSite(t, 2, func(s *site) {
		payload := bytes.Repeat([]byte("0123456789"), 400)
		id := uint32(0)
		for _, v6 := range families {
			sent, got := requestFlow(v6, udp, 2000)
			later := flow{udp, netip.AddrPortFrom(got.src.Addr(), 0), netip.AddrPortFrom(got.dst.Addr(), 0)}
			for range 2 {
				id++
				f := fragments(sent.packet(0, payload), id, 1400)
				s.expect(s.client, s.server, f, got, later, later)
				id++
				f = fragments(sent.packet(0, payload), id, 1400)
				s.expect(s.client, s.server, [][]byte{f[2], f[1], f[0]}, got, later, later)
			}
			id++
			s.expect(s.client, s.server, fragments(sent.packet(0, payload), id, 1400)[1:])
		}
	})
}

// VPP's own addresses: a fragmented ping is answered over IPv4; over IPv6 its fragments are dropped and counted.
func TestLocalFragments(t *testing.T) {
	s := newSite(newRig(t, vpptest.Options{FewPlugins: []string{"af_packet", "ping"}}))
	request := func(proto, kind uint8, from, to netip.Addr) []byte {
		f := flow{proto, netip.AddrPortFrom(from, 0), netip.AddrPortFrom(to, 0)}
		b := append([]byte{kind, 0, 0, 0, 0, 7, 0, 1}, make([]byte, 2000)...)
		be.PutUint16(b[2:], f.checksum(b))
		return ip(proto, from, to, b)
	}
	four := netip.MustParseAddr("10.1.1.1")
	out := s.send(s.client, s.all, fragments(request(icmp4, 8, s.client.v4, four), 1, 1400)...)
	if len(out[s.client.n]) == 0 {
		s.Error("a ping in IPv4 fragments is not answered")
	}
	for _, to := range []string{"fd00:1:1::1", "ff02::1"} {
		f := fragments(request(icmp6, 128, s.client.v6, netip.MustParseAddr(to)), 1, 1400)
		before := s.counter("contiv-ip6-local-fragment", "fragment to an address of VPP")
		if out := s.send(s.client, s.all, f...); len(out[s.client.n]) > 0 {
			s.Errorf("a ping of %s in fragments is answered", to)
		}
		if n := s.counter("contiv-ip6-local-fragment", "fragment to an address of VPP") - before; n != len(f) {
			s.Errorf("%s: %d of %d fragments are counted", to, n, len(f))
		}
	}
}

// A flood of fragments without first fragments does not use up buffers, and does not affect the fragments of other pods.
func TestFragmentFlood(t *testing.T) {
	onSite(t, 2, func(s *site) {
		sent, got := requestFlow(false, udp, 2000)
		var flood [][]byte
		for id := range uint32(5000) {
			flood = append(flood, fragments(sent.packet(0, make([]byte, 100)), id, 64)[1])
		}
		before := s.buffersUsed()
		s.expect(s.client, s.server, flood)
		if used := s.buffersUsed() - before; used > 64+64 {
			s.Errorf("%d buffers wait", used)
		}
		back := fragments(got.back().packet(0, make([]byte, 100)), 77, 64)
		s.expect(s.client, s.server, [][]byte{sent.packet(0, nil)}, got)
		s.expect(s.server, s.client, back, sent.back(), flow{udp, netip.AddrPortFrom(sent.dst.Addr(), 0), netip.AddrPortFrom(sent.src.Addr(), 0)})
		s.advance(10 * time.Second) // longer than a fragment waits
		s.eventually("all buffers are back", func() bool { return s.buffersUsed() <= before })
	})
}

// An ICMP error of a router on the path to the backend, and one of the client: each arrives with the addresses that its receiver uses.
func TestErrors(t *testing.T) {
	onSite(t, 2, func(s *site) {
		for _, v6 := range families {
			sent, got := requestFlow(v6, udp, 3000)
			s.expect(s.client, s.server, [][]byte{sent.packet(0, []byte("hello"))}, got)
			proto, unreachable := uint8(icmp4), uint8(3)
			if v6 {
				proto, unreachable = icmp6, 1
			}
			report := func(from, to netip.Addr, inner []byte) []byte {
				f := flow{proto, netip.AddrPortFrom(from, 0), netip.AddrPortFrom(to, 0)}
				b := append([]byte{unreachable, 3, 0, 0, 0, 0, 0, 0}, inner...)
				be.PutUint16(b[2:], f.checksum(b))
				return ip(proto, from, to, b)
			}
			out := s.expect(s.server, s.client, [][]byte{report(got.dst.Addr(), got.src.Addr(), got.packet(0, []byte("hello")))},
				flow{proto, netip.AddrPortFrom(sent.dst.Addr(), 0), netip.AddrPortFrom(sent.src.Addr(), 0)})
			if len(out) == 1 && !bytes.HasSuffix(out[0], sent.packet(0, []byte("hello"))[len(sent.packet(0, nil))-8:]) {
				s.Errorf("inside: % x", out[0])
			}
		}
	})
}

// A frontend without backends answers from its own address, with a reset or an ICMP error; at most a thousand per second and interface.
func TestReject(t *testing.T) {
	onSite(t, 1, func(s *site) {
		for n, ends := range []string{"10.96.0.9:80", "[fd00:96::9]:80"} {
			v6 := n == 1
			s.service(90+uint64(n), ends, tcp)
			s.service(92+uint64(n), ends, udp)
			client, _ := requestFlow(v6, tcp, 4000)
			to := flow{tcp, client.src, netip.MustParseAddrPort(ends)}
			out := s.expect(s.client, s.client, [][]byte{to.packet(syn, nil)}, to.back())
			if _, flags, _ := read(out[0]); flags != rst|ack {
				s.Errorf("flags of the answer: %x", flags)
			}
			proto := uint8(icmp4)
			if v6 {
				proto = icmp6
			}
			s.expect(s.client, s.client, [][]byte{flow{udp, to.src, to.dst}.packet(0, []byte("hello"))},
				flow{proto, netip.AddrPortFrom(to.dst.Addr(), 0), netip.AddrPortFrom(to.src.Addr(), 0)})
			var flood [][]byte
			for range 20000 {
				flood = append(flood, to.packet(syn, nil))
			}
			s.advance(time.Second) // at most the answers of one second are saved up
			begin := time.Now()
			got := len(s.send(s.client, s.all, flood...)[s.client.n])
			if most := 2000 + int(1000*time.Since(begin).Seconds()); got < 900 || got > most {
				s.Errorf("%d answers to %d packets; %d are the most for the time that it took", got, len(flood), most)
			}
		}
	})
}

// A pod whose packets are rejected at a high rate does not use up the answers to another pod, which the same worker serves.
func TestRejectOfOthers(t *testing.T) {
	s := newSite(newRig(t, vpptest.Options{}))
	for n, ends := range []string{"10.96.0.9:80", "[fd00:96::9]:80"} {
		own, other := s.client.v4, s.server.v4
		if n == 1 {
			own, other = s.client.v6, s.server.v6
		}
		at := netip.MustParseAddrPort(ends)
		s.service(90+uint64(n), ends, tcp)
		packets := func(from netip.Addr, number int) (list [][]byte) {
			for range number {
				list = append(list, flow{tcp, netip.AddrPortFrom(from, 5000), at}.packet(syn, nil))
			}
			return list
		}
		s.advance(2 * time.Second) // the budgets are full
		const fewer = 900          // than an interface's budget; a budget that is shared does not get so many in the time that the test takes
		s.send(s.client, s.all, packets(own, 20000)...)
		if got := len(s.send(s.server, s.all, packets(other, fewer)...)[s.server.n]); got != fewer {
			s.Errorf("%s: %d answers to %d packets of the second pod, after many packets of the first", ends, got, fewer)
		}
	}
}

// Packets that a pod is not allowed to send are dropped and counted.
func TestSpoofing(t *testing.T) {
	onSite(t, 1, func(s *site) {
		for name, p := range map[string][]byte{
			"another pod's source":       newFlow(udp, "10.1.2.9:1", "10.1.2.2:2").packet(0, nil),
			"another pod's IPv6 source":  newFlow(udp, "[fd00:1:2::9]:1", "[fd00:1:2::2]:2").packet(0, nil),
			"the frontend's":             newFlow(udp, "10.96.0.1:80", "10.1.2.2:2").packet(0, nil),
			"no source":                  newFlow(udp, "0.0.0.0:68", "255.255.255.255:67").packet(0, nil),
			"a DHCP server's answer":     newFlow(udp, "10.1.1.2:67", "10.1.2.2:68").packet(0, nil),
			"multicast, another source":  newFlow(udp, "10.1.2.9:1", "224.0.0.9:520").packet(0, nil),
			"router advertisement":       newFlow(icmp6, "[fe80::1]:0", "[ff02::1]:0").packet(134, make([]byte, 8)),
			"router advertisement, own":  newFlow(icmp6, "[fd00:1:1::2]:0", "[ff02::1]:0").packet(134, make([]byte, 8)),
			"advertisement of another":   newFlow(icmp6, "[fe80::2]:0", "[ff02::1]:0").packet(136, netip.MustParseAddr("fd00:1:2::2").AsSlice()),
			"a fragment, another source": fragments(newFlow(udp, "10.1.2.9:1", "10.1.2.2:2").packet(0, make([]byte, 100)), 1, 64)[0],
		} {
			before := s.stats().Spoofed
			if out := s.send(s.client, s.all, p); len(out) > 0 {
				s.Errorf("%s: came out: %v", name, out)
			}
			if n := s.stats().Spoofed - before; n != 1 {
				s.Errorf("%s: counted %d times", name, n)
			}
		}
		before := s.stats().Spoofed
		s.send(s.client, s.all, arp(s.client.n, netip.MustParseAddr("10.1.1.7"), netip.MustParseAddr("10.1.1.1")))
		if s.stats().Spoofed != before+1 {
			s.Error("ARP with another's address is not counted")
		}
		s.send(s.client, s.all, arp(s.client.n, s.client.v4, netip.MustParseAddr("10.1.1.1")))
		if s.stats().Spoofed != before+1 {
			s.Error("ARP with the pod's address is counted")
		}
	})
}

func arp(n int, sender, target netip.Addr) []byte {
	b := append(append([]byte{255, 255, 255, 255, 255, 255}, hostMAC(n)...), 8, 6, 0, 1, 8, 0, 6, 4, 0, 1)
	b = append(append(append(b, hostMAC(n)...), sender.AsSlice()...), 0, 0, 0, 0, 0, 0)
	return append(b, target.AsSlice()...)
}

// Tunnel packets of a pod are dropped, also those to the node's own addresses.
func TestTunnel(t *testing.T) {
	s := newSite(newRig(t, vpptest.Options{}))
	s.do(s.api.ContivConfigSet(s.Context(), &contiv.ContivConfigSet{TunnelPorts: []uint16{4789, 0, 0, 0}}))
	s.expect(s.client, s.server, [][]byte{newFlow(udp, "10.1.1.2:4789", "10.1.2.2:4789").packet(0, nil)})
	s.expect(s.client, s.server, [][]byte{newFlow(udp, "10.1.1.2:5000", "10.1.2.2:4790").packet(0, nil)}, newFlow(udp, "10.1.1.2:5000", "10.1.2.2:4790"))
	if n := s.stats().Tunnel; n != 1 {
		t.Errorf("%d tunnel packets counted", n)
	}
}

// A pod's flood of new connections stops at its limit. It does not affect other pods, nor the pod's own open connections.
func TestLimit(t *testing.T) {
	onSite(t, 2, func(s *site) {
		const limit = 1000
		s.do(s.api.ContivConfigSet(s.Context(), &contiv.ContivConfigSet{EndpointConnections: limit}))
		sent, got := requestFlow(false, tcp, 999)
		s.expect(s.client, s.server, [][]byte{sent.packet(syn, nil)}, got)
		var flood [][]byte
		for port := range uint16(20000) {
			f, _ := requestFlow(false, udp, 1000+port)
			flood = append(flood, f.packet(0, nil))
		}
		if n := len(s.send(s.client, s.all, flood...)[s.server.n]); n != limit-1 {
			s.Errorf("%d packets of the flood came out", n)
		}
		if st := s.stats(); st.Connections4 != limit || st.RefusedLimit != 20000-limit+1 {
			s.Errorf("stats: %+v", st)
		}
		s.expect(s.client, s.server, [][]byte{sent.packet(ack, nil)}, got)
		s.expect(s.server, s.client, [][]byte{got.back().packet(syn|ack, nil)}, sent.back())
		other := flow{udp, netip.AddrPortFrom(s.server.v4, 40000), netip.MustParseAddrPort("10.96.0.1:80")}
		s.expect(s.server, s.server, [][]byte{other.packet(0, nil)}, flow{udp, netip.MustParseAddrPort("10.1.1.1:40000"), netip.MustParseAddrPort("10.1.2.2:8080")})
	})
}

// Deletion of the interface ends its connections; VPP without endpoints forwards as usual.
func TestEnd(t *testing.T) {
	onSite(t, 2, func(s *site) {
		sent, got := requestFlow(false, udp, 999)
		s.expect(s.client, s.server, [][]byte{sent.packet(0, nil), fragments(sent.packet(0, make([]byte, 99)), 1, 64)[1]}, got)
		s.do(s.api.ContivEndpointDel(s.Context(), &contiv.ContivEndpointDel{SwIfIndex: s.client.index}))
		s.eventually("its connections end", func() bool { return s.stats().Connections4 == 0 })
		direct := newFlow(udp, "10.1.1.9:1", "10.1.2.2:2")
		s.expect(s.client, s.server, [][]byte{direct.packet(0, nil)}, direct)
		s.cli("delete packet-generator interface pg%d", s.server.n)
		if out := s.cli("show contiv endpoints"); out != "" {
			s.Errorf("endpoints are left: %s", out)
		}
	})
}

// The neighbours for the addresses of nodes and for the default gateway are resolved before the first packet needs them, which VPP would
// otherwise drop. A neighbour that does not respond is solicited at increasing intervals.
func TestNeighbours(t *testing.T) {
	r := newRig(t, vpptest.Options{Vhostshim: true})
	uplink := r.tap("up", "")
	gateway := [2]netip.Addr{netip.MustParseAddr("10.1.1.9"), netip.MustParseAddr("fd00:1:1::9")}
	for _, addr := range []string{gateway[0].String() + "/24", gateway[1].String() + "/64"} {
		if _, err := uplink.Run(r.Context(), "ip", "addr", "add", addr, "dev", "eth0", "nodad"); err != nil {
			t.Fatal(err)
		}
	}
	known := func(addr netip.Addr) bool { return strings.Contains(r.cli("show ip neighbors"), " "+addr.String()+" ") }
	r.endpoint(uplink, contiv.CONTIV_ROLE_API_UPLINK)
	r.advance(time.Second)
	for _, addr := range []netip.Addr{uplink.v4, uplink.v6} {
		if known(addr) {
			t.Errorf("%s is known although no node has it", addr)
		}
		r.network(netip.PrefixFrom(addr, addr.BitLen()).String(), contiv.CONTIV_CLASS_API_NODE)
		r.eventually(addr.String()+" is known", func() bool { return known(addr) })
	}
	r.cli("ip route add 0.0.0.0/0 via %s tap1", gateway[0])
	r.cli("ip route add ::/0 via %s tap1", gateway[1])
	r.eventually("the gateways are known", func() bool { return known(gateway[0]) && known(gateway[1]) })
	r.cli("set interface state tap1 down")
	if known(uplink.v4) || known(gateway[1]) {
		t.Error("VPP keeps neighbours of an interface that is down")
	}
	r.cli("set interface state tap1 up")
	r.eventually("all are known again", func() bool {
		return known(uplink.v4) && known(uplink.v6) && known(gateway[0]) && known(gateway[1])
	})

	before := r.sentBy("tap1")
	r.network("10.1.1.77/32", contiv.CONTIV_CLASS_API_NODE)
	r.advance(8 * time.Second)
	// Solicitations at 0, 1, 3 and 7 s, the next one at 15 s; possibly one other packet.
	if n := r.sentBy("tap1") - before; n < 3 || n > 6 {
		t.Errorf("a neighbour that does not respond was asked for %d times in 8 s", n)
	}
}

// sentBy returns the number of packets that an interface has sent.
func (r *rig) sentBy(name string) int {
	r.Helper()
	out := r.cli("show interface %s", name)
	_, rest, ok := strings.Cut(out, "tx packets")
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	r.do(nil, err)
	return n
}
