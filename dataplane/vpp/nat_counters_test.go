package vpp

import (
	"errors"
	"log/slog"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/traffic"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/test/testbed/poll"
)

// TestNATByPod checks the sessions by address behind NAT, and the packets by interface, and measures the cost of the former
// for VPP with 50,000 sessions.
func TestNATByPod(t *testing.T) {
	const sessions = 50000
	v := vpptest.Start(t, vpptest.Options{HeapMB: 512, FewPlugins: []string{"nat"}})
	if _, err := traffic.ReadNATCounters(v.StatsSocket() + "-not-there"); err == nil {
		t.Error("counters of a VPP that is not there")
	}
	for _, line := range []string{
		"nat44 plugin enable sessions 100000", "create packet-generator interface pg0", "set interface ip address pg0 10.1.1.1/24",
		"set interface state pg0 up", "set interface nat44 in pg0", "set interface nat44 out pg0",
		"nat44 add static mapping udp local 10.1.2.2 53 external 10.96.0.1 80",
		"nat44 add static mapping udp local 10.1.2.3 53 external 10.96.0.2 80",
		"ip route add 10.1.2.0/24 via 10.1.1.9 pg0", "ip neighbor pg0 10.1.1.9 02:00:00:00:00:09",
		stream("most", "10.96.0.1", "1025 - 50024", sessions-1000), stream("few", "10.96.0.2", "1025 - 2024", 1000),
		"packet-generator enable-stream",
	} {
		if out, err := v.CLI(line); err != nil {
			t.Fatalf("%s: %v %s", line, err, out)
		}
	}
	jobs := lifecycle.NewGroup(t.Context(), slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = jobs.Stop(time.Minute) })
	c := conn.New(conn.Config{Socket: v.Socket()}, slog.New(slog.DiscardHandler))
	c.Start(jobs)
	t.Cleanup(c.Close)
	users := traffic.NewUsers(c)
	want := map[netip.Addr]int{netip.MustParseAddr("10.1.2.2"): sessions - 1000, netip.MustParseAddr("10.1.2.3"): 1000}
	err := poll.Until(t.Context(), 50*time.Millisecond, func() error {
		list, err := users.Count(t.Context())
		for _, u := range list {
			if want[u.Addr] != u.Sessions {
				err = errors.Join(err, errors.New(u.Addr.String()))
			}
		}
		if len(list) != len(want) {
			err = errors.Join(err, errors.New("other users"))
		}
		return err
	})
	if err != nil {
		out, _ := v.CLI("show nat44 summary")
		t.Fatalf("users: %v\n%s", err, out)
	}
	counters, err := traffic.ReadNATCounters(v.StatsSocket())
	if err != nil || len(counters) < 2 || counters[1].Out2In != sessions || counters[1].In2Out != 0 {
		t.Errorf("counters %+v, %v", counters, err)
	}
	longest, sum := time.Duration(0), time.Duration(0)
	for range 10 {
		start := time.Now()
		if _, err := users.Count(t.Context()); err != nil {
			t.Fatal(err)
		}
		took := time.Since(start)
		longest, sum = max(longest, took), sum+took
	}
	t.Logf("counting %d sessions by user: %s on average, %s at most", sessions, (sum / 10).Round(10*time.Microsecond),
		longest.Round(10*time.Microsecond))
	start := time.Now()
	if _, err := traffic.ReadNATCounters(v.StatsSocket()); err != nil {
		t.Fatal(err)
	}
	t.Logf("reading the counters of interfaces: %s", time.Since(start).Round(10*time.Microsecond))
}

// stream returns the command that sends n packets from ports to port 80 of an address.
func stream(name, to, ports string, n int) string {
	return "packet-generator new { name " + name + " limit " + strconv.Itoa(n) + " size 64-64 interface pg0 node ip4-input " +
		"data { UDP: 10.1.1.2 -> " + to + " UDP: " + ports + " -> 80 length 36 checksum 0 incrementing 28 } }"
}
