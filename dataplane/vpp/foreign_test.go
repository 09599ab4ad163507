package vpp

import (
	"log/slog"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/l3"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/test/testbed/poll"
)

// TestTypedRoutes checks that routes added on the command line are distinguished from routes of the API and
// from VPP's own.
func TestTypedRoutes(t *testing.T) {
	v := vpptest.Start(t, vpptest.Options{FewPlugins: []string{"nat"}})
	jobs := lifecycle.NewGroup(t.Context(), slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = jobs.Stop(time.Minute) })
	c := conn.New(conn.Config{Socket: v.Socket()}, slog.New(slog.DiscardHandler))
	c.Start(jobs)
	t.Cleanup(c.Close)
	routes := l3.NewTypedRoutes(c)
	want := func(table uint32, list ...string) {
		t.Helper()
		got, err := routes.In(t.Context(), table)
		if err != nil || len(got) != len(list) {
			t.Errorf("table %d: %v, want %v; %v", table, got, list, err)
			return
		}
		for i := range list {
			if got[i].String() != list[i] {
				t.Errorf("table %d: %v, want %v", table, got, list)
			}
		}
	}
	if err := poll.Until(t.Context(), 10*time.Millisecond, func() error {
		_, err := routes.In(t.Context(), 0)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"ip table add 1", "ip6 table add 1", "create loopback interface", "set interface ip table loop0 1",
		"set interface ip address loop0 10.1.1.1/24", "set interface state loop0 up",
	} {
		if out, err := v.CLI(line); err != nil {
			t.Fatalf("%s: %v %s", line, err, out)
		}
	}
	want(0)
	want(1)
	for _, line := range []string{"ip route add 10.1.2.2/32 table 1 via drop", "ip route add fd00::/64 table 1 via drop"} {
		if out, err := v.CLI(line); err != nil {
			t.Fatalf("%s: %v %s", line, err, out)
		}
	}
	want(0)
	want(1, "10.1.2.2/32", "fd00::/64")
}
