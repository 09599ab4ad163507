package vpp

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed/poll"
)

// memifEnd is a VPP with workers and one end of a memif.
type memifEnd struct {
	*agent
	vpp  *vpptest.VPP
	name string
	ip   netip.Addr
}

// TestMemifQueues checks that a memif between two VPPs has as many queues as each of them has workers, that each worker serves one queue, and that
// packets sent by workers use all queues, in both directions.
func TestMemifQueues(t *testing.T) {
	for _, workers := range []int{1, 2} {
		t.Run(fmt.Sprintf("workers=%d", workers), func(t *testing.T) {
			if _, ok := vpptest.Find(); !ok {
				t.Skip(vpptest.ErrNoVPP)
			}
			dir, err := os.MkdirTemp("", "contiv-memif-") // VPP does not accept the names of all tests in a path
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			socket := filepath.Join(dir, "memif.sock")
			ends := [2]*memifEnd{{name: "m", ip: netip.MustParseAddr("10.55.0.1")}, {name: "s", ip: netip.MustParseAddr("10.55.0.2")}}
			for i, e := range ends {
				e.vpp = vpptest.Start(t, vpptest.Options{Workers: workers})
				e.agent = newAgent(t, &target{socket: e.vpp.Socket(), real: e.vpp}, Deps{})
				v := memifOf(e.name, socket, 1, i == 0)
				v.PhysAddress, v.IpAddresses = fmt.Sprintf("02:fe:00:00:02:0%d", i+1), []string{e.ip.String() + "/24"}
				v.GetMemif().RxQueues, v.GetMemif().TxQueues = uint32(workers), uint32(workers)
				v.RxModes[0].Mode = vpp_interfaces.Interface_RxMode_POLLING
				e.resync(v)
				e.mustNotWrite("again", values{v})
			}
			for _, e := range ends {
				e.awaitQueues(t, workers)
			}
			for i, e := range ends {
				e.sendFromWorkers(t, ends[1-i], workers)
			}
		})
	}
}

// awaitQueues waits until the peer has connected, and checks that each worker serves one queue.
func (e *memifEnd) awaitQueues(t *testing.T, workers int) {
	t.Helper()
	index, _ := e.idx.IfIndex(e.name)
	var at []uint32
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	if err := poll.Until(ctx, 20*time.Millisecond, func() error {
		at = at[:0]
		conn.Dump(e.lane, &interfaces.SwInterfaceRxPlacementDump{SwIfIndex: interface_types.InterfaceIndex(index)},
			func(d *interfaces.SwInterfaceRxPlacementDetails) { at = append(at, d.WorkerID) }, func(error) {})
		e.lane.Flush(ctx)
		if len(at) < workers {
			return fmt.Errorf("%s has %d queues, and not %d", e.name, len(at), workers)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	seen := map[uint32]bool{}
	for _, thread := range at {
		seen[thread] = true
	}
	if len(at) != workers || len(seen) != workers || seen[0] {
		t.Errorf("the %d queues of %s are at threads %v: one at each worker is wanted", len(at), e.name, at)
	}
}

var (
	memifInput = regexp.MustCompile(`(?m)^memif-input +\S+ +(\d+) +(\d+)`) // in show runtime, for each thread: calls and packets
	memifName  = regexp.MustCompile(`memif\d+/\d+`)
)

// sendFromWorkers makes each worker send packets to the other end, where each worker must receive some of them. A worker sends fewer packets than
// its ring has slots (1,024), and only after the receiver's threads have filled the rings with buffers, which they do when they poll the rings: so
// no packet may be lost, even if these threads wait for a CPU meanwhile.
func (e *memifEnd) sendFromWorkers(t *testing.T, to *memifEnd, workers int) {
	t.Helper()
	const each = 500
	cli := func(v *vpptest.VPP, format string, args ...any) string {
		t.Helper()
		out, err := v.CLI(fmt.Sprintf(format, args...))
		if err != nil || strings.Contains(out, "unknown input") {
			t.Fatalf("%s: %v %s", fmt.Sprintf(format, args...), err, out)
		}
		return out
	}
	cli(to.vpp, "clear runtime")
	cli(e.vpp, "create packet-generator interface pg0")
	cli(e.vpp, "set interface ip address pg0 10.56.0.1/24")
	cli(e.vpp, "set interface state pg0 up")
	name := memifName.FindString(cli(e.vpp, "show interface"))
	cli(e.vpp, "set ip neighbor static %s %s 02:fe:00:00:02:0%d", name, to.ip, to.ip.As4()[3])
	for w := range workers {
		cli(e.vpp, "packet-generator new { name w%d worker %d limit %d rate 10000 size 100-100 interface pg0 node ip4-input "+
			"data { UDP: 10.56.0.2 -> %s UDP: 1000 -> 2000 length 72 checksum 0 incrementing 64 } }", w, w, each, to.ip)
	}
	read := func() (calls, packets []int) {
		for _, m := range memifInput.FindAllStringSubmatch(cli(to.vpp, "show runtime"), -1) {
			c, _ := strconv.Atoi(m[1])
			n, _ := strconv.Atoi(m[2])
			if c > 0 {
				calls = append(calls, c)
			}
			if n > 0 {
				packets = append(packets, n)
			}
		}
		return calls, packets
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	if err := poll.Until(ctx, 50*time.Millisecond, func() error {
		if calls, _ := read(); len(calls) < workers {
			return fmt.Errorf("%d of the %d threads of %s read from its memif", len(calls), workers, to.name)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	cli(e.vpp, "packet-generator enable")
	var got []int
	if err := poll.Until(ctx, 50*time.Millisecond, func() error {
		_, got = read()
		sum := 0
		for _, n := range got {
			sum += n
		}
		if sum < each*workers || len(got) != workers {
			return fmt.Errorf("threads have received %v of %d packets from each of %d workers", got, each, workers)
		}
		return nil
	}); err != nil {
		t.Fatalf("%s to %s: %v\n%s\n%s", e.name, to.name, err, cli(e.vpp, "show errors"), cli(to.vpp, "show interface rx-placement"))
	}
	t.Logf("%s to %s: threads have received %v", e.name, to.name, got)
}
