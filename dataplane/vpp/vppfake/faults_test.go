package vppfake_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/memclnt"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

func TestFaultRetval(t *testing.T) {
	f, conn := client(t, vppfake.Config{})
	rule := f.Faults.Add(vppfake.Fault{Message: "create_loopback*", Nth: 2, Retval: -7})
	var got []int32
	for range 3 {
		r, err := invoke(t, conn, &interfaces.CreateLoopback{}, &interfaces.CreateLoopbackReply{})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Retval)
	}
	if !reflect.DeepEqual(got, []int32{0, -7, 0}) || rule.Hits() != 1 {
		t.Errorf("%v, %d hits", got, rule.Hits())
	}
	if strings.Count(f.Dump(), "Loopback") != 2 {
		t.Errorf("the failed request was applied:\n%s", f.Dump())
	}
}

func TestFaultEffects(t *testing.T) {
	for _, c := range []struct {
		fault           string
		applied, closed bool
	}{
		{"create_loopback lost", true, false},
		{"create_loopback disconnect", false, true},
		{"create_loopback applydisconnect", true, true},
		{"create_loopback crash", false, true},
		{"create_loopback freeze", false, false},
	} {
		t.Run(c.fault, func(t *testing.T) {
			f, conn := client(t, vppfake.Config{})
			fault, err := vppfake.ParseFault(c.fault)
			if err != nil {
				t.Fatal(err)
			}
			f.Faults.Add(fault)
			_, err = within(inVain, conn, &interfaces.CreateLoopback{}, &interfaces.CreateLoopbackReply{})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
			if applied := strings.Contains(f.Dump(), "Loopback"); applied != c.applied {
				t.Errorf("applied: %v", applied)
			}
			f.Faults.Clear()
			if fault.Freeze {
				return
			}
			limit := 20 * time.Second
			if c.closed {
				limit = inVain
			}
			_, err = within(limit, conn, &memclnt.ControlPing{}, &memclnt.ControlPingReply{})
			if closed := err != nil; closed != c.closed {
				t.Errorf("connection closed: %v (%v)", closed, err)
			}
		})
	}
}

func TestFaultDelay(t *testing.T) {
	f, conn := client(t, vppfake.Config{})
	f.Faults.Add(vppfake.Fault{Message: "create_loopback", Delay: 40 * time.Millisecond, Times: 1})
	start := time.Now()
	loopback(t, conn, "")
	if d := time.Since(start); d < 40*time.Millisecond {
		t.Errorf("took %s", d)
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("took %s", d)
	}
	start = time.Now()
	loopback(t, conn, "")
	if d := time.Since(start); d > 35*time.Millisecond {
		t.Logf("second took %s", d)
	}
}

func TestFaultProbability(t *testing.T) {
	run := func(seed uint64) (failed []bool) {
		f, conn := client(t, vppfake.Config{Seed: seed})
		f.Faults.Add(vppfake.Fault{Message: "*", WritesOnly: true, Probability: 0.5, Retval: -1})
		for range 40 {
			r, err := invoke(t, conn, &interfaces.CreateLoopback{}, &interfaces.CreateLoopbackReply{})
			if err != nil {
				t.Fatal(err)
			}
			failed = append(failed, r.Retval != 0)
		}
		if _, err := invoke(t, conn, &memclnt.ControlPing{}, &memclnt.ControlPingReply{}); err != nil {
			t.Fatal(err)
		}
		return failed
	}
	one := run(1)
	n := 0
	for _, f := range one {
		if f {
			n++
		}
	}
	if n < 8 || n > 32 {
		t.Errorf("%d of 40 failed", n)
	}
	if !reflect.DeepEqual(one, run(1)) {
		t.Error("the same seed fails differently")
	}
	if reflect.DeepEqual(one, run(2)) {
		t.Error("another seed fails alike")
	}
}

func TestFaultMatch(t *testing.T) {
	f, conn := client(t, vppfake.Config{})
	rule := f.Faults.Add(vppfake.Fault{Message: "create_loopback_instance", Retval: -7, Match: func(m api.Message) bool {
		return m.(*interfaces.CreateLoopbackInstance).UserInstance == 3
	}})
	for n := range uint32(5) {
		r, _ := invoke(t, conn, &interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: n}, &interfaces.CreateLoopbackInstanceReply{})
		if (r.Retval != 0) != (n == 3) {
			t.Errorf("%d: %d", n, r.Retval)
		}
	}
	rule.Remove()
	must(t, conn, &interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: 3})
}

func TestParseFault(t *testing.T) {
	got, err := vppfake.ParseFault("ip_route_* nth=3 p=0.25 times=2 writes retval=-7 delay=5ms lost disconnect applydisconnect freeze crash")
	want := vppfake.Fault{Message: "ip_route_*", Nth: 3, Probability: 0.25, Times: 2, WritesOnly: true, Retval: -7, Delay: 5 * time.Millisecond,
		LostReply: true, Disconnect: true, ApplyThenDisconnect: true, Freeze: true, Crash: true}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v", got, err)
	}
	for _, bad := range []string{"", "x nonsense", "x retval=y", "x p=2y"} {
		if _, err := vppfake.ParseFault(bad); err == nil {
			t.Errorf("%q parsed", bad)
		}
	}
}

func TestFaultMistakes(t *testing.T) {
	f := startFake(t, vppfake.Config{})
	for _, bad := range []vppfake.Fault{{}, {Message: "x"}, {Message: "[", Retval: -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v accepted", bad)
				}
			}()
			f.Faults.Add(bad)
		}()
	}
}
