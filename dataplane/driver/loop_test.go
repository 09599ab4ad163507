package driver

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/dataplane/proto"
)

// bubble runs f in simulated time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func TestNothingIsWrittenBeforeInSync(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		r.d.Start()
		for i := range 250 {
			r.send(host(i))
		}
		r.pass(time.Minute)
		r.expectApplies()
		r.expectHealth(true, false)
		r.send(&proto.InSync{})
		synctest.Wait()
		r.expectApplies(time.Minute) // at once, and one apply for all
		if len(r.actual) != 250 {
			t.Errorf("%d hosts are applied, want 250", len(r.actual))
		}
		r.expectHealth(true, true)
		r.send(host(1000))
		synctest.Wait()
		if len(r.applies) != 2 || r.actual["node1000"] == "" {
			t.Error("the gate closed again")
		}
	})
}

func TestGates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		listed, requested := false, 0
		r := newRig(t, func(_ *rig, cfg *Config) {
			cfg.Gates = []func() bool{
				func() bool { return true },
				func() bool { requested++; return listed },
			}
		})
		defer r.stop()
		r.d.Start()
		r.pass(time.Second)
		if requested != 0 {
			t.Error("the gate was asked though there was nothing to write")
		}
		r.send(&proto.InSync{})
		r.pass(time.Second)
		r.expectApplies()
		if d := r.health.Summary().Detail; !strings.Contains(d, "waiting for the first listing") {
			t.Errorf("detail %q", d)
		}
		_ = r.d.Inspect(func() { listed = true }) // without a message: nothing else wakes the loop
		r.pass(gatePoll)
		synctest.Wait()
		if len(r.applies) != 1 {
			t.Errorf("%d applies after the gate opened, want 1", len(r.applies))
		}
		_ = r.d.Inspect(func() { listed = false })
		r.send(host(1))
		synctest.Wait()
		if len(r.applies) != 2 {
			t.Error("the gate closed again")
		}
	})
}

func TestPanickingGateIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broken := true
		r := newRig(t, func(_ *rig, cfg *Config) {
			cfg.Gates = []func() bool{func() bool {
				if broken {
					panic("no monitor")
				}
				return true
			}}
		})
		defer r.stop()
		r.d.Start()
		r.send(&proto.InSync{})
		r.pass(time.Second)
		r.expectApplies()
		_ = r.d.Inspect(func() { broken = false })
		r.pass(time.Second)
		r.expectHealth(true, true)
	})
}

// TestDrainLimit tests that a batch has one message and at most 100 more, all from one channel.
func TestDrainLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		ifaces, addrs := make(chan any, 250), make(chan any, 250)
		r.d.AddSource("iface", ifaces)
		r.d.AddSource("addr", addrs)
		defer r.stop()
		r.begin()
		_ = r.d.Inspect(func() { // the loop is busy while the channels fill
			for range 250 {
				ifaces <- "iface"
				addrs <- "addr"
			}
		})
		synctest.Wait()
		if len(r.batches) != 6 {
			t.Fatalf("batches end at %v, want 6 batches", r.batches)
		}
		var sizes []int
		last := 1 // InSync
		for _, n := range r.batches {
			batch := r.m.got[last:n]
			sizes = append(sizes, len(batch))
			if len(slices.Compact(slices.Clone(batch))) != 1 {
				t.Errorf("a batch mixes channels: %v", batch)
			}
			last = n
		}
		slices.Sort(sizes)
		if !slices.Equal(sizes, []int{48, 48, 101, 101, 101, 101}) {
			t.Errorf("batch sizes %v", sizes)
		}
	})
}

func TestSendMessageBlocksAtCapacity(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil) // not started: nothing reads
		for i := range inputCapacity {
			r.send(host(i))
		}
		sent := make(chan error, 1)
		go func() { sent <- r.d.SendMessage(host(inputCapacity)) }()
		synctest.Wait()
		if got := pending(sent); got != "waiting" {
			t.Fatalf("SendMessage returned %s though the input is full", got)
		}
		r.d.Start()
		synctest.Wait()
		if got := pending(sent); got != "<nil>" {
			t.Errorf("SendMessage: %s", got)
		}
		r.stop()
		if len(r.m.got) != inputCapacity+1 {
			t.Errorf("the manager got %d messages", len(r.m.got))
		}
		if err := r.d.SendMessage(nil); err == nil {
			t.Error("no message was accepted")
		}
	})
}

// TestManagersSeeEveryMessageInOrder tests that all managers receive a message, in the order of registration, before the next one.
func TestManagersSeeEveryMessageInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		var calls []string
		r.m.onUpdate = func(any) { calls = append(calls, "first") }
		second := &recorder{name: "second", desired: map[string]string{}, onUpdate: func(any) { calls = append(calls, "second") }}
		r.d.RegisterManager(second)
		r.m.complete = func() error { calls = append(calls, "first done"); return nil }
		second.complete = func() error { calls = append(calls, "second done"); return nil }
		r.apply = func(context.Context) ApplyResult { calls = append(calls, "apply"); return ApplyResult{} }
		r.d.Start()
		_ = r.d.Inspect(func() { r.send(host(1), &proto.InSync{}) })
		synctest.Wait()
		want := "first second first second first done second done apply"
		if got := strings.Join(calls, " "); got != want {
			t.Errorf("calls: %s\nwant:  %s", got, want)
		}
	})
}

func TestSourceEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		a, b := make(chan any, 1), make(chan any, 10)
		r.d.AddSource("a", a)
		r.d.AddSource("b", b)
		defer r.stop()
		r.begin()
		b <- "b1"
		b <- "b2"
		close(b)
		synctest.Wait()
		a <- "a1"
		r.send(host(1))
		synctest.Wait()
		if len(r.m.got) != 5 || r.actual["node1"] == "" {
			t.Errorf("messages %v", r.m.got)
		}
	})
}

func TestLateRegistrationIsNeverReady(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		r.begin()
		r.expectHealth(true, true)
		r.d.RegisterManager(&recorder{})
		synctest.Wait()
		r.send(host(1))
		synctest.Wait()
		r.expectHealth(true, false)
		if d := r.health.Summary().Detail; !strings.Contains(d, "registered after Start") {
			t.Errorf("detail %q", d)
		}
	})
}

func TestInspectRunsBetweenPasses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		r.begin()
		r.apply = func(context.Context) ApplyResult { time.Sleep(time.Second); return ApplyResult{} }
		r.send(host(1))
		synctest.Wait() // in apply now
		var seen map[string]string
		if err := r.d.Inspect(func() { seen = r.actual }); err != nil {
			t.Fatal(err)
		}
		if since := time.Since(r.start); since != time.Second || seen["node1"] == "" {
			t.Errorf("inspected after %s: %v", since, seen)
		}
		if err := r.d.Inspect(func() { panic("bad dump") }); err == nil || !strings.Contains(err.Error(), "bad dump") {
			t.Errorf("Inspect: %v, want the panic", err)
		}
	})
}
