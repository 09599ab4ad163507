package diag

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

const probePort = 61017

func tracedFlow(proto string, port uint16, source, dest string) TraceRequest {
	return TraceRequest{Source: netip.MustParseAddr(source), Dest: netip.MustParseAddr(dest), Proto: proto, Port: port, SourcePort: probePort}
}

// packet is a packet from one end to the other; kind is the type of an ICMP message.
type packet struct {
	proto    byte
	from, to netip.AddrPort
	kind     byte
	id       uint16
}

// bytes returns the packet after Ethernet, or after VXLAN over a family.
func (p packet) bytes(overlay string) []byte {
	inner := make([]byte, 12)
	if p.from.Addr().Is4() {
		inner = append(inner, 8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, p.proto, 0, 0)
	} else {
		inner = append(inner, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, p.proto, 64)
	}
	inner = append(inner, p.from.Addr().AsSlice()...)
	inner = append(inner, p.to.Addr().AsSlice()...)
	if p.proto == 6 || p.proto == 17 {
		inner = binary.BigEndian.AppendUint16(inner, p.from.Port())
		inner = binary.BigEndian.AppendUint16(inner, p.to.Port())
	} else {
		inner = append(inner, p.kind, 0, 0, 0)
		inner = binary.BigEndian.AppendUint16(inner, p.id)
	}
	inner = append(inner, make([]byte, 40)...)
	outer := packet{proto: 17}
	switch overlay {
	case "":
		return inner
	case "4":
		outer.from, outer.to = netip.MustParseAddrPort("192.0.2.1:4711"), netip.MustParseAddrPort("192.0.2.2:4789")
	default:
		outer.from, outer.to = netip.MustParseAddrPort("[2001:db8::1]:4711"), netip.MustParseAddrPort("[2001:db8::2]:4789")
	}
	head := outer.bytes("")
	return slices.Concat(head[:len(head)-40], make([]byte, 4+8), inner) // the rest of UDP, and VXLAN
}

// recorded reports whether VPP's classifier selects a packet.
func recorded(t *testing.T, req TraceRequest, data []byte) bool {
	t.Helper()
	for _, command := range filterCommands(req) {
		f := strings.Fields(command) // classify filter trace mask hex MASK match hex VALUE
		mask, errMask := hex.DecodeString(f[5])
		value, errValue := hex.DecodeString(f[8])
		if errMask != nil || errValue != nil || len(mask) != len(value) || len(mask)%16 != 0 || len(f) != 9 {
			t.Fatalf("VPP does not accept %q", command)
		}
		first := slices.IndexFunc(mask, func(b byte) bool { return b != 0 })
		if len(mask)-first/16*16 > 5*16 {
			t.Fatalf("the mask of %q is longer than VPP's tables", command)
		}
		equal := true
		for i, m := range mask {
			equal = equal && (i < len(data) && data[i]&m == value[i] || m == 0)
		}
		if equal {
			return true
		}
	}
	return false
}

// TestFilterSelectsTheProbe: of the packets on a busy node, VPP records the probe, its answers, ICMP errors, and packets from and to an address that
// a node has put in place of the sender's, in every encapsulation.
func TestFilterSelectsTheProbe(t *testing.T) {
	at := netip.MustParseAddrPort
	tcp4, udp6, echo4, echo6 := tracedFlow("tcp", 80, "10.1.1.2", "10.1.2.2"), tracedFlow("udp", 53, "fd10::2", "fd10::3"),
		tracedFlow("icmp", 0, "10.1.1.2", "10.1.2.2"), tracedFlow("icmp", 0, "fd10::2", "fd10::3")
	for _, r := range []*TraceRequest{&tcp4, &echo4} {
		r.OtherSources = []netip.Addr{netip.MustParseAddr("192.0.2.7")}
	}
	service := tcp4
	service.Service, service.Backends = true, []netip.AddrPort{at("10.1.3.4:8080")}
	for _, c := range []struct {
		name string
		req  TraceRequest
		p    packet
		want bool
	}{
		{"the probe", tcp4, packet{proto: 6, from: at("10.1.1.2:61017"), to: at("10.1.2.2:80")}, true},
		{"its answer", tcp4, packet{proto: 6, from: at("10.1.2.2:80"), to: at("10.1.1.2:61017")}, true},
		{"another connection of the same pods", tcp4, packet{proto: 6, from: at("10.1.1.2:40000"), to: at("10.1.2.2:80")}, false},
		{"another protocol", tcp4, packet{proto: 17, from: at("10.1.1.2:61017"), to: at("10.1.2.2:80")}, false},
		{"another family", tcp4, packet{proto: 6, from: at("[fd10::2]:61017"), to: at("[fd10::3]:80")}, false},
		{"a translated source", tcp4, packet{proto: 6, from: at("192.0.2.7:1024"), to: at("10.1.2.2:80")}, true},
		{"an answer to a translated source", tcp4, packet{proto: 6, from: at("10.1.2.2:80"), to: at("192.0.2.7:1024")}, true},
		{"the node's own connection to another port", tcp4, packet{proto: 6, from: at("192.0.2.7:1024"), to: at("10.1.2.2:81")}, false},
		{"to a backend", service, packet{proto: 6, from: at("10.1.1.2:61017"), to: at("10.1.3.4:8080")}, true},
		{"to a backend, translated", service, packet{proto: 6, from: at("192.0.2.7:1024"), to: at("10.1.3.4:8080")}, true},
		{"from a backend, translated", service, packet{proto: 6, from: at("10.1.3.4:8080"), to: at("192.0.2.7:1024")}, true},
		{"IPv6 UDP", udp6, packet{proto: 17, from: at("[fd10::2]:61017"), to: at("[fd10::3]:53")}, true},
		{"an IPv6 answer", udp6, packet{proto: 17, from: at("[fd10::3]:53"), to: at("[fd10::2]:61017")}, true},
		{"IPv6, another datagram", udp6, packet{proto: 17, from: at("[fd10::2]:53"), to: at("[fd10::3]:53")}, false},
		{"an echo request", echo4, packet{proto: 1, from: at("10.1.1.2:0"), to: at("10.1.2.2:0"), kind: 8, id: probePort}, true},
		{"another echo request", echo4, packet{proto: 1, from: at("10.1.1.2:0"), to: at("10.1.2.2:0"), kind: 8, id: 5}, false},
		{"an echo request, translated", echo4, packet{proto: 1, from: at("192.0.2.7:0"), to: at("10.1.2.2:0"), kind: 8, id: 5}, true},
		{"an ICMP error", echo4, packet{proto: 1, from: at("192.0.2.9:0"), to: at("10.1.1.2:0"), kind: 3}, true},
		{"an ICMP error to another pod", echo4, packet{proto: 1, from: at("192.0.2.9:0"), to: at("10.1.1.3:0"), kind: 3}, false},
		{"an IPv6 echo reply", echo6, packet{proto: 58, from: at("[fd10::3]:0"), to: at("[fd10::2]:0"), kind: 129, id: probePort}, true},
		{"IPv6, packet too big", echo6, packet{proto: 58, from: at("[fd10::9]:0"), to: at("[fd10::2]:0"), kind: 2}, true},
	} {
		for _, overlay := range []string{"", "4", "6"} {
			if got := recorded(t, c.req, c.p.bytes(overlay)); got != c.want {
				t.Errorf("%s, overlay %q: recorded %t", c.name, overlay, got)
			}
		}
	}
}

// TestNftAcceptsTheRules: nft parses the rules for all kinds of requests, and only rules without the probe's port are limited.
func TestNftAcceptsTheRules(t *testing.T) {
	nft, err := exec.LookPath("nft")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("this test needs nft and root")
	}
	backends := map[bool][]netip.AddrPort{
		false: {netip.MustParseAddrPort("10.1.2.2:5353"), netip.MustParseAddrPort("10.1.2.3:53")}, true: {netip.MustParseAddrPort("[fd10::5]:53")},
	}
	others := map[bool]netip.Addr{false: netip.MustParseAddr("192.0.2.1"), true: netip.MustParseAddr("2001:db8::1")}
	for _, req := range []TraceRequest{
		tracedFlow("tcp", 80, "10.1.1.2", "10.1.2.2"), tracedFlow("udp", 53, "fd10::2", "fd10::3"),
		tracedFlow("icmp", 0, "10.1.1.2", "10.1.2.2"), tracedFlow("icmp", 0, "fd10::2", "fd10::3"),
	} {
		six := req.Dest.Is6()
		withOthers, withBackends, anyPort := req, req, req
		withOthers.OtherSources = []netip.Addr{others[six], req.Source}
		if withBackends = withOthers; req.Port != 0 {
			withBackends.Service, withBackends.Backends = true, backends[six]
		}
		anyPort.SourcePort = 0
		for _, r := range []TraceRequest{req, withOthers, withBackends, anyPort} {
			if err := r.validate(); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), nft, "-c", "-f", "-")
			cmd.Stdin = strings.NewReader(tracingRules(r))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%+v: %v: %s", r, err, out)
			}
			for _, rule := range markingRules(r) {
				if strings.Contains(rule, "61017") == strings.Contains(rule, "limit") {
					t.Errorf("%+v: %s", r, rule)
				}
			}
		}
	}
}

// TestTracingRules: the probe and its answers are marked in both hooks, also behind the translation of a service, and translated packets with a limit.
func TestTracingRules(t *testing.T) {
	v6 := tracedFlow("tcp", 80, "fd::1", "fd::2")
	service := tracedFlow("udp", 53, "10.1.1.2", "10.96.0.1")
	service.Service, service.Backends = true, []netip.AddrPort{netip.MustParseAddrPort("10.1.2.2:5353"), netip.MustParseAddrPort("10.1.2.3:53")}
	translated := service
	translated.OtherSources = []netip.Addr{netip.MustParseAddr("192.0.2.1"), translated.Source}
	anyPort := v6
	anyPort.SourcePort = 0
	const mark = " meta nftrace set 1\n"
	for _, c := range []struct {
		req   TraceRequest
		rules []string
	}{
		{v6, []string{"\nip6 saddr fd::1 ip6 daddr fd::2 tcp dport 80 tcp sport 61017" + mark, "\nip6 saddr fd::2 meta l4proto tcp tcp dport 61017" + mark}},
		{anyPort, []string{"\nip6 saddr fd::1 ip6 daddr fd::2 tcp dport 80" + traceLimit + mark, "\nip6 saddr fd::2 meta l4proto tcp" + traceLimit + mark}},
		{tracedFlow("icmp", 0, "fd::1", "fd::2"), []string{"\nip6 saddr fd::1 ip6 daddr fd::2 meta l4proto ipv6-icmp icmpv6 id 61017" + mark,
			"\nip6 saddr fd::2 meta l4proto ipv6-icmp icmpv6 id 61017" + mark, "\nip6 daddr fd::1 icmpv6 type { destination-unreachable, "}},
		{service, []string{
			"\nip saddr 10.1.1.2 ip daddr 10.96.0.1 udp dport 53 udp sport 61017" + mark,
			"\nip saddr 10.1.1.2 ip daddr . udp dport { 10.1.2.2 . 5353, 10.1.2.3 . 53 } udp sport 61017" + mark,
			"\nip daddr 10.1.1.2 ip saddr . udp sport { 10.1.2.2 . 5353, 10.1.2.3 . 53 } udp dport 61017" + mark,
			"\nfib daddr type local ip saddr . udp sport { 10.1.2.2 . 5353, 10.1.2.3 . 53 } udp dport 61017" + mark,
		}},
		{translated, []string{
			"\nip saddr { 10.1.1.2, 192.0.2.1 } ip daddr 10.96.0.1 udp dport 53 udp sport 61017" + mark,
			"\nip saddr 192.0.2.1 ip daddr . udp dport { 10.1.2.2 . 5353, 10.1.2.3 . 53 }" + traceLimit + mark,
			"\nip saddr 10.96.0.1 meta l4proto udp ip daddr 192.0.2.1" + traceLimit + mark,
		}},
	} {
		text := tracingRules(c.req)
		for _, rule := range c.rules {
			if strings.Count(text, rule) != 2 || !strings.Contains(text, "hook prerouting") || !strings.Contains(text, "hook output") {
				t.Errorf("no %q in both hooks of\n%s", rule, text)
			}
		}
	}
}

// TestVPPKeepsTheLargestFilter: VPP accepts the filter of the largest request, removes it, and runs on.
func TestVPPKeepsTheLargestFilter(t *testing.T) {
	if _, ok := vpptest.Find(); !ok {
		t.Skip(vpptest.ErrNoVPP)
	}
	v, err := vpptest.Launch(t.Context(), vpptest.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Stop)
	req := tracedFlow("tcp", 80, "fd10::2", "fd10::ffff")
	req.Service = true
	for i := range maxOtherSources {
		req.OtherSources = append(req.OtherSources, netip.AddrFrom16([16]byte{0xfd, 15: byte(i)}))
	}
	for i := range MaxBackends {
		req.Backends = append(req.Backends, netip.AddrPortFrom(req.Dest, uint16(1000+i)))
	}
	if err := req.validate(); err != nil {
		t.Fatal(err)
	}
	s := &Service{Deps: Deps{CLI: func(_ context.Context, command string) (string, error) { return v.CLI(command) }}}
	for range 2 {
		if err := s.addVPPTrace(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if out, err := v.CLI("show classify tables"); err != nil || !strings.Contains(out, "TableIdx") {
			t.Fatalf("no filter: %v, %s", err, out)
		}
		if err := s.endVPPTrace(t.Context()); err != nil {
			t.Fatal(err)
		}
		if out, err := v.CLI("show classify tables"); err != nil || !strings.Contains(out, "No classifier tables") {
			t.Fatalf("the filter is left: %v, %s", err, out)
		}
	}
}

func TestTraceRequestIsChecked(t *testing.T) {
	req := tracedFlow("udp", 53, "10.1.1.2", "10.96.0.1")
	req.Service, req.Backends = true, []netip.AddrPort{netip.MustParseAddrPort("10.1.2.2:5353")}
	if err := req.validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*TraceRequest){
		"not a service":           func(r *TraceRequest) { r.Service = false },
		"echo requests":           func(r *TraceRequest) { r.Proto, r.Port = "icmp", 0 },
		"no port":                 func(r *TraceRequest) { r.Backends = []netip.AddrPort{netip.MustParseAddrPort("10.1.2.2:0")} },
		"another source's family": func(r *TraceRequest) { r.OtherSources = []netip.Addr{netip.MustParseAddr("fd::2")} },
		"another family":          func(r *TraceRequest) { r.Backends = []netip.AddrPort{netip.MustParseAddrPort("[fd::1]:53")} },
		"too many":                func(r *TraceRequest) { r.Backends = make([]netip.AddrPort, MaxBackends+1) },
	} {
		bad := req
		if change(&bad); bad.validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// TestInterruptedTrace: an agent that starts after another one ended during a trace ends the recording; it does so again if VPP does not answer.
func TestInterruptedTrace(t *testing.T) {
	dir := t.TempDir()
	vpp := &fakeVPP{}
	s := serve(t, Deps{CLI: vpp.run, Dir: dir})
	recordTrace(t, t.Context(), s.URL) // no agent ends it
	next := &fakeVPP{}
	failures := 1
	service := &Service{Deps: Deps{Log: slog.New(slog.DiscardHandler), Dir: dir, CLI: func(ctx context.Context, command string) (string, error) {
		if failures > 0 {
			failures--
			return "", context.DeadlineExceeded
		}
		return next.run(ctx, command)
	}}}
	for range 2 {
		if err := service.EndInterrupted(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := []string{"clear trace", "classify filter trace del"}; !slices.Equal(next.ran, want) {
			t.Fatalf("commands %q, want %q, once", next.ran, want)
		}
	}
}
