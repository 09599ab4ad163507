package rules_test

import (
	"testing"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
)

func masqNode(t *testing.T, c rules.Config, active bool) *node {
	n := newNode(t, c)
	n.workload("caliweb", webAddr, n.openProfile(), n.openProfile())
	for _, f := range families {
		n.fakes().SetChains(f, table.NAT, n.r.NATOutgoing(active))
		for _, id := range []string{rules.SetAllPools, rules.SetMasqPools} {
			net, _ := webAddr[f].Prefix(24)
			n.fakes().ReplaceSet(f, table.Set{ID: id, Type: table.SetNet}, []table.Member{{Net: net}})
		}
	}
	n.apply()
	return n
}

func TestNATOutgoing(t *testing.T) {
	for _, f := range families {
		n := masqNode(t, rules.Config{}, true)
		if out := n.send(tcp("caliweb", "eth0", webAddr[f], farAddr[f], 80)); out.SNAT != "masquerade" {
			t.Errorf("v%d: to the world: SNAT %q, want masquerade", f, out.SNAT)
		}
		if out := n.send(tcp("caliweb", "calidb", webAddr[f], dbAddr[f], 80)); out.SNAT != "" {
			t.Errorf("v%d: inside the pool: SNAT %q, want none", f, out.SNAT)
		}
		if out := n.send(tcp("eth0", "eth1", farAddr[f], peerAddr[f], 80)); out.SNAT != "" {
			t.Errorf("v%d: not from the pool: SNAT %q, want none", f, out.SNAT)
		}
		n = masqNode(t, rules.Config{}, false)
		if out := n.send(tcp("caliweb", "eth0", webAddr[f], farAddr[f], 80)); out.SNAT != "" {
			t.Errorf("v%d: no pool masquerades: SNAT %q, want none", f, out.SNAT)
		}
	}
}

func TestNATOutgoingOptions(t *testing.T) {
	n := masqNode(t, rules.Config{IptablesNATOutgoingInterfaceFilter: "eth0", NATPortRange: table.PortRange{First: 32768,
		Last: 40000}}, true)
	if out := n.send(tcp("caliweb", "eth1", webAddr[4], farAddr[4], 80)); out.SNAT != "" {
		t.Errorf("by another interface than the filter's: SNAT %q, want none", out.SNAT)
	}
	chain := n.r.NATOutgoing(true)
	byProtocol := map[uint8]table.PortRange{}
	for _, r := range chain.Rules {
		byProtocol[r.Match.Protocol] = r.Actions[0].Ports
	}
	want := map[uint8]table.PortRange{6: {First: 32768, Last: 40000}, 17: {First: 32768, Last: 40000}, 0: {}}
	for protocol, ports := range want {
		if got, has := byProtocol[protocol]; !has || got != ports {
			t.Errorf("protocol %d masquerades to %v (%v), want %v", protocol, got, has, ports)
		}
	}
}

func TestFloatingIPs(t *testing.T) {
	n := newNode(t, rules.Config{})
	n.workload("caliweb", webAddr, n.openProfile(), n.openProfile())
	pair := []rules.NATPair{{External: farAddr[4], Internal: webAddr[4]}}
	n.fakes().SetChains(table.IPv4, table.NAT, n.r.FloatingIPs(pair, pair)...)
	n.apply()
	if out := n.send(tcp("eth0", "caliweb", peerAddr[4], farAddr[4], 80)); out.Packet.Dst != webAddr[4] || out.SNAT != "" {
		t.Errorf("from outside: to %v, SNAT %q, want DNAT to the workload only", out.Packet.Dst, out.SNAT)
	}
	if out := n.send(tcp("", "caliweb", nodeAddr[4], farAddr[4], 80)); out.Packet.Dst != webAddr[4] {
		t.Errorf("from the node: to %v, want the workload", out.Packet.Dst)
	}
	if out := n.send(tcp("caliweb", "caliweb", webAddr[4], farAddr[4], 80)); out.Packet.Dst != webAddr[4] ||
		out.SNAT != farAddr[4].String() {
		t.Errorf("hairpin: to %v, SNAT %q, want DNAT and SNAT", out.Packet.Dst, out.SNAT)
	}
	if out := n.send(tcp("caliweb", "eth0", webAddr[4], peerAddr[4], 80)); out.SNAT != "" {
		t.Errorf("to outside: SNAT %q, want none", out.SNAT)
	}
}

func TestTunnelSource(t *testing.T) {
	n := newNode(t, rules.Config{VXLANEnabled: true, IPIPEnabled: true, IPIPTunnelAddress: webAddr[4]})
	n.apply()
	for _, device := range []string{"tunl0", "contiv-vxlan"} {
		p := tcp("", device, nodeAddr[4], farAddr[4], 80)
		p.OtherSrc = true
		if out := n.send(p); out.SNAT != "masquerade" {
			t.Errorf("%s: the node's own packet: SNAT %q, want masquerade", device, out.SNAT)
		}
		p = tcp("eth0", device, peerAddr[4], farAddr[4], 80)
		p.OtherSrc = true
		if out := n.send(p); out.SNAT != "" {
			t.Errorf("%s: a forwarded packet: SNAT %q, want none", device, out.SNAT)
		}
	}
}
