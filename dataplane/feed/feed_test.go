package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/internal/lifecycle"
)

// fakeDriver records the messages that it receives.
type fakeDriver struct {
	mu       sync.Mutex
	reported []string // one word per message, "flush" for a flush
	last     any      // the last message
	ids      map[string]*proto.WorkloadEndpointID
	linkUp   map[string]bool
	synced   bool
	flushes  error // the result of a flush

	batches   int   // number of calls of SendMessages
	refuses   error // the error that SendMessages returns
	refreshed int
	reports   chan any
}

func newFakeDriver() *fakeDriver {
	return &fakeDriver{ids: map[string]*proto.WorkloadEndpointID{}, linkUp: map[string]bool{}, reports: make(chan any, 100)}
}

func (d *fakeDriver) SendMessage(msg any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := string(msg.(pb.Message).ProtoReflect().Descriptor().Name())
	switch m := msg.(type) {
	case *proto.WorkloadEndpointUpdate:
		d.ids[m.GetId().GetEndpointId()] = m.GetId()
		name += " " + m.GetId().GetEndpointId()
	case *proto.WorkloadEndpointRemove:
		delete(d.ids, m.GetId().GetEndpointId())
		name += " " + m.GetId().GetEndpointId()
	case *proto.InSync:
		d.synced = true
	}
	d.reported = append(d.reported, name)
	d.last = msg
	d.reportLocked()
	return nil
}

func (d *fakeDriver) SendMessages(msgs ...any) error {
	for _, msg := range msgs {
		if err := d.SendMessage(msg); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.batches++
	return d.refuses
}

func (d *fakeDriver) reportLocked() {
	for ep, id := range d.ids {
		if d.synced && d.linkUp[ep] {
			d.reports <- &proto.WorkloadEndpointStatusUpdate{Id: id, Status: &proto.EndpointStatus{Status: "up"}}
		}
	}
}

func (d *fakeDriver) RecvMessage() (any, error) {
	msg, ok := <-d.reports
	if !ok {
		return nil, io.EOF
	}
	return msg, nil
}

func (d *fakeDriver) Flush(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reported = append(d.reported, "flush")
	return d.flushes
}

func (d *fakeDriver) Refresh() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refreshed++
	return nil
}

func (d *fakeDriver) Expedite() (release func()) { return func() {} }

// take returns what the driver has received since the last call.
func (d *fakeDriver) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	reported := d.reported
	d.reported = nil
	return reported
}

// rig is a scheduler with a driver behind a feed, and links that come up immediately.
type rig struct {
	t      *testing.T
	driver *fakeDriver
	feed   *Feed
	s      *scheduler.Scheduler
}

const linkPrefix = "link/"

// newRig returns a rig with a timeout that is never reached; tests that reach a timeout set it (newRigWith).
func newRig(t *testing.T, driver *fakeDriver) *rig { return newRigWith(t, driver, time.Minute) }

func newRigWith(t *testing.T, driver *fakeDriver, upTimeout time.Duration, change ...func(*Config)) *rig {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	jobs := lifecycle.NewGroup(t.Context(), log)
	config := Config{
		Driver: driver, Log: log, UpTimeout: upTimeout,
		LinkKey: func(id *proto.WorkloadEndpointID) string { return linkPrefix + id.GetEndpointId() },
	}
	for _, f := range change {
		f(&config)
	}
	f := New(config)
	s := scheduler.New(scheduler.Config{Backends: []scheduler.Backend{f}, Jobs: jobs}, log)
	if err := Register(s, f); err != nil {
		t.Fatal(err)
	}
	if err := scheduler.Register(s, scheduler.Descriptor[pb.Message]{
		Name: "link", Prefix: linkPrefix, Rank: scheduler.RankPodLink,
		Equal: func(string, pb.Message, pb.Message) bool { return true },
		Create: func(op *scheduler.Op, key string, _ pb.Message) {
			driver.mu.Lock()
			defer driver.mu.Unlock()
			driver.linkUp[strings.TrimPrefix(key, linkPrefix)] = true
			driver.reported = append(driver.reported, key)
			driver.reportLocked()
			op.Done(nil)
		},
		Delete: func(op *scheduler.Op, _ string, _ pb.Message) { op.Done(nil) },
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	jobs.Go("feed", f.Run)
	t.Cleanup(func() {
		s.Close()
		close(driver.reports)
		if err := jobs.Stop(20 * time.Second); err != nil {
			t.Error(err)
		}
	})
	return &rig{t: t, driver: driver, feed: f, s: s}
}

func endpoint(name string) *proto.WorkloadEndpointUpdate {
	return &proto.WorkloadEndpointUpdate{
		Id:       &proto.WorkloadEndpointID{OrchestratorId: "contiv", WorkloadId: "default/" + name, EndpointId: name},
		Endpoint: &proto.WorkloadEndpoint{State: "active", Name: "cali" + name},
	}
}

func policyOf(ep *proto.WorkloadEndpointUpdate) *proto.WorkloadPolicy {
	return &proto.WorkloadPolicy{Id: ep.GetId(), ProfileIds: []string{"p"}}
}

func values(t *testing.T, link bool, msgs ...pb.Message) []txn.KV {
	t.Helper()
	var out []txn.KV
	for _, m := range msgs {
		key, err := nb.Key(m)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, txn.KV{Key: key, Value: m})
		if ep, ok := m.(*proto.WorkloadEndpointUpdate); ok && link {
			out = append(out, txn.KV{Key: nb.DriverWorkloadPolicyKey(ep.GetId()), Value: policyOf(ep)})
			out = append(out, txn.KV{Key: linkPrefix + ep.GetId().GetEndpointId(), Value: &proto.InSync{}})
		}
	}
	return out
}

func base() []pb.Message {
	return []pb.Message{
		&proto.InSync{}, &proto.RouteUpdate{Dst: "10.1.2.0/24"}, &proto.ActiveProfileUpdate{Id: &proto.ProfileID{Name: "p"}},
		&proto.VXLANTunnelEndpointUpdate{Node: "n2"},
	}
}

func (r *rig) commit(kind txn.Kind, revert bool, kvs []txn.KV) error {
	r.t.Helper()
	_, err := r.s.Commit(r.t.Context(), &txn.Txn{Kind: kind, Values: kvs, Revert: revert})
	return err
}

// TestNothingIsAppliedBeforeInSync tests that InSync comes after all values of the start, and links of pods after InSync.
func TestNothingIsAppliedBeforeInSync(t *testing.T) {
	r := newRig(t, newFakeDriver())
	if err := r.commit(txn.FullResync, false, values(t, true, append(base(), endpoint("a"))...)); err != nil {
		t.Fatal(err)
	}
	got := r.driver.take()
	order := []string{"ActiveProfileUpdate", "RouteUpdate", "WorkloadEndpointUpdate a", "InSync", "flush", "link/a"}
	last := -1
	for _, what := range order {
		i := slices.Index(got, what)
		if i <= last {
			t.Fatalf("%s comes at %d, want it behind %d: %q", what, i, last, got)
		}
		last = i
	}
	if i := slices.Index(got, "flush"); i < slices.Index(got, "InSync") {
		t.Errorf("waited for the driver before it was in sync: %q", got)
	}
	if err := r.commit(txn.FullResync, false, values(t, true, append(base(), endpoint("a"))...)); err != nil {
		t.Fatal(err)
	}
	if got := r.driver.take(); !slices.Equal(got, []string{"flush"}) {
		t.Errorf("a resync with nothing changed told the driver %q", got)
	}
	if r.driver.refreshed != 1 {
		t.Errorf("two resyncs made the driver look %d times, want once: at the first one it knew nothing", r.driver.refreshed)
	}
}

// TestAddAndDelete tests that policy is in force before the pod's link is up, and that the transaction ends when the endpoint is up.
func TestAddAndDelete(t *testing.T) {
	r := newRig(t, newFakeDriver())
	if err := r.commit(txn.FullResync, false, values(t, true, base()...)); err != nil {
		t.Fatal(err)
	}
	r.driver.take()
	if err := r.commit(txn.Update, true, values(t, true, endpoint("a"))); err != nil {
		t.Fatal(err)
	}
	if got, want := r.driver.take(), []string{"WorkloadEndpointUpdate a", "flush", "link/a"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	if status, _ := r.feed.statusOf(upKey(endpoint("a").GetId())); status != "up" {
		t.Errorf("the transaction ended with the endpoint %q", status)
	}
	gone := values(t, true, endpoint("a"))
	for i := range gone {
		gone[i].Value = nil
	}
	if err := r.commit(txn.Update, false, gone); err != nil {
		t.Fatal(err)
	}
	if got, want := r.driver.take(), []string{"WorkloadEndpointRemove a", "flush"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// TestEndpointThatStaysDown tests that the pod is not reported as connected, and that none of its values stay.
func TestEndpointThatStaysDown(t *testing.T) {
	r := newRigWith(t, newFakeDriver(), 200*time.Millisecond)
	if err := r.commit(txn.FullResync, false, values(t, true, base()...)); err != nil {
		t.Fatal(err)
	}
	r.driver.mu.Lock()
	r.driver.synced = false // so that no endpoint comes up
	r.driver.mu.Unlock()
	err := r.commit(txn.Update, true, values(t, true, endpoint("a")))
	if err == nil || !strings.Contains(err.Error(), "the endpoint is \"not reported\" after 200ms") {
		t.Errorf("error %v", err)
	}
	if _, left := r.feed.reported[nb.DriverWorkloadKey(endpoint("a").GetId())]; left || len(r.driver.ids) > 0 {
		t.Error("the driver still has the endpoint")
	}
}

// TestConditionOfAnEndpoint tests that an error with which the endpoint works does not keep the pod from being connected, that another error
// does, and that the reason of the latter is in the returned error.
func TestConditionOfAnEndpoint(t *testing.T) {
	for connected, want := range map[bool]string{true: "", false: "because of ICMP"} {
		d := newFakeDriver()
		r := newRigWith(t, d, 300*time.Millisecond, func(c *Config) {
			c.Condition = func(*proto.WorkloadEndpointID) (string, bool) { return "because of ICMP", connected }
		})
		if err := r.commit(txn.FullResync, false, values(t, true, base()...)); err != nil {
			t.Fatal(err)
		}
		d.mu.Lock()
		d.synced = false // so that the fake driver reports no status
		d.mu.Unlock()
		d.reports <- &proto.WorkloadEndpointStatusUpdate{Id: endpoint("a").GetId(), Status: &proto.EndpointStatus{Status: "error"}}
		err := r.commit(txn.Update, true, values(t, true, endpoint("a")))
		if connected && err != nil || !connected && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("connected %v: error %v", connected, err)
		}
	}
}

// TestDriverWithoutStatus tests that for a driver that reports no status an applied endpoint is up.
func TestDriverWithoutStatus(t *testing.T) {
	d := newFakeDriver()
	r := newRigWith(t, d, 300*time.Millisecond, func(c *Config) { c.NoStatus = true })
	if err := r.commit(txn.FullResync, false, values(t, true, base()...)); err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	d.synced = false
	d.mu.Unlock()
	if err := r.commit(txn.Update, true, values(t, true, endpoint("a"))); err != nil {
		t.Errorf("the pod waits for a status that never comes: %v", err)
	}
	d.mu.Lock()
	d.flushes = errors.New("HNS said no")
	d.mu.Unlock()
	if err := r.commit(txn.Update, true, values(t, true, endpoint("b"))); err == nil {
		t.Error("not applied, and the pod is connected")
	}
}

// TestApplyFails tests that an endpoint that may not be programmed is an error of the pod, and that the driver repairs everything else.
func TestApplyFails(t *testing.T) {
	r := newRig(t, newFakeDriver())
	if err := r.commit(txn.FullResync, false, values(t, true, base()...)); err != nil {
		t.Fatal(err)
	}
	r.driver.mu.Lock()
	r.driver.flushes = errors.New("kernel said no")
	r.driver.mu.Unlock()
	if err := r.commit(txn.Update, false, values(t, true, &proto.RouteUpdate{Dst: "10.1.3.0/24"})); err != nil {
		t.Errorf("a route that the driver goes on trying: %v", err)
	}
	err := r.commit(txn.Update, true, values(t, true, endpoint("a")))
	if err == nil || !strings.Contains(err.Error(), "kernel said no") {
		t.Errorf("error %v", err)
	}
	var failed *txn.Error
	if !errors.As(err, &failed) || !failed.Reverted || !scheduler.IsRetriable(failed.Failed[0].Err) {
		t.Errorf("error %#v, want one that was reverted and may go away", err)
	}
}

// TestRestart tests a new agent, which has no record of the messages that an earlier one sent. The driver is in the same process, so it is also
// new.
func TestRestart(t *testing.T) {
	all := func(t *testing.T) []txn.KV {
		var eps []pb.Message
		for i := range 50 {
			eps = append(eps, endpoint(fmt.Sprint("e", i)))
		}
		return values(t, true, append(base(), eps...)...)
	}
	for range 2 {
		r := newRig(t, newFakeDriver())
		if err := r.commit(txn.FullResync, false, all(t)); err != nil {
			t.Fatal(err)
		}
		got := r.driver.take()
		flushes := 0
		for _, what := range got {
			if what == "flush" {
				flushes++
			}
		}
		if len(r.driver.ids) != 50 || flushes != 1 {
			t.Errorf("%d endpoints by %d batches, want 50 by one", len(r.driver.ids), flushes)
		}
	}
}
