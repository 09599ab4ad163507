package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/dataplane/proto"
)

func hostnames(msgs []any) (names []string) {
	for _, msg := range msgs {
		if u, ok := msg.(*proto.HostMetadataUpdate); ok {
			names = append(names, u.Hostname)
		}
	}
	return names
}

// TestPanicOverMessage tests that the manager receives the message again before later ones. Meanwhile the driver is not ready and reports the
// reason, and other managers work.
func TestPanicOverMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		other := &recorder{name: "other", desired: map[string]string{}}
		r.d.RegisterManager(other)
		r.begin()
		panics := 1
		r.m.onUpdate = func(msg any) {
			if u, ok := msg.(*proto.HostMetadataUpdate); ok && u.Hostname == "node2" && panics > 0 {
				panics--
				panic("index out of range")
			}
		}
		r.send(host(1), host(2), host(3))
		err := <-r.flush()
		for _, want := range []string{"manager recorder", `*proto.HostMetadataUpdate hostname="node2"`, "index out of range"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Flush: %v, want it to name %s", err, want)
			}
		}
		r.expectHealth(true, false)
		if got := hostnames(other.got); !slices.Equal(got, []string{"node1", "node2", "node3"}) {
			t.Errorf("the other manager got %v", got)
		}
		if got := hostnames(r.m.got); !slices.Equal(got, []string{"node1"}) {
			t.Errorf("the manager got %v before the one it panicked over", got)
		}
		r.send(host(4))
		r.pass(10 * time.Second)
		synctest.Wait()
		if got := hostnames(r.m.got); !slices.Equal(got, []string{"node1", "node2", "node3", "node4"}) {
			t.Errorf("after the retry the manager has %v", got)
		}
		if err := <-r.flush(); err != nil || len(r.actual) != 4 {
			t.Errorf("Flush: %v, applied %v", err, r.actual)
		}
		r.expectHealth(true, true)
	})
}

// TestPoisonedMessage tests that the message is dropped after the third panic: later messages are applied, but the driver stays not ready.
func TestPoisonedMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		r.begin()
		deliveries := 0
		r.m.onUpdate = func(msg any) {
			if u, ok := msg.(*proto.HostMetadataUpdate); ok && u.Hostname == "node1" {
				deliveries++
				panic(errBroken)
			}
		}
		r.send(host(1), host(2))
		if err := <-r.flush(); !errors.Is(err, errBroken) {
			t.Errorf("Flush: %v, want the error that was panicked with", err)
		}
		r.pass(19 * time.Second)
		if deliveries != 2 || len(r.actual) != 0 {
			t.Errorf("%d deliveries, applied %v", deliveries, r.actual)
		}
		r.pass(2 * time.Second)
		if deliveries != 3 || r.actual["node2"] == "" {
			t.Errorf("%d deliveries, applied %v; want three and node2", deliveries, r.actual)
		}
		r.send(host(3))
		if err := <-r.flush(); err != nil {
			t.Errorf("Flush of a good message: %v", err)
		}
		r.pass(time.Hour)
		if deliveries != 3 {
			t.Errorf("%d deliveries", deliveries)
		}
		r.expectHealth(true, false)
		if d := r.health.Summary().Detail; !strings.Contains(d, "given up after 3 deliveries") || !strings.Contains(d, "node1") {
			t.Errorf("detail %q", d)
		}
	})
}

// TestPanicBeforeInSync tests that the first write waits for the message, so that it is a complete snapshot.
func TestPanicBeforeInSync(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		r.d.Start()
		panics := 1
		r.m.onUpdate = func(any) {
			if panics > 0 {
				panics--
				panic("not yet")
			}
		}
		r.send(host(1), host(2), &proto.InSync{})
		r.pass(9 * time.Second)
		r.expectApplies()
		r.expectHealth(true, false)
		r.pass(time.Second)
		synctest.Wait()
		r.expectApplies(10 * time.Second)
		if len(r.actual) != 2 {
			t.Errorf("applied %v", r.actual)
		}
		r.expectHealth(true, true)
	})
}

func TestPanicsInPhaseTwo(t *testing.T) {
	for name, broken := range map[string]func(r *rig, f func()){
		"manager recorder: CompleteDeferredWork": func(r *rig, f func()) { r.m.complete = func() error { f(); return nil } },
		"apply": func(r *rig, f func()) {
			r.apply = func(context.Context) ApplyResult { f(); return ApplyResult{} }
		},
	} {
		bubble(t, func(t *testing.T) {
			r := newRig(t, nil)
			defer r.stop()
			r.begin()
			panics := 2
			broken(r, func() {
				if panics > 0 {
					panics--
					panic("a defect of the manager")
				}
			})
			r.send(host(1))
			if err := <-r.flush(); err == nil || !strings.Contains(err.Error(), name+": panic: a defect of the manager") {
				t.Errorf("Flush: %v, want a panic of %s", err, name)
			}
			r.expectHealth(true, false)
			r.pass(15 * time.Second)
			r.expectHealth(true, false)
			r.pass(6 * time.Second)
			r.expectHealth(true, true)
			r.expectApplies(0, 10*time.Second, 20*time.Second)
		})
	}
}

func TestPanicsElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(_ *rig, cfg *Config) {
			cfg.PostInSync = func() { panic("heap profile") }
			cfg.Refresh = []Refresh{
				{Name: "routes", Interval: time.Minute, Fire: func() { panic("refresh") }},
				{Name: "without Fire", Interval: time.Minute},
			}
		})
		defer r.stop()
		r.begin()
		r.pass(5 * time.Minute)
		r.send(host(1))
		if err := <-r.flush(); err != nil {
			t.Error(err)
		}
		r.expectHealth(true, true)
	})
}

func TestDescribe(t *testing.T) {
	for want, msg := range map[string]any{
		"*proto.InSync":                         &proto.InSync{},
		"<nil>":                                 nil,
		`*proto.IPSetRemove id="s:1"`:           &proto.IPSetRemove{Id: "s:1"},
		`*proto.RouteUpdate dst="10.0.0.0/8"`:   &proto.RouteUpdate{Dst: "10.0.0.0/8"},
		`*proto.ServiceUpdate name="web"`:       &proto.ServiceUpdate{Name: "web"},
		`*proto.IPSetUpdate id=""`:              (*proto.IPSetUpdate)(nil),
		"*driver.recorder":                      &recorder{},
		"*proto.VXLANTunnelEndpointRemove node": &proto.VXLANTunnelEndpointRemove{},
	} {
		if got := describe(msg); !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	ep := &proto.WorkloadEndpointRemove{Id: &proto.WorkloadEndpointID{WorkloadId: "default/web"}}
	if got := describe(ep); !strings.Contains(got, "default/web") {
		t.Error(got)
	}
	if got := fmt.Sprint(newSlot(struct{ Manager }{}).name); !strings.Contains(got, "Manager") {
		t.Errorf("a manager without a name is called %q", got)
	}
}
