package intdataplane

import (
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/proto"
)

func ipPool(id, cidr string, masq bool) *proto.IPAMPoolUpdate {
	return &proto.IPAMPoolUpdate{Id: id, Pool: &proto.IPAMPool{Cidr: cidr, Masquerade: masq}}
}

func (b *bench) snat(in, out, src, dst string) string {
	b.t.Helper()
	outcome, err := b.fake.Send(packet(in, out, src, dst, 80))
	if err != nil {
		b.t.Fatal(err)
	}
	return outcome.SNAT
}

func TestMasquerade(t *testing.T) {
	b := newBench(t, both)
	b.must(openProfile(), endpoint("a", "calia", 1), ipPool("a", "10.65.0.0/16", true), ipPool("b", "10.66.0.0/16", false),
		ipPool("c", "fd00:65::/64", true), ipPool("bad", "10.65.0.0/99", true))
	for _, c := range []struct{ src, dst, want string }{
		{"10.65.0.1", "1.1.1.1", "masquerade"},
		{"10.65.0.1", "10.66.0.1", ""},
		{"10.65.0.1", "10.65.9.1", ""},
		{"fd00:65::1", "2001:db8::1", "masquerade"},
	} {
		if got := b.snat("calia", "eth0", c.src, c.dst); got != c.want {
			t.Errorf("%s to %s: SNAT %q, want %q", c.src, c.dst, got, c.want)
		}
	}
	b.must(ipPool("a", "10.65.0.0/16", false))
	if got := b.snat("calia", "eth0", "10.65.0.1", "1.1.1.1"); got != "" {
		t.Errorf("the pool no longer masquerades: SNAT %q", got)
	}
	b.must(ipPool("a", "fd00:99::/64", true)) // changes its family
	if b.setText(4, "all-ipam-pools") != "10.66.0.0/16/0:0" {
		t.Errorf("IPv4 pools: %s", b.setText(4, "all-ipam-pools"))
	}
	b.must(&proto.IPAMPoolRemove{Id: "a"}, &proto.IPAMPoolRemove{Id: "b"}, &proto.IPAMPoolRemove{Id: "c"},
		&proto.IPAMPoolRemove{Id: "unknown"})
	if b.setText(4, "all-ipam-pools")+b.setText(6, "masq-ipam-pools") != "" {
		t.Error("pools are left")
	}
	if chain := b.fake.Dump()["chain v6 nat cali-nat-outgoing"]; strings.Contains(chain, "masquerade") {
		t.Errorf("without pools: %s", chain)
	}
}

func floating(pairs ...string) func(*proto.WorkloadEndpoint) {
	return func(ep *proto.WorkloadEndpoint) {
		for i := 0; i < len(pairs); i += 2 {
			ep.Ipv4Nat = append(ep.Ipv4Nat, &proto.NatInfo{ExtIp: pairs[i], IntIp: pairs[i+1]})
		}
	}
}

func (b *bench) dnat(dst string) string {
	b.t.Helper()
	outcome, err := b.fake.Send(packet("eth0", "calia", "1.1.1.1", dst, 80))
	if err != nil {
		b.t.Fatal(err)
	}
	return outcome.Packet.Dst.String()
}

func TestFloatingIPs(t *testing.T) {
	b := newBench(t, both)
	b.must(openProfile(), endpoint("a", "calia", 1, floating("203.0.113.9", "10.65.0.1", "203.0.113.5", "10.65.0.1")))
	if b.dnat("203.0.113.9") != "10.65.0.1" || b.dnat("203.0.113.5") != "10.65.0.1" {
		t.Errorf("DNAT to %s and %s", b.dnat("203.0.113.9"), b.dnat("203.0.113.5"))
	}
	if got := b.snat("calia", "calia", "10.65.0.1", "203.0.113.9"); got != "203.0.113.5" {
		t.Errorf("hairpin takes %q, want the lowest", got)
	}
	if text := b.routes[4].text(); !strings.Contains(text, "203.0.113.9/32 dev=calia") || !strings.Contains(text,
		"203.0.113.5/32 dev=calia") {
		t.Errorf("routes: %s", text)
	}
	// Another workload claims one of them: the lower internal address gets it.
	b.must(endpoint("b", "calib", 0, floating("203.0.113.9", "10.65.0.0")))
	if b.dnat("203.0.113.9") != "10.65.0.0" {
		t.Errorf("conflict: DNAT to %s", b.dnat("203.0.113.9"))
	}
	b.must(gone("b"))
	if b.dnat("203.0.113.9") != "10.65.0.1" {
		t.Errorf("conflict is over: DNAT to %s", b.dnat("203.0.113.9"))
	}
	b.must(gone("a"))
	if b.dnat("203.0.113.9") != "203.0.113.9" {
		t.Errorf("endpoint gone: DNAT to %s", b.dnat("203.0.113.9"))
	}
}

func TestThisHost(t *testing.T) {
	b := newBench(t, both)
	b.must(ifAddrs("eth0", "192.0.2.1", "2001:db8::1", "fe80::1"), ifAddrs("eth1", "192.0.2.1", "192.0.2.2"),
		ifAddrs("calia", "10.0.0.1"))
	if got, want := b.setText(4, "this-host"), "192.0.2.1/32/0:0 192.0.2.2/32/0:0"; got != want {
		t.Errorf("IPv4: %q, want %q", got, want)
	}
	if got, want := b.setText(6, "this-host"), "2001:db8::1/128/0:0"; got != want {
		t.Errorf("IPv6: %q, want %q", got, want)
	}
	b.must(&ifaceAddrs{Name: "eth0"})
	if got, want := b.setText(4, "this-host"), "192.0.2.1/32/0:0 192.0.2.2/32/0:0"; got != want {
		t.Errorf("eth0 went: %q, want %q (eth1 has it too)", got, want)
	}
	b.must(ifAddrs("eth1"))
	if got := b.setText(4, "this-host"); got != "" {
		t.Errorf("all went: %q", got)
	}
}
