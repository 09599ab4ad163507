package vppfake_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
	"go.fd.io/govpp/core"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// natFake returns a fake with NAT on pg0 (10.1.0.1/24) and pg1 (10.2.0.1/24), both inside and outside.
func natFake(t *testing.T) (*vppfake.Fake, *core.Connection, *packetScript) {
	t.Helper()
	f, conn := client(t, vppfake.Config{Seed: 1, RestartAfter: -1})
	ps := newPacketScript(&script{t: t, conn: conn})
	for n := index(1); n <= 2; n++ {
		ps.addr(n, fmt.Sprintf("10.%d.0.1/24", n))
		ps.host(n, fmt.Sprintf("10.%d.0.2", n), int(n))
	}
	ps.natOn()
	for n := index(1); n <= 2; n++ {
		ps.natIf(true, n, 0)
		ps.natIf(true, n, nat_types.NAT_IS_INSIDE)
	}
	return f, conn, ps
}

// Requests and packets that crash VPP crash the fake. All of these were observed to crash a VPP 25.10. They are not in the contract because VPP
// needs half a minute to run out of memory, and a packet to divide by zero.
func TestNATCrashes(t *testing.T) {
	call := transport(vppfake.ProtoUDP, 1, 0, "10.1.0.2", 1000, "10.96.0.10", 80)
	two := func(a, b uint8) []nat44_ed.Nat44LbAddrPort {
		return []nat44_ed.Nat44LbAddrPort{backend("10.2.0.2", 53, a), backend("10.2.0.2", 54, b)}
	}
	many := make([]nat44_ed.Nat44LbAddrPort, 256)
	for i := range many {
		many[i] = backend("10.2.0.2", uint16(i), 1)
	}
	for name, c := range map[string]struct {
		do     func(ps *packetScript)
		reason string
	}{
		"weights of 0": {func(ps *packetScript) { ps.do(balanced(true, "10.96.0.10", udpProto, out2in, 0, two(0, 0)...)) },
			"divides"},
		"weights of 256": {func(ps *packetScript) {
			ps.do(balanced(true, "10.96.0.10", udpProto, out2in, 0,
				two(128, 128)...))
		}, "divides"},
		"256 backends": {func(ps *packetScript) {
			_, _ = within(inVain, ps.conn, balanced(true, "10.96.0.10", udpProto, out2in, 0, many...),
				&nat44_ed.Nat44AddDelLbStaticMappingReply{})
		}, "256 locals"},
		"off with balanced mappings": {func(ps *packetScript) {
			ps.do(balanced(true, "10.96.0.10", udpProto, out2in, 0, two(1, 1)...))
			_, _ = within(inVain, ps.conn, &nat44_ed.Nat44EdPluginEnableDisable{}, &nat44_ed.Nat44EdPluginEnableDisableReply{})
		}, "table 0"},
		"affinity to a place that is no more": {func(ps *packetScript) {
			ps.do(balanced(true, "10.96.0.10", udpProto, out2in, 9, append(two(1, 1), two(1, 200)...)...))
			ps.inject(0, call)
			ps.do(identity(false, "10.96.0.10", 80, 0))
			ps.do(balanced(true, "10.96.0.10", udpProto, out2in, 9, two(1, 1)...))
		}, "beyond its list"},
		"affinity, by an interface that is only inside": {func(ps *packetScript) {
			ps.do(balanced(true, "10.96.0.10", udpProto, out2in, 9, two(1, 1)...))
			ps.natIf(false, 1, 0)
		}, "null pointer"},
	} {
		t.Run(name, func(t *testing.T) {
			f, _, ps := natFake(t)
			ps.inject = func(_ int, p vppfake.Packet) []string { _, _ = f.Send("pg0", p); return nil }
			c.do(ps)
			if len(f.Crashes()) == 0 {
				call.SrcPort++
				ps.inject(0, call)
			}
			if got := strings.Join(f.Crashes(), " "); !strings.Contains(got, c.reason) {
				t.Errorf("crashes %q, want %q", got, c.reason)
			}
		})
	}
}

// Sessions returns the sessions; a crash deletes them.
func TestNATSessionList(t *testing.T) {
	f, _, ps := natFake(t)
	ps.do(balanced(true, "10.96.0.10", udpProto, out2in, 0, backend("10.2.0.2", 53, 1), backend("10.2.0.2", 0, 0)))
	if _, err := f.Send("pg0", transport(vppfake.ProtoUDP, 1, 0, "10.1.0.2", 1000, "10.96.0.10", 80)); err != nil {
		t.Fatal(err)
	}
	want := []string{"proto 17 10.2.0.2:53 for 10.96.0.10:80 with 10.1.0.2:1000"}
	if got := f.Sessions(); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	f.Crash()
	if got := f.Sessions(); len(got) > 0 {
		t.Errorf("%v", got)
	}
}

// The dump contains the configuration, in a form that does not depend on the order of the requests.
func TestNATDump(t *testing.T) {
	dumps := make([]string, 2)
	for n := range dumps {
		f, _, ps := natFake(t)
		steps := []func(){
			func() {
				ps.do(balanced(true, "10.96.0.10", udpProto, out2in, 0, backend("10.2.0.2", 53, 1), backend("10.2.0.3", 53, 1)))
			},
			func() { ps.do(identity(true, "10.9.0.1", 4789, 0)) },
			func() { ps.do(static(true, "10.2.0.2", "10.9.0.2", out2in)) },
			func() { ps.natPoolRange(true, "10.9.0.7", "10.9.0.7", none, true) },
		}
		if n == 1 {
			slices.Reverse(steps)
		}
		for _, step := range steps {
			step()
		}
		dumps[n] = f.Dump()
	}
	if dumps[0] != dumps[1] || strings.Count(dumps[0], "nat44 mapping") != 3 {
		t.Errorf("%s\n%s", dumps[0], dumps[1])
	}
}

// A walk ends at NAT for protocols that the fake does not model there.
func TestNATNotUnderstood(t *testing.T) {
	f, _, _ := natFake(t)
	p := transport(132, 1, 0, "10.1.0.2", 0, "10.2.0.2", 0)
	if r, err := f.Send("pg0", p); err == nil {
		t.Errorf("%s", r)
	}
}
