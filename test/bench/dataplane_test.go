package main

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const runtimeText = `Time 1.2, 10 sec internal node vector rate 0.00 loops/sec 3.1
  vector rates in 4.1, out 4.1, drop 0.0, punt 0.0
             Name                 State         Calls          Vectors        Suspends         Clocks       Vectors/Call
af-packet-input              interrupt wait             4              40               0          3.61e2           10.00
error-drop                       active                 1             100               0          2.00e1          100.00
ip4-lookup                       active                 2            1000               0          1.50e1          500.00
ip4-rewrite                      active                 2            1000               0          1.25e1          500.00
pg-input                         polling                2            1000               0          3.00e1          500.00
tap2-output                      active                 2             900               0          5.00e0          450.00
tap2-tx                          active                 2              90               0          2.83e3           45.00
unix-cli-process-0             event wait               7               0               3          3.62e5            0.00
`

// TestRuntime checks that only the clocks of the graph count, not those of the generator, the
// drivers and the command line.
func TestRuntime(t *testing.T) {
	s := parseRuntime(runtimeText)
	if got, want := s.graph(), 1000*15+1000*12.5+900*5; got != want {
		t.Errorf("graph: %v, want %v", got, want)
	}
	if got := s.sent(); got != 900 {
		t.Errorf("sent: %d", got)
	}
	if top := s.costliest(1); len(top) != 1 || top[0].name != "unix-cli-process-0" || top[0].share < 0.8 {
		t.Errorf("costliest: %+v", top)
	}
}

func TestFeatures(t *testing.T) {
	const text = "Feature paths configured on host-eth1...\n\nnsh-output:\n\nip4-output:\n  ip4-sv-reassembly-output-feature\n" +
		"  nat-pre-in2out-output\n\narp:\n  arp-reply\n\nip6-unicast:\n  cnat-input-ip6\n  ip6-other [2]\n\n"
	var off []string
	for _, f := range parseFeatures("host-eth1", text) {
		if f.translation() {
			off = append(off, f.arc+" "+f.name)
		}
	}
	want := []string{"ip4-output ip4-sv-reassembly-output-feature", "ip4-output nat-pre-in2out-output", "ip6-unicast cnat-input-ip6"}
	if !reflect.DeepEqual(off, want) {
		t.Errorf("%q", off)
	}
}

// TestFlows checks the number of flows, and the packets.
func TestFlows(t *testing.T) {
	for _, addr := range []string{"10.1.1.2", "fd10::2"} {
		f := flows{src: netip.MustParseAddr(addr), n: 3 * ports / 2, dst: []netip.AddrPort{
			netip.AddrPortFrom(netip.MustParseAddr(addr).Next(), 80), netip.AddrPortFrom(netip.MustParseAddr(addr).Next(), 81)}}
		seen := map[string]bool{}
		for i := range f.n {
			seen[string(f.packet(i))] = true
		}
		if len(seen) != f.n {
			t.Errorf("%s: %d different packets of %d", addr, len(seen), f.n)
		}
		p := f.packet(0)
		if len(p) != packetSize || p[0]>>4 == 4 && checksum(0, p[:20]) != 0xffff {
			t.Errorf("% x", p)
		}
		if p[0]>>4 == 6 && checksum(17+packetSize-40, p[8:]) != 0xffff {
			t.Errorf("UDP checksum: % x", p)
		}
		f.backwards = true
		if back := f.packet(0); !bytes.Equal(back[len(back)-24:][2:4], p[len(p)-24:][0:2]) && p[0]>>4 == 6 {
			t.Errorf("backwards: % x", back)
		}
		f.n = 10
		path := filepath.Join(t.TempDir(), "p.pcap")
		if err := f.writePcap(path); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() != 24+10*(16+packetSize) {
			t.Errorf("%v, %v", info.Size(), err)
		}
	}
}

// TestTable checks that a table has a line per side, with a ratio to the reference.
func TestTable(t *testing.T) {
	tab := &table{Reference: "linux", StandIn: []string{"TAP"}}
	for _, v := range []float64{4, 1, 2} {
		tab.add("linux", "TCP", "Gb/s", v)
		tab.add("TAP", "TCP", "Gb/s", v*0.5)
	}
	tab.add("VETH", "TCP", "Gb/s", 3)
	tab.add("VETH", "alone", "s", 1234)
	var out strings.Builder
	tab.print(&out)
	const want = `   medians; ratios of medians to linux
   TCP, Gb/s
      linux                        2.00  (min 1.00, max 4.00, 3 runs)
      TAP *                        1.00  (min 0.50, max 2.00, 3 runs)  0.50x
      VETH                         3.00  (min 3.00, max 3.00, 1 runs)  1.50x
   alone, s
      VETH                         1234  (min 1234, max 1234, 1 runs)
   * its packets pass the stand-in for vhost-net (dataplane/vpp/vpptest/vhostshim)
`
	if out.String() != want {
		t.Errorf("got:\n%s", out.String())
	}
	tab.ByMin = true
	out.Reset()
	tab.print(&out)
	if !strings.Contains(out.String(), "VETH                         3.00  (min 3.00, max 3.00, 1 runs)  3.00x") {
		t.Errorf("by minima:\n%s", out.String())
	}
}

// TestThreads checks that threads of one name count together, that idle ones are left out, and that
// the busiest is first.
func TestThreads(t *testing.T) {
	before := threadTimes{"n1 vpp_main": time.Second, "idle": time.Second}
	after := threadTimes{"n1 vpp_main": 2 * time.Second, "n1 uvhost-rx": 3 * time.Second, "idle": time.Second}
	lines := strings.Split(strings.TrimSpace(after.since(before)), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "n1 uvhost-rx") || !strings.Contains(lines[0], "75.0 % of 4.00 s") ||
		!strings.Contains(lines[1], "25.0 %") {
		t.Errorf("%q", lines)
	}
	own := threadTimes{}
	own.add(os.Getpid(), func(string) string { return bothEnds })
	if own[bothEnds] <= 0 {
		t.Errorf("this process has no time: %v", own)
	}
}
