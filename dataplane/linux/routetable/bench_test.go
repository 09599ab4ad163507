package routetable

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/dataplane/netlink/nettest"
)

const benchRoutes = 10000

func benchNet(b *testing.B) (*nettest.NS, int) {
	ns := nettest.New(b)
	return ns, pair(b, ns, "cali0", "peer0")
}

func flushRoutes(b *testing.B, ns *nettest.NS) {
	b.StopTimer()
	ns.IP("link set cali0 down")
	ns.IP("link set cali0 up")
	b.StartTimer()
}

// BenchmarkCold adds 10 000 routes to an empty table.
func BenchmarkCold(b *testing.B) {
	ns, index := benchNet(b)
	targets := many(benchRoutes, "cali0")
	for b.Loop() {
		flushRoutes(b, ns)
		tab := realTable(b, ns, Config{})
		tab.OnIfaceStateChanged("cali0", index, true)
		tab.SetRoutes("x", targets)
		mustApply(b, tab)
	}
}

// BenchmarkRestart finds 10 000 routes as desired.
func BenchmarkRestart(b *testing.B) {
	ns, index := benchNet(b)
	targets := many(benchRoutes, "cali0")
	for b.Loop() {
		tab := realTable(b, ns, Config{})
		tab.OnIfaceStateChanged("cali0", index, true)
		tab.SetRoutes("x", targets)
		mustApply(b, tab)
	}
}

// BenchmarkResync compares 10 000 routes.
func BenchmarkResync(b *testing.B) {
	ns, index := benchNet(b)
	tab := realTable(b, ns, Config{})
	tab.OnIfaceStateChanged("cali0", index, true)
	tab.SetRoutes("x", many(benchRoutes, "cali0"))
	mustApply(b, tab)
	for b.Loop() {
		tab.Resync()
		mustApply(b, tab)
	}
}

// BenchmarkOne adds a pod's route and neighbour next to 10 000 others, and removes them: two Applies.
func BenchmarkOne(b *testing.B) {
	ns, index := benchNet(b)
	tab := realTable(b, ns, Config{})
	tab.OnIfaceStateChanged("cali0", index, true)
	tab.SetRoutes("x", many(benchRoutes, "cali0"))
	mustApply(b, tab)
	one := []Target{{CIDR: prefix("10.9.0.1/32"), Iface: "cali0", MAC: []byte{2, 0, 0, 0, 0, 1}}}
	for b.Loop() {
		tab.SetRoutes("ep", one)
		mustApply(b, tab)
		tab.DeleteClass("ep")
		mustApply(b, tab)
	}
}

// BenchmarkFloor measures the minimum: 10 000 requests, encoded beforehand, in sends of 512.
func BenchmarkFloor(b *testing.B) {
	ns, index := benchNet(b)
	conn, err := netlink.Dial(ns.Namespace, unix.NETLINK_ROUTE, defaultTimeout)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	var batch netlink.Batch
	for _, target := range many(benchRoutes, "cali0") {
		putRoute(&batch, route{dst: target.CIDR, typ: unix.RTN_UNICAST, protocol: 202, index: index}, unix.NLM_F_EXCL)
	}
	for b.Loop() {
		flushRoutes(b, ns)
		if failed, err := conn.Do(context.Background(), &batch); err != nil || failed != nil {
			b.Fatal(failed, err)
		}
	}
}

// BenchmarkIPBatch does the same with the ip command.
func BenchmarkIPBatch(b *testing.B) {
	ns, _ := benchNet(b)
	var text strings.Builder
	for _, target := range many(benchRoutes, "cali0") {
		fmt.Fprintf(&text, "route add %s dev cali0 proto 202\n", target.CIDR)
	}
	file := filepath.Join(b.TempDir(), "routes")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		flushRoutes(b, ns)
		ns.IP("-batch " + file)
	}
}
