package vppfake_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/pg"
	"go.fd.io/govpp/binapi/vlib"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// Packet contract: the same packets are injected on packet-generator interfaces of the real VPP and of the fake; the packets that leave, and
// their interfaces, must be the same. Packets that VPP sends by itself (ARP requests, neighbour discovery, ICMP errors, echo replies) are
// ignored on both sides.

const ports = 4

// packetScript is a script with four packet-generator interfaces, pg0 to pg3, sw_if_index 1 to 4, up, with MACs
// 02:00:00:00:0f:00 to :03.
type packetScript struct {
	*script
	inject func(port int, p vppfake.Packet) []string
	// tells: ICMP errors of VPP are compared, too. VPP limits their rate, so time passes before each packet.
	reports bool
	// behind runs right before the next packet. late: the packet was too late to show a state that lasts only a moment, for example on a
	// machine that was suspended.
	behind func()
	late   bool
}

type packetScenario struct {
	name string
	run  func(*packetScript)
}

func portMAC(n int) vppfake.MAC { return vppfake.MAC{2, 0, 0, 0, 0x0f, byte(n)} }

// hostMAC returns the MAC of the n-th machine behind the ports.
func hostMAC(n int) vppfake.MAC { return vppfake.MAC{2, 0, 0, 0, 0x0a, byte(n)} }

func newPacketScript(s *script) *packetScript {
	ps := &packetScript{script: s}
	for n := range ports {
		s.do(&pg.PgCreateInterfaceV3{InterfaceID: index(n)})
		s.do(&interfaces.SwInterfaceSetMacAddress{SwIfIndex: index(n + 1), MacAddress: portMAC(n)})
		s.up(index(n + 1))
	}
	s.out.Reset()
	return ps
}

// send injects a packet on a port and records the packets that leave, with their ports.
func (ps *packetScript) send(port int, p vppfake.Packet) {
	ps.t.Helper()
	if p.TTL == 0 {
		p.TTL = 64
	}
	if ps.reports {
		ps.advance(120 * time.Millisecond)
	}
	out := ps.inject(port, p)
	slices.Sort(out)
	if len(out) == 0 {
		out = []string{"nothing"}
	}
	ps.line("send pg%d %s\n  %s", port, p, strings.Join(out, "\n  "))
}

func (ps *packetScript) doBehind() bool {
	if ps.behind == nil {
		return false
	}
	ps.behind()
	ps.behind = nil
	return true
}

// cli runs a command of the VPP CLI.
func (ps *packetScript) cli(cmd string) string {
	ps.t.Helper()
	reply := ps.try(cmd)
	if reply.Retval != 0 {
		ps.t.Fatalf("%s: %d %s", cmd, reply.Retval, reply.Reply)
	}
	return reply.Reply
}

// try is like cli for commands that may fail: a port may have been deleted.
func (ps *packetScript) try(cmd string) *vlib.CliInbandReply {
	ps.t.Helper()
	reply := &vlib.CliInbandReply{}
	if err := ps.conn.Invoke(ps.t.Context(), &vlib.CliInband{Cmd: cmd}, reply); err != nil {
		ps.t.Fatalf("%s: %v", cmd, err)
	}
	return reply
}

// seen returns a packet in the form of the contract: without the source port of a tunnel.
func seen(port string, p vppfake.Packet) string {
	if p.VXLAN != nil {
		p.SrcPort = 0
	}
	return fmt.Sprintf("%s: %s size %d", port, p, p.Size)
}

// realInject injects through VPP's packet generator; packets that leave are read from pcap files.
func realInject(t *testing.T, ps *packetScript) func(int, vppfake.Packet) []string {
	dir := t.TempDir()
	count := 0
	return func(port int, p vppfake.Packet) []string {
		t.Helper()
		count++
		in := filepath.Join(dir, fmt.Sprintf("in%d.pcap", count))
		if err := writePcap(in, encode(p)); err != nil {
			t.Fatal(err)
		}
		outFile := func(n int) string { return filepath.Join(dir, fmt.Sprintf("out%d-%d.pcap", count, n)) }
		for n := range ports {
			ps.try(fmt.Sprintf("packet-generator capture pg%d pcap %s count 1000", n, outFile(n)))
		}
		stream := fmt.Sprintf("s%d", count)
		ps.cli(fmt.Sprintf("packet-generator new pcap %s source pg%d name %s limit 1", in, port, stream))
		start := time.Now()
		urgent := ps.doBehind()
		ps.cli("packet-generator enable-stream " + stream)
		ps.late = ps.late || urgent && time.Since(start) > 150*time.Millisecond
		// A frame passes through the whole graph before VPP, which has no workers here, handles the next command.
		for strings.Contains(ps.cli("show packet-generator"), "Yes") {
			if t.Context().Err() != nil {
				t.Fatal("VPP does not send ", stream)
			}
		}
		ps.cli("packet-generator delete " + stream)
		var out []string
		for n := range ports {
			ps.try(fmt.Sprintf("packet-generator capture pg%d disable", n))
			for _, frame := range readPcap(outFile(n)) {
				got, err := decode(frame)
				if errors.Is(err, errChecksum) {
					out = append(out, fmt.Sprintf("pg%d: %v: %s", n, err, got))
				}
				if err == nil && (!ownTraffic(frame, got) || ps.reports && got.Error != nil) {
					out = append(out, seen(fmt.Sprintf("pg%d", n), got))
				}
			}
		}
		return out
	}
}

// ownTraffic reports whether VPP sends such a packet by itself.
func ownTraffic(frame []byte, p vppfake.Packet) bool {
	if p.ARP != nil {
		return !p.ARP.Reply && p.ARP.SenderMAC[3] != 0 || !p.ARP.Reply && p.ARP.SenderMAC[4] == 0x0f
	}
	if p.ND != nil && p.EthSrc[4] == 0x0f {
		return true
	}
	return p.EthDst[0] == 0x33 || isError(frame, p)
}

// fakeInject walks the packet through the fake.
func fakeInject(t *testing.T, ps *packetScript, f *vppfake.Fake) func(int, vppfake.Packet) []string {
	return func(port int, p vppfake.Packet) []string {
		t.Helper()
		ps.doBehind()
		r, err := f.Send(fmt.Sprintf("pg%d", port), p)
		if err != nil {
			t.Fatalf("send %s: %v\n%s", p, err, r)
		}
		var out []string
		arrived := r.Out
		if ps.reports {
			arrived = append(arrived, r.Errors...)
		}
		for _, d := range arrived {
			if !d.Local {
				out = append(out, seen(d.Interface, d.Packet))
			}
		}
		return out
	}
}

func packetGolden(name string) string { return filepath.Join("testdata", "packets", name+".txt") }

func TestPacketsFake(t *testing.T) {
	for _, sc := range packetScenarios() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			clock := &fakeClock{}
			f := startFake(t, vppfake.Config{Seed: 1, Plugin: sc.plugin(), Now: clock.now})
			ps := newPacketScript(newScript(t, f.Socket(), clock.advance))
			ps.inject = fakeInject(t, ps, f)
			sc.run(ps)
			want, err := os.ReadFile(packetGolden(sc.name))
			if err != nil {
				t.Fatal(err)
			}
			if got := ps.out.String(); got != string(want) {
				t.Errorf("fake differs from VPP (-VPP +fake):\n%s", diff(string(want), got))
			}
		})
	}
}

func TestPacketsVPP(t *testing.T) {
	for _, sc := range packetScenarios() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			ps := sc.onVPP(t)
			for tries := 1; ps.late && tries < 20; tries++ {
				ps = sc.onVPP(t)
			}
			checkGolden(t, packetGolden(sc.name), ps.out.String())
		})
	}
}

// onVPP runs the scenario on a VPP that has just started.
func (sc packetScenario) onVPP(t *testing.T) *packetScript {
	t.Helper()
	v := startVPP(t, 0, sc.plugin())
	ps := newPacketScript(newScript(t, v.Socket(), advance(t, v)))
	ps.inject = realInject(t, ps)
	sc.run(ps)
	return ps
}

func newScript(t *testing.T, socket string, advance func(time.Duration)) *script {
	return &script{t: t, conn: dial(t, socket), socket: socket, advance: advance}
}

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

// udp returns a packet from the n-th machine to a port's MAC.
func udp(host, port int, src, dst string) vppfake.Packet {
	return vppfake.Packet{EthSrc: hostMAC(host), EthDst: portMAC(port), Src: addr(src), Dst: addr(dst), Proto: vppfake.ProtoUDP,
		SrcPort: 1000, DstPort: 2000, Size: 40}
}

func arpRequest(host int, sender, target string) vppfake.Packet {
	return vppfake.Packet{EthSrc: hostMAC(host), EthDst: vppfake.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		ARP: &vppfake.ARP{SenderMAC: hostMAC(host), SenderIP: addr(sender), TargetIP: addr(target)}}
}
