package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/internal/health"
)

// recorder is a manager that records its messages and keeps a model of the desired state.
type recorder struct {
	name     string
	got      []any
	desired  map[string]string
	onUpdate func(msg any)
	complete func() error
}

func (m *recorder) String() string { return m.name }

func (m *recorder) OnUpdate(msg any) {
	if m.onUpdate != nil {
		m.onUpdate(msg)
	}
	m.got = append(m.got, msg)
	if u, ok := msg.(*proto.HostMetadataUpdate); ok {
		m.desired[u.Hostname] = u.Ipv4Addr
	}
}

func (m *recorder) CompleteDeferredWork() error {
	if m.complete != nil {
		return m.complete()
	}
	return nil
}

// rig is a driver with one recording manager and a dataplane that is a map. Only the loop's goroutine, or the test while the bubble is idle,
// may use its fields.
type rig struct {
	t       *testing.T
	d       *Driver
	m       *recorder
	health  *health.HealthAggregator
	start   time.Time
	applies []time.Duration // since start
	batches []int           // number of messages received before each apply
	actual  map[string]string
	apply   func(ctx context.Context) ApplyResult // replaces a successful apply
}

// newRig returns a rig; change may change the configuration. It must be called in a bubble.
func newRig(t *testing.T, change func(r *rig, cfg *Config)) *rig {
	r := &rig{t: t, health: health.NewHealthAggregator(), start: time.Now(), actual: map[string]string{}}
	r.m = &recorder{name: "recorder", desired: map[string]string{}}
	cfg := Config{Name: "int_dataplane", Health: r.health, Apply: r.doApply}
	if change != nil {
		change(r, &cfg)
	}
	r.d = New(cfg)
	r.d.RegisterManager(r.m)
	return r
}

func (r *rig) doApply(ctx context.Context) ApplyResult {
	r.applies = append(r.applies, time.Since(r.start))
	r.batches = append(r.batches, len(r.m.got))
	if r.apply != nil {
		if res := r.apply(ctx); res.Err != nil || res.Again != 0 {
			return res
		}
	}
	clear(r.actual)
	for k, v := range r.m.desired {
		r.actual[k] = v
	}
	return ApplyResult{}
}

func (r *rig) send(msgs ...any) {
	r.t.Helper()
	for _, m := range msgs {
		if err := r.d.SendMessage(m); err != nil {
			r.t.Fatal(err)
		}
	}
}

// begin starts the driver and brings it in sync; the first apply is then done, and its record is cleared.
func (r *rig) begin() {
	r.t.Helper()
	r.d.Start()
	r.send(&proto.InSync{})
	synctest.Wait()
	if len(r.applies) != 1 {
		r.t.Fatalf("%d applies after InSync, want 1", len(r.applies))
	}
	_ = r.d.Inspect(func() { r.applies, r.batches = nil, nil })
}

func (r *rig) stop() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.d.Stop(ctx); err != nil {
		r.t.Error(err)
	}
}

// flush sends a Flush and returns the channel of its result.
func (r *rig) flush() chan error {
	r.t.Helper()
	done := make(chan error, 1)
	r.send(Flush{Done: done})
	return done
}

// flushAfter sends messages and a Flush that all belong to one apply: the loop waits with the first message until the Flush is queued.
func (r *rig) flushAfter(msgs ...any) chan error {
	r.t.Helper()
	gate := make(chan struct{})
	r.m.onUpdate = func(any) { <-gate }
	r.send(msgs...)
	done := r.flush()
	close(gate)
	return done
}

func (r *rig) expectHealth(live, ready bool) {
	r.t.Helper()
	synctest.Wait()
	if sum := r.health.Summary(); sum.Live != live || sum.Ready != ready {
		r.t.Errorf("after %s: live %v, ready %v; want %v, %v\n%s", time.Since(r.start), sum.Live, sum.Ready, live, ready, sum.Detail)
	}
}

func (r *rig) expectApplies(want ...time.Duration) {
	r.t.Helper()
	synctest.Wait()
	if !slices.Equal(r.applies, want) {
		r.t.Errorf("applies at %v, want %v", r.applies, want)
	}
}

func host(i int) *proto.HostMetadataUpdate {
	return &proto.HostMetadataUpdate{Hostname: fmt.Sprintf("node%d", i), Ipv4Addr: fmt.Sprintf("10.0.%d.%d", i/256, i%256)}
}

var errBroken = errors.New("kernel says no")

// pending returns the state of a flush: "waiting", or its result.
func pending(done chan error) string {
	select {
	case err := <-done:
		return fmt.Sprint(err)
	default:
		return "waiting"
	}
}

// pass lets simulated time pass, and then lets the loop do the work that is due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// pass is like the function pass for a running loop. Actions of the test before the call happen before the loop's actions during it.
func (r *rig) pass(d time.Duration) {
	_ = r.d.Inspect(func() {})
	pass(d)
}
