package vppfake_test

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"

	"go.fd.io/govpp/binapi/ip_types"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

func contivPacketScenarios() []packetScenario {
	return []packetScenario{
		{"contiv_sources", contivSources},
		{"contiv_tunnels", contivTunnels},
		{"contiv_cluster_ip", contivClusterIP},
		{"contiv_targets", contivTargets},
		{"contiv_outside", contivOutside},
		{"contiv_behind_host", contivBehindHost},
		{"contiv_collisions", contivCollisions},
		{"contiv_states", contivStates},
		{"contiv_service_comes", contivServiceComes},
		{"contiv_last_backend", contivLastBackend},
		{"contiv_flows", contivFlows},
		{"contiv_kept", contivKept},
		{"contiv_limits", contivLimits},
		{"contiv_errors", contivErrors},
		{"contiv_fragments", contivFragments},
		{"contiv_policy", contivPolicy},
		{"contiv_policy_services", contivPolicyServices},
		{"contiv_policy_changes", contivPolicyChanges},
		{"contiv_policy_older", contivPolicyOlder},
		{"contiv_policy_icmp", contivPolicyICMP},
		{"contiv_policy_node", contivPolicyNode},
	}
}

// The machines behind the ports of contivNode.
const (
	podA = iota
	podB
	hostPort
	uplinkPort
)

// contivNode configures a node: two pods, the host and the uplink, in both families: 10.1.N.2 and fd00:0:0:N::2 behind port N. Services 1 and
// 11 lead to pod B, 2 and 12 to pod A itself.
func contivNode(ps *packetScript) {
	roles := []contiv.ContivRole{rolePod, rolePod, roleHost, roleUplink}
	for n := range ports {
		i := index(n + 1)
		ps.addr(i, fmt.Sprintf("10.1.%d.1/24", n))
		ps.addr(i, fmt.Sprintf("fd00:0:0:%d::1/64", n))
		for _, ip := range []string{at4(n), at6(n)} {
			ps.host(i, ip, n+1)
		}
		q := endpoint(i, roles[n])
		if roles[n] == rolePod {
			q = endpoint(i, roles[n], at4(n), at6(n))
		}
		ps.do(q)
	}
	ps.route(true, 0, "0.0.0.0/0", via(at4(uplinkPort), uplinkPort+1))
	ps.route(true, 0, "::/0", via(at6(uplinkPort), uplinkPort+1))
	for _, p := range []string{"10.1.0.0/23", "fd00::/63"} {
		ps.do(&contiv.ContivNetworkAddDel{IsAdd: true, Prefix: prefix(p), AddressClass: contiv.CONTIV_CLASS_API_POD})
	}
	for _, p := range []string{at4(hostPort) + "/32", at6(hostPort) + "/128"} {
		ps.do(&contiv.ContivNetworkAddDel{IsAdd: true, Prefix: prefix(p), AddressClass: contiv.CONTIV_CLASS_API_NODE})
	}
	ps.do(&contiv.ContivConfigSet{TunnelPorts: []uint16{8472, 0, 0, 0}})
	ps.snat(0, "192.0.2.254", "fd00:2::254", 0, 0)
	for id, end := range map[uint64]string{
		1: at4(podB) + ":8080", 2: at4(podA) + ":8080", 11: "[" + at6(podB) + "]:8080", 12: "[" + at6(podA) + "]:8080",
	} {
		ps.service(true, id, 0)
		ps.backend(true, id, end, 0)
	}
	ps.out.Reset()
}

func (s *script) snat(id uint32, ip4, ip6 string, low, high uint16) {
	q := &contiv.ContivSnatAddDel{IsAdd: true, ID: id, Name: "source", PortLow: low, PortHigh: high}
	if ip4 != "" {
		q.IP4 = addr4(ip4)
	}
	if ip6 != "" {
		q.IP6 = netip.MustParseAddr(ip6).As16()
	}
	s.do(q)
}

// sameFamily returns the address that has the family of a.
func sameFamily(a, four, six string) string {
	if addr(a).Is4() {
		return four
	}
	return six
}

func at4(n int) string { return fmt.Sprintf("10.1.%d.2", n) }
func at6(n int) string { return fmt.Sprintf("fd00:0:0:%d::2", n) }

// front adds a frontend.
func (s *script) front(at string, proto uint8, in, out contiv.ContivTarget, change ...func(*contiv.ContivFrontendAddDel)) {
	q := place(at, proto)
	q.InCluster, q.Outside = in, out
	for _, c := range change {
		c(q)
	}
	s.do(q)
}

// from returns a packet of the machine behind a port.
func from(port int, proto uint8, src, dst string) vppfake.Packet {
	p := vppfake.Packet{EthSrc: hostMAC(port + 1), EthDst: portMAC(port), Proto: proto, Size: 16}
	set := func(text string) (netip.Addr, uint16) {
		if end, err := netip.ParseAddrPort(text); err == nil {
			return end.Addr(), end.Port()
		}
		return addr(text), 0
	}
	p.Src, p.SrcPort = set(src)
	p.Dst, p.DstPort = set(dst)
	return p
}

// l4 sends a packet of a connection.
func (ps *packetScript) l4(port int, proto uint8, src, dst string, flags ...uint8) {
	ps.t.Helper()
	p := from(port, proto, src, dst)
	for _, f := range flags {
		if proto == vppfake.ProtoTCP {
			p.Flags |= f
		}
	}
	ps.send(port, p)
}

func (ps *packetScript) connections() {
	for _, v6 := range []bool{false, true} {
		ps.dumpConnections(v6)
	}
}

// dumpConnections records the fields that do not change with time.
func (ps *packetScript) dumpConnections(v6 bool) {
	var lines []string
	for _, m := range ps.collect(&contiv.ContivConnectionGet{IsIP6: v6, SwIfIndex: index(none)}) {
		d, ok := m.(*contiv.ContivConnectionDetails)
		if !ok {
			continue
		}
		lines = append(lines, fmt.Sprintf("connection proto %d: %s > %s as %s > %s of interface %d, state %d, denied %t", d.Protocol,
			end(d.Client, d.ClientPort), end(d.Frontend, d.FrontendPort), end(d.Source, d.SourcePort), end(d.Backend, d.BackendPort),
			d.SwIfIndex, d.State, d.Denied))
	}
	slices.Sort(lines)
	for _, l := range lines {
		ps.line("%s", l)
	}
}

func end(a ip_types.Address, port uint16) string { return end2(a.String(), port) }

// ownPort records pod B's side of a connection without the source port, which the plugin chooses.
func (ps *packetScript) ownPort(src, dst string) {
	ps.t.Helper()
	p := from(podA, vppfake.ProtoTCP, src, dst)
	p.TTL = 64
	for _, out := range ps.inject(podA, p) {
		ps.line("%s", regexp.MustCompile(`10\.1\.0\.2:(3[2-9]|[4-6][0-9])[0-9]{3} `).ReplaceAllString(out, "10.1.0.2:OTHER "))
	}
}

const syn, ack, fin, rst = vppfake.FlagSYN, vppfake.FlagACK, vppfake.FlagFIN, vppfake.FlagRST

// contivSources tests that a pod can send only from its own addresses.
func contivSources(ps *packetScript) {
	contivNode(ps)
	both := func(what string, send func(own, other, far string)) {
		ps.note("%s", what)
		send(at4(podA), at4(podB), "8.8.8.8")
		send(at6(podA), at6(podB), "2001:db8::8")
	}
	both("its own", func(own, other, far string) {
		ps.l4(podA, vppfake.ProtoUDP, end2(own, 1000), end2(other, 2000))
		ps.l4(podA, vppfake.ProtoTCP, end2(own, 1000), end2(far, 2000))
	})
	both("another pod's, the outside's", func(own, other, far string) {
		ps.l4(podA, vppfake.ProtoUDP, end2(other, 1000), end2(far, 2000))
		ps.l4(podA, vppfake.ProtoTCP, end2(far, 1000), end2(other, 2000))
	})
	both("the node's and the node", func(own, other, far string) {
		ps.l4(podA, vppfake.ProtoUDP, end2(sameFamily(own, at4(hostPort), at6(hostPort)), 1), end2(other, 2))
		ps.l4(hostPort, vppfake.ProtoUDP, end2(far, 1000), end2(other, 2000))
		ps.l4(uplinkPort, vppfake.ProtoUDP, end2(far, 1000), end2(other, 2000))
	})
	both("a pod's of this node by the uplink, and by the host", func(own, other, _ string) {
		ps.l4(uplinkPort, vppfake.ProtoUDP, end2(own, 1001), end2(other, 2000))
		ps.l4(uplinkPort, vppfake.ProtoTCP, end2(own, 1001), end2(other, 2000))
		ps.l4(hostPort, vppfake.ProtoUDP, end2(own, 1001), end2(other, 2000))
	})
	both("DHCP servers", func(own, other, _ string) {
		for _, port := range []uint16{67, 547, 68} {
			ps.l4(podA, vppfake.ProtoUDP, end2(own, port), end2(other, 2000))
		}
	})
	ps.note("other protocols")
	ps.ping(1, at4(podA), at4(podB), 7)
	ps.ping(1, at4(podB), "8.8.8.8", 7)
	p := from(podA, vppfake.ProtoICMPv6, at6(podA), at6(podB))
	ps.send(podA, p)
	p.Src = addr(at6(podB))
	p.Dst = addr(at6(uplinkPort))
	ps.send(podA, p)
	contivNeighbours(ps)
	ps.note("a pod without addresses, one that gets them")
	ps.do(endpoint(1, rolePod))
	ps.l4(podA, vppfake.ProtoUDP, end2(at4(podA), 1000), end2(at4(podB), 2000))
	ps.do(endpoint(1, rolePod, at4(podA)))
	ps.l4(podA, vppfake.ProtoUDP, end2(at4(podA), 1000), end2(at4(podB), 2000))
	ps.l4(podA, vppfake.ProtoUDP, end2(at6(podA), 1000), end2(at6(podB), 2000))
	ps.spoofed()
	ps.note("no endpoint any more")
	ps.do(&contiv.ContivEndpointDel{SwIfIndex: 1})
	ps.l4(podA, vppfake.ProtoUDP, "8.8.8.8:1000", end2(at4(podB), 2000))
}

// spoofed records the number of spoofed packets.
func (ps *packetScript) spoofed() {
	for _, m := range ps.collect(&contiv.ContivEndpointDump{}) {
		if d := m.(*contiv.ContivEndpointDetails); d.Role == rolePod {
			ps.line("interface %d: %d spoofed", d.SwIfIndex, d.Spoofed)
		}
	}
}

// contivNeighbours tests ARP and neighbour discovery.
func contivNeighbours(ps *packetScript) {
	ps.note("ARP: its own, another's, a probe")
	for _, sender := range []string{at4(podA), at4(podB), "10.1.0.1", "10.1.0.9"} {
		ps.send(podA, arpRequest(podA+1, sender, "10.1.0.1"))
	}
	ps.note("neighbour discovery is for VPP: what passes is not seen")
	nd := func(kind uint8, src, dst, target string) {
		p := from(podA, vppfake.ProtoICMPv6, src, dst)
		p.Size, p.TTL, p.ND = 0, 255, &vppfake.Discovery{Type: kind}
		if target != "" {
			p.ND.Target = addr(target)
		}
		ps.send(podA, p)
	}
	for _, src := range []string{at6(podA), "fe80::1", "::", at6(podB)} {
		nd(vppfake.NDNeighborSolicitation, src, "ff02::1:ff00:1", "fd00::1")
	}
	ps.spoofed()
	for _, target := range []string{at6(podA), "fe80::1", at6(podB), "fd00::1"} {
		nd(vppfake.NDNeighborAdvertisement, at6(podA), "fd00::1", target)
	}
	ps.spoofed()
	nd(vppfake.NDRouterSolicitation, "fe80::1", "ff02::2", "")
	nd(vppfake.NDRouterAdvertisement, "fe80::1", "ff02::1", "")
	nd(vppfake.NDRedirect, at6(podA), "fd00::1", at6(podB))
	ps.spoofed()
}

func end2(a string, port uint16) string { return netip.AddrPortFrom(addr(a), port).String() }

// contivTunnels tests that the ports of tunnels between nodes are closed to pods, also behind a service.
func contivTunnels(ps *packetScript) {
	contivNode(ps)
	for _, far := range []string{at4(uplinkPort), at6(uplinkPort)} {
		own, host := at4(podA), at4(hostPort)
		if addr(far).Is6() {
			own, host = at6(podA), at6(hostPort)
		}
		ps.l4(podA, vppfake.ProtoUDP, end2(own, 1000), end2(far, 8472))
		ps.l4(podA, vppfake.ProtoUDP, end2(own, 1000), end2(far, 4790))
		ps.l4(podA, vppfake.ProtoTCP, end2(own, 1000), end2(far, 8472))
		ps.l4(podA, vppfake.ProtoUDP, end2(own, 8472), end2(far, 1000))
		ps.l4(hostPort, vppfake.ProtoUDP, end2(host, 1000), end2(far, 8472))
		ps.l4(uplinkPort, vppfake.ProtoUDP, end2(far, 1000), end2(host, 8472))
	}
	ps.note("a service whose backend is a tunnel's end")
	ps.service(true, 3, 0)
	ps.backend(true, 3, end2(at4(uplinkPort), 8472), 0)
	ps.front("10.96.0.1:80", 17, to(3), to(3))
	ps.l4(podA, vppfake.ProtoUDP, end2(at4(podA), 1000), "10.96.0.1:80")
	ps.note("no client reaches a frontend at such a port")
	ps.front(end2(at4(uplinkPort), 8472), 17, to(1), to(1))
	ps.l4(hostPort, vppfake.ProtoUDP, end2(at4(hostPort), 1000), end2(at4(uplinkPort), 8472))
	ps.note("IPv6 extension headers, IPv4 options")
	for _, n := range []int{1, 7, 8, 9} {
		p := from(podA, vppfake.ProtoUDP, end2(at6(podA), 1000), end2(at6(podB), 2000))
		p.Extensions = n
		ps.send(podA, p)
		p.DstPort = 8472
		ps.send(podA, p)
	}
	p := from(podA, vppfake.ProtoUDP, end2(at4(podA), 1000), end2(at4(podB), 8472))
	p.Extensions = 10
	ps.send(podA, p)
	ps.connections()
	ps.stats()
}

func (ps *packetScript) stats() {
	r := &contiv.ContivStatsGetReply{}
	if err := ps.conn.Invoke(ps.t.Context(), &contiv.ContivStatsGet{}, r); err != nil {
		ps.t.Fatal(err)
	}
	ps.line("%s", text(r))
}

// contivClusterIP tests a service in the cluster, with both families, TCP and UDP.
func contivClusterIP(ps *packetScript) {
	contivNode(ps)
	for _, f := range []struct {
		vip, a, b string
		service   uint64
	}{{"10.96.0.1", at4(podA), at4(podB), 1}, {"fd00:96::1", at6(podA), at6(podB), 11}} {
		for _, proto := range []uint8{vppfake.ProtoTCP, vppfake.ProtoUDP, vppfake.ProtoSCTP} {
			ps.front(end2(f.vip, 80), proto, to(f.service), to(f.service))
			ps.front(end2(f.vip, 81), proto, to(f.service+1), to(f.service+1))
		}
		ps.front(end2(f.vip, 0), 0, rejected(), rejected())
		ps.note("there and back")
		for _, proto := range []uint8{vppfake.ProtoTCP, vppfake.ProtoUDP} {
			ps.l4(podA, proto, end2(f.a, 1000), end2(f.vip, 80))
			ps.l4(podB, proto, end2(f.b, 8080), end2(f.a, 1000), syn, ack)
			ps.l4(podA, proto, end2(f.a, 1000), end2(f.vip, 80), ack)
		}
		ps.note("from the node and from outside, whose addresses stay")
		ps.l4(hostPort, vppfake.ProtoTCP, end2(sameFamily(f.a, at4(hostPort), at6(hostPort)), 1001), end2(f.vip, 80))
		ps.l4(uplinkPort, vppfake.ProtoTCP, end2(sameFamily(f.a, "8.8.8.8", "2001:db8::8"), 1001), end2(f.vip, 80))
		ps.note("hairpin")
		ps.l4(podA, vppfake.ProtoTCP, end2(f.a, 40000), end2(f.vip, 81))
		masquerade := sameFamily(f.a, "192.0.2.254", "fd00:2::254")
		ps.l4(podA, vppfake.ProtoTCP, end2(f.a, 8080), end2(masquerade, 40000), syn, ack)
		ps.note("straight to the backend, from a port of its own")
		ps.l4(podA, vppfake.ProtoTCP, end2(f.a, 1002), end2(f.b, 8080))
		ps.l4(podB, vppfake.ProtoTCP, end2(f.b, 8080), end2(f.a, 1002), syn, ack)
		ps.dumpConnections(addr(f.a).Is6())
		ps.note("a backend more; it goes, and the connection stays")
		ps.backend(true, f.service, end2(f.b, 8081), 0)
		ps.backend(false, f.service, end2(f.b, 8080), 0)
		ps.l4(podA, vppfake.ProtoTCP, end2(f.a, 1000), end2(f.vip, 80), ack)
		ps.l4(podA, vppfake.ProtoTCP, end2(f.a, 1005), end2(f.vip, 80))
		ps.l4(podA, vppfake.ProtoUDP, end2(f.a, 1000), end2(f.vip, 80))
		ps.backend(true, f.service, end2(f.b, 8080), 0)
		ps.backend(false, f.service, end2(f.b, 8081), 0)
	}
}

// contivTargets tests the targets of the classes of clients.
func contivTargets(ps *packetScript) {
	ps.reports = true
	contivNode(ps)
	masqueraded := to(1)
	masqueraded.Flags = contiv.CONTIV_TARGET_API_MASQ
	udp, tcp := uint8(vppfake.ProtoUDP), uint8(vppfake.ProtoTCP)
	host, outside := at4(hostPort), "8.8.8.8"
	ps.note("rejected, dropped, without backends; pod, host, outside")
	ps.service(true, 9, 0)
	ps.front("10.96.0.1:80", tcp, rejected(), dropped())
	ps.front("10.96.0.1:80", udp, dropped(), rejected())
	ps.front("10.96.0.1:81", tcp, to(9), to(99))
	ps.front("10.96.0.2:0", 0, rejected(), dropped())
	ps.front("[fd00:96::1]:80", tcp, rejected(), dropped())
	ps.front("[fd00:96::1]:80", udp, rejected(), dropped())
	for _, at := range []string{"10.96.0.1:80", "10.96.0.1:81", "10.96.0.2:80"} {
		for _, proto := range []uint8{tcp, udp} {
			ps.l4(podA, proto, end2(at4(podA), 1000), at)
			ps.l4(hostPort, proto, end2(host, 1000), at)
			ps.l4(uplinkPort, proto, end2(outside, 1000), at)
		}
	}
	ps.note("later packets, resets, a ping, IPv6")
	ps.l4(podA, tcp, end2(at4(podA), 1000), "10.96.0.1:80", ack)
	ps.l4(podA, tcp, end2(at4(podA), 1000), "10.96.0.1:80", rst)
	ps.ping(1, at4(podA), "10.96.0.2", 7)
	for _, proto := range []uint8{tcp, udp} {
		ps.l4(podA, proto, end2(at6(podA), 1000), "[fd00:96::1]:80")
		ps.l4(uplinkPort, proto, "[2001:db8::8]:1000", "[fd00:96::1]:80")
	}
	ps.note("source ranges")
	ranged := func(set uint64) func(*contiv.ContivFrontendAddDel) {
		return func(q *contiv.ContivFrontendAddDel) { q.Ranges = set }
	}
	ps.do(&contiv.ContivRangeAddDel{IsAdd: true, ID: 1, Prefix: prefix("8.8.8.0/24")})
	ps.front("203.0.113.1:80", tcp, to(1), to(1), ranged(1))
	ps.front("203.0.113.1:81", tcp, to(1), to(1), ranged(2))
	ps.front("203.0.113.1:82", tcp, rejected(), rejected(), ranged(1))
	for _, at := range []string{"203.0.113.1:80", "203.0.113.1:81", "203.0.113.1:82"} {
		ps.l4(podA, tcp, end2(at4(podA), 1001), at)
		ps.l4(uplinkPort, tcp, end2(outside, 1001), at)
	}
	ps.note("masquerade of the outside; a backend that always has it")
	ps.front("203.0.113.2:80", tcp, to(1), masqueraded)
	ps.l4(podA, tcp, end2(at4(podA), 40002), "203.0.113.2:80")
	ps.l4(uplinkPort, tcp, end2(outside, 40002), "203.0.113.2:80")
	ps.l4(podB, tcp, end2(at4(podB), 8080), "192.0.2.254:40002", syn, ack)
	ps.service(true, 4, 0)
	ps.backend(true, 4, end2(host, 9000), contiv.CONTIV_BACKEND_API_MASQ)
	ps.front("203.0.113.3:80", tcp, to(4), to(4))
	ps.l4(podA, tcp, end2(at4(podA), 40003), "203.0.113.3:80")
	ps.note("a backend outside of the cluster: masqueraded as the node, if that has an address")
	ps.service(true, 5, 0)
	ps.backend(true, 5, "8.8.4.4:53", contiv.CONTIV_BACKEND_API_MASQ)
	ps.front("203.0.113.4:80", tcp, to(5), to(5))
	ps.l4(podA, tcp, end2(at4(podA), 40004), "203.0.113.4:80")
	ps.snat(1, "192.0.2.1", "", 0, 0)
	ps.l4(podA, tcp, end2(at4(podA), 40005), "203.0.113.4:80")
	ps.note("no address for it")
	ps.do(&contiv.ContivSnatAddDel{ID: 0})
	ps.l4(podA, tcp, end2(at4(podA), 40006), "203.0.113.3:80")
	ps.connections()
}

// contivOutside tests packets of pods to the outside.
func contivOutside(ps *packetScript) {
	contivNode(ps)
	egress := func(id uint32) {
		q := endpoint(1, rolePod, at4(podA), at6(podA))
		q.Egress = id
		ps.do(q)
	}
	udp, tcp := uint8(vppfake.ProtoUDP), uint8(vppfake.ProtoTCP)
	ps.snat(1, "192.0.2.1", "fd00:2::1", 0, 0)
	ps.snat(2, "192.0.2.2", "", 0, 0)
	egress(1)
	for _, f := range [][4]string{{at4(podA), "8.8.8.8", at4(podB), at4(hostPort)}, {at6(podA), "2001:db8::8", at6(podB), at6(hostPort)}} {
		own, far := f[0], f[1]
		node := sameFamily(own, "192.0.2.1", "fd00:2::1")
		ps.note("to the outside and back")
		for _, proto := range []uint8{tcp, udp} {
			ps.l4(podA, proto, end2(own, 40000), end2(far, 53))
			ps.l4(uplinkPort, proto, end2(far, 53), end2(node, 40000), syn, ack)
			ps.l4(podA, proto, end2(own, 40000), end2(far, 53), ack)
		}
		ps.note("to pods and nodes; from others")
		ps.l4(podA, udp, end2(own, 40000), end2(f[2], 53))
		ps.l4(podA, udp, end2(own, 40000), end2(f[3], 53))
		ps.l4(uplinkPort, udp, end2(far, 99), end2(own, 40010))
		ps.l4(podA, udp, end2(own, 40010), end2(far, 99))
	}
	ps.note("pings")
	ps.ping(1, at4(podA), "8.8.8.8", 7)
	ps.pong(4, "8.8.8.8", "192.0.2.1", 7)
	p := from(podA, vppfake.ProtoICMPv6, at6(podA), "2001:db8::8")
	p.Echo = 9
	ps.send(podA, p)
	p = from(uplinkPort, vppfake.ProtoICMPv6, "2001:db8::8", "fd00:2::1")
	p.Echo, p.EchoReply = 9, true
	ps.send(uplinkPort, p)
	ps.note("a source without IPv6; none at all")
	egress(2)
	ps.l4(podA, udp, end2(at4(podA), 40007), "8.8.8.8:53")
	ps.l4(podA, udp, end2(at6(podA), 40007), "[2001:db8::8]:53")
	egress(3)
	ps.l4(podA, udp, end2(at4(podA), 40008), "8.8.8.8:53")
	ps.l4(podA, udp, end2(at4(podA), 40007), "8.8.8.8:53")
	ps.connections()
}

// contivBehindHost tests clients for which the host forwards: they are outside, and the replies go through the host.
func contivBehindHost(ps *packetScript) {
	ps.reports = true
	contivNode(ps)
	ps.table(7, false)
	ps.table(7, true)
	ps.route(true, 7, "0.0.0.0/0", via(at4(hostPort), hostPort+1))
	ps.route(true, 7, "::/0", via(at6(hostPort), hostPort+1))
	q := endpoint(hostPort+1, roleHost, at4(hostPort), at6(hostPort))
	q.Table = 7
	ps.do(q)
	reject := rejected()
	for _, f := range []struct {
		vpp, a, b, host, far string
		all, local           uint64
	}{{"10.1.2.1", at4(podA), at4(podB), at4(hostPort), "8.8.8.8", 2, 1},
		{"fd00:0:0:2::1", at6(podA), at6(podB), at6(hostPort), "2001:db8::8", 12, 11}} {
		for _, proto := range []uint8{vppfake.ProtoTCP, vppfake.ProtoUDP} {
			ps.front(end2(f.vpp, 30080), proto, to(f.all), to(f.local))
			ps.note("the host itself")
			ps.l4(hostPort, proto, end2(f.host, 40000), end2(f.vpp, 30080))
			ps.l4(podA, proto, end2(f.a, 8080), end2(f.host, 40000), syn, ack)
			ps.note("a client of it, in both directions; another pod's answer goes by the routes")
			ps.l4(hostPort, proto, end2(f.far, 40000), end2(f.vpp, 30080))
			ps.l4(podB, proto, end2(f.b, 8080), end2(f.far, 40000), syn, ack)
			ps.l4(hostPort, proto, end2(f.far, 40000), end2(f.vpp, 30080), ack)
			ps.l4(podB, proto, end2(f.b, 8080), end2(f.far, 40000), ack)
			ps.l4(podA, proto, end2(f.a, 8080), end2(f.far, 40000), ack)
			ps.l4(podA, proto, end2(f.b, 8080), end2(f.far, 40000), ack)
			ps.note("no backend")
			ps.front(end2(f.vpp, 30081), proto, reject, reject)
			ps.l4(hostPort, proto, end2(f.far, 40000), end2(f.vpp, 30081))
		}
		ps.note("an error of the backend, and of a pod that has no part in it")
		about := from(podB, vppfake.ProtoUDP, end2(f.far, 40000), end2(f.b, 8080))
		about.EthSrc, about.EthDst, about.TTL = vppfake.MAC{}, vppfake.MAC{}, 63
		ps.portUnreachable(podB+1, f.b, about)
		ps.portUnreachable(podA+1, f.a, about)
	}
	ps.connections()
}
