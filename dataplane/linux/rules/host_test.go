package rules_test

import (
	"net/netip"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/rules/rulestest"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

func TestHostEndpoint(t *testing.T) {
	for _, f := range families {
		n := newNode(t, rules.Config{})
		in := n.policy(rules.PolicyInboundPfx, "in", allowTCP(443))
		n.host(table.Filter, rules.Host{Iface: "eth0", From: rules.Direction{Tiers: []rules.Tier{tier("t", in)}}})
		n.workload("caliweb", webAddr, n.openProfile(), n.openProfile())
		n.apply()
		far, own := farAddr[f], nodeAddr[f]
		n.expect("allowed", tcp("eth0", "", far, own, 443), "accept")
		n.expect("denied", tcp("eth0", "", far, own, 444), "drop")
		n.expect("failsafe in: ssh", tcp("eth0", "", far, own, 22), "accept")
		n.expect("failsafe out: etcd", tcp("", "eth0", own, far, 2379), "accept")
		n.expect("failsafe out: DNS", rulestest.Packet{Out: "eth0", Src: own, Dst: far, Proto: 17, DstPort: 53}, "accept")
		n.expect("no profile, no policy out", tcp("", "eth0", own, far, 80), "drop")
		n.expect("another interface", tcp("eth1", "", far, own, 444), "pass")
		n.expect("forwarded to a workload: host policy that is not for forwarding", tcp("eth0", "caliweb", far, webAddr[f],
			444), "accept")
	}
}

func TestHostEndpointCanBeFound(t *testing.T) {
	n := newNode(t, rules.Config{})
	n.host(table.Filter, rules.Host{Iface: "eth0"})
	n.host(table.Raw, rules.Host{Iface: "eth0", From: rules.Direction{Tiers: []rules.Tier{tier("t",
		n.policy(rules.PolicyInboundPfx, "deny", &proto.Rule{Action: "deny"}))}}})
	n.apply()
	icmp := func(kind uint8) rulestest.Packet {
		return rulestest.Packet{In: "eth0", Src: peerAddr[6], Dst: nodeAddr[6], Proto: 58, ICMPType: kind}
	}
	for _, kind := range []uint8{133, 134, 135, 136} {
		n.expect("neighbour discovery", icmp(kind), "accept")
	}
	n.expect("redirect", icmp(137), "drop")
	n.expect("echo", icmp(128), "drop")
	n.expect("solicitation by the node", rulestest.Packet{Out: "eth0", Src: nodeAddr[6], Dst: peerAddr[6], Proto: 58,
		ICMPType: 135}, "accept")
	n.expect("advertisement of a router by the node", rulestest.Packet{Out: "eth0", Src: nodeAddr[6], Dst: peerAddr[6],
		Proto: 58, ICMPType: 134}, "drop")
}

func TestHostForwardPolicy(t *testing.T) {
	n := newNode(t, rules.Config{})
	closed := n.policy(rules.PolicyInboundPfx, "fwd", allowTCP(80))
	out := n.policy(rules.PolicyOutboundPfx, "fwd", allowTCP(443))
	n.host(table.Filter, rules.Host{Iface: "eth0", ForwardFrom: []rules.Tier{tier("t", closed)},
		ForwardTo: []rules.Tier{tier("t", out)}})
	n.workload("caliweb", webAddr, n.openProfile(), n.openProfile())
	n.apply()
	n.expect("forward in allowed", tcp("eth0", "caliweb", farAddr[4], webAddr[4], 80), "accept")
	n.expect("forward in denied", tcp("eth0", "caliweb", farAddr[4], webAddr[4], 81), "drop")
	n.expect("forward out allowed", tcp("caliweb", "eth0", webAddr[4], farAddr[4], 443), "accept")
	n.expect("forward out denied", tcp("caliweb", "eth0", webAddr[4], farAddr[4], 80), "drop")
	n.expect("failsafe ports are not for forwarded traffic", tcp("eth0", "caliweb", farAddr[4], webAddr[4], 22), "drop")
}

func TestUntrackedPolicy(t *testing.T) {
	n := newNode(t, rules.Config{})
	in := n.policy(rules.PolicyInboundPfx, "u", allowTCP(5000), &proto.Rule{Action: "deny", Protocol: protocol("tcp")})
	n.host(table.Raw, rules.Host{Iface: "eth0", From: rules.Direction{Tiers: []rules.Tier{tier("t", in)}}})
	n.host(table.Filter, rules.Host{Iface: "eth0"})
	n.apply()
	allowed := tcp("eth0", "", farAddr[4], nodeAddr[4], 5000)
	if out := n.send(allowed); !out.Packet.Untracked || out.Verdict != "accept" || !out.Accepted {
		t.Errorf("allowed: %+v, want accepted and untracked", out)
	}
	n.expect("denied before anything else", tcp("eth0", "", farAddr[4], nodeAddr[4], 5001), "drop")
	ssh := n.send(tcp("eth0", "", farAddr[4], nodeAddr[4], 22))
	if ssh.Packet.Untracked || ssh.Verdict != "accept" {
		t.Errorf("failsafe port: %+v, want accepted and tracked", ssh)
	}
	answer := tcp("eth0", "", farAddr[4], nodeAddr[4], 40000)
	answer.SrcPort, answer.CT = 2379, table.CTEstablished
	n.expect("answer of a failsafe outbound connection", answer, "accept")
	n.expect("workloads do not meet untracked host policy", tcp("caliweb", "", webAddr[4], nodeAddr[4], 5001), "drop")
}

func TestUntrackedPolicyIsFinal(t *testing.T) {
	n := newNode(t, rules.Config{})
	in := n.policy(rules.PolicyInboundPfx, "u", allowTCP(5000))
	n.host(table.Raw, rules.Host{Iface: "eth0", From: rules.Direction{Tiers: []rules.Tier{tier("t", in)}}})
	closed := n.policy(rules.PolicyInboundPfx, "f", &proto.Rule{Action: "deny"})
	n.host(table.Filter, rules.Host{Iface: "eth0", ForwardFrom: []rules.Tier{tier("t", closed)},
		From: rules.Direction{Tiers: []rules.Tier{tier("t", closed)}}})
	n.host(table.Mangle, rules.Host{Iface: "eth0", From: rules.Direction{Tiers: []rules.Tier{tier("t", closed)}}})
	n.apply()
	n.expect("to the node", tcp("eth0", "", farAddr[4], nodeAddr[4], 5000), "accept")
	n.expect("forwarded", tcp("eth0", "eth1", farAddr[4], peerAddr[4], 5000), "accept")
	n.expect("forwarded, not accepted before", tcp("eth0", "eth1", farAddr[4], peerAddr[4], 5001), "drop")
}

func TestPreDNATPolicy(t *testing.T) {
	n := newNode(t, rules.Config{})
	in := n.policy(rules.PolicyInboundPfx, "p", &proto.Rule{Action: "deny", Protocol: protocol("tcp"), DstPorts: ports(30000)})
	n.host(table.Mangle, rules.Host{Iface: rules.AllInterfaces, From: rules.Direction{Tiers: []rules.Tier{tier("t", in)}}})
	n.workload("caliweb", webAddr, n.openProfile(), n.openProfile())
	n.fakes().SetChains(table.IPv4, table.NAT, n.r.FloatingIPs([]rules.NATPair{{External: farAddr[4], Internal: webAddr[4]}}, nil)...)
	n.apply()
	n.expect("denied before DNAT, whatever interface", tcp("eth7", "caliweb", peerAddr[4], farAddr[4], 30000), "drop")
	n.expect("not denied", tcp("eth7", "caliweb", peerAddr[4], farAddr[4], 80), "accept")
	known := tcp("eth7", "caliweb", peerAddr[4], webAddr[4], 30000)
	known.CT = table.CTEstablished
	n.expect("known connections are not asked again", known, "accept")
}

func TestFailsafeNets(t *testing.T) {
	n := newNode(t, rules.Config{
		FailsafeInboundHostPorts:  []rules.ProtoPort{{Net: "192.0.2.0/24", Protocol: "tcp", Port: 22}},
		FailsafeOutboundHostPorts: []rules.ProtoPort{}})
	n.host(table.Filter, rules.Host{Iface: "eth0"})
	n.apply()
	n.expect("from the net", tcp("eth0", "", peerAddr[4], nodeAddr[4], 22), "accept")
	n.expect("from elsewhere", tcp("eth0", "", farAddr[4], nodeAddr[4], 22), "drop")
	n.expect("other family", tcp("eth0", "", peerAddr[6], nodeAddr[6], 22), "drop")
	n.expect("an empty list is no default", tcp("", "eth0", nodeAddr[4], farAddr[4], 2379), "drop")
}

func TestTunnelInput(t *testing.T) {
	for _, f := range families {
		n := newNode(t, rules.Config{VXLANEnabled: true, VXLANPort: 4790, IPIPEnabled: true})
		n.fakes().ReplaceSet(f, table.Set{ID: rules.SetAllHosts, Type: table.SetNet}, []table.Member{{Net: one(peerAddr[f])}})
		n.fakes().ReplaceSet(f, table.Set{ID: rules.SetVXLANPeers, Type: table.SetNet}, []table.Member{{Net: one(farAddr[f])}})
		n.host(table.Filter, rules.Host{Iface: "eth0"}) // denies everything else
		n.apply()
		vxlan := func(src netip.Addr) rulestest.Packet {
			return rulestest.Packet{In: "eth0", Src: src, Dst: nodeAddr[f], Proto: 17, DstPort: 4790}
		}
		n.expect("VXLAN from a node", vxlan(peerAddr[f]), "accept")
		n.expect("VXLAN from a VTEP", vxlan(farAddr[f]), "accept")
		n.expect("VXLAN from an unknown source", vxlan(dbAddr[f]), "drop")
		intoTunnel := n.send(rulestest.Packet{In: "eth1", Out: "contiv-vxlan", Src: dbAddr[f], Dst: webAddr[f], Proto: 17})
		sent := rulestest.Packet{Out: "eth0", Src: nodeAddr[f], Dst: peerAddr[f], Proto: 17, DstPort: 4790,
			Mark: intoTunnel.Packet.Mark}
		n.expect("the kernel's VXLAN to a node", sent, "accept")
		sent.Dst = dbAddr[f]
		n.expect("the kernel's VXLAN to an unknown destination", sent, "drop")
		process := rulestest.Packet{Out: "eth0", Src: nodeAddr[f], Dst: peerAddr[f], Proto: 17, DstPort: 4790}
		n.expect("a process's VXLAN to a node", process, "drop")
		n.expect("a process's VXLAN to the node itself", rulestest.Packet{In: "lo", Src: peerAddr[f], Dst: nodeAddr[f],
			Proto: 17, DstPort: 4790}, "drop")
		byService := rulestest.Packet{In: "eth0", Out: "eth1", Src: dbAddr[f], Dst: peerAddr[f], Proto: 17, DstPort: 4790}
		n.expect("VXLAN of others that is passed on", byService, "accept")
		byService.DNATed = true
		n.expect("VXLAN by way of a service", byService, "drop")
		if f == table.IPv4 {
			n.expect("IPIP from a node", rulestest.Packet{In: "eth0", Src: peerAddr[f], Dst: nodeAddr[f], Proto: 4}, "accept")
			n.expect("IPIP from an unknown source", rulestest.Packet{In: "eth0", Src: farAddr[f], Dst: nodeAddr[f], Proto: 4}, "drop")
			n.expect("IPIP to a node", rulestest.Packet{Out: "eth0", Src: nodeAddr[f], Dst: peerAddr[f], Proto: 4}, "accept")
		}
	}
}

func TestOpenStack(t *testing.T) {
	n := newNode(t, rules.Config{OpenStackSpecialCasesEnabled: true, OpenStackMetadataIP: nodeAddr[4],
		OpenStackMetadataPort: 8775})
	n.workload("caliweb", webAddr, n.openProfile(), rules.Direction{})
	n.apply()
	meta := n.send(tcp("caliweb", "", webAddr[4], netip.MustParseAddr("169.254.169.254"), 80))
	if meta.Verdict != "accept" || meta.Packet.Dst != nodeAddr[4] || meta.Packet.DstPort != 8775 {
		t.Errorf("metadata: %+v, want accepted at the node's port 8775", meta)
	}
	udp := func(src, dst string, from, to uint16) rulestest.Packet {
		return rulestest.Packet{In: "caliweb", Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr(dst), Proto: 17,
			SrcPort: from, DstPort: to}
	}
	n.expect("DHCP", udp("0.0.0.0", "255.255.255.255", 68, 67), "accept")
	n.expect("DHCPv6", udp("fe80::1", "ff02::1:2", 546, 547), "accept")
	n.expect("its router", rulestest.Packet{In: "caliweb", Src: netip.MustParseAddr("fe80::1"), Dst: netip.MustParseAddr("ff02::2"), Proto: 58,
		ICMPType: 133}, "accept")
	n.expect("DNS", udp("10.1.0.1", "192.0.2.1", 999, 53), "accept")
	n.expect("anything else", udp("10.1.0.1", "192.0.2.1", 999, 54), "drop")
}

func TestKubeIPVS(t *testing.T) {
	n := newNode(t, rules.Config{KubeIPVSSupportEnabled: true, EndpointToHostAction: "RETURN",
		KubeNodePortRanges: []table.PortRange{{First: 30000, Last: 32767}}})
	closed := n.policy(rules.PolicyOutboundPfx, "closed", allowTCP(80))
	n.workload("caliweb", webAddr, n.openProfile(), rules.Direction{Tiers: []rules.Tier{tier("t", closed)}})
	n.workload("calidb", dbAddr, n.openProfile(), n.openProfile())
	n.apply()
	service := netip.MustParseAddr("10.96.0.1")
	// through sends a packet to a service, and then from the service to where kube-ipvs sends it.
	through := func(p rulestest.Packet, out string, dst netip.Addr) string {
		arrived := n.send(p)
		if arrived.Verdict != "accept" {
			return arrived.Verdict
		}
		next := rulestest.Packet{Out: out, Src: p.Src, Dst: dst, Proto: 6, SrcPort: 40000, DstPort: 80,
			Mark: arrived.Packet.Mark, CT: table.CTNew}
		return n.sendMarked(next)
	}
	if got := through(tcp("caliweb", "", webAddr[4], service, 80), "calidb", dbAddr[4]); got != "accept" {
		t.Errorf("workload to service, allowed: %s", got)
	}
	if got := through(tcp("calinew", "", farAddr[4], service, 80), "calidb", dbAddr[4]); got != "drop" {
		t.Errorf("unknown workload to service: %s, want drop", got)
	}
	if got := through(tcp("eth0", "", farAddr[4], nodeAddr[4], 30080), "calidb", dbAddr[4]); got != "accept" {
		t.Errorf("node port: %s, want accept", got)
	}
	if got := n.send(tcp("eth0", "", farAddr[4], nodeAddr[4], 30080)); got.Packet.Mark != 0x00100000 {
		t.Errorf("mark of a node port's packet is %#x, want that of no endpoint", got.Packet.Mark)
	}
}

// sendMarked sends a packet through filter OUTPUT as it comes from kube-ipvs: raw OUTPUT is not passed again.
func (n *node) sendMarked(p rulestest.Packet) string {
	n.t.Helper()
	out, err := n.fake.SendFrom(table.Filter, p)
	if err != nil {
		n.t.Fatal(err)
	}
	return out.Verdict
}
