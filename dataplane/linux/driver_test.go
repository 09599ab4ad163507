package intdataplane

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/rules/rulestest"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/internal/health"
	"contiv.dev/vswitch/test/testbed/poll"
)

// start runs the bench's driver with its loop.
func (b *bench) start() {
	b.t.Helper()
	b.d.combiner.queue = b.d.loop.QueueStatus
	b.d.Start()
	b.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := b.d.Stop(ctx); err != nil {
			b.t.Errorf("stop: %v", err)
		}
	})
}

func (b *bench) send(msgs ...any) {
	b.t.Helper()
	for _, msg := range msgs {
		if err := b.d.SendMessage(msg); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) flush() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return b.d.Flush(ctx)
}

// inspect runs f on the loop's goroutine.
func (b *bench) inspect(f func()) {
	b.t.Helper()
	if err := b.d.loop.Inspect(f); err != nil {
		b.t.Fatal(err)
	}
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	poll.Await(t, what, 20*time.Second, is)
}

func TestNothingIsWrittenBeforeInSync(t *testing.T) {
	b := newBench(t, both)
	var listed atomic.Bool
	b.monitor.listed = listed.Load
	b.start()
	b.send(openProfile(), endpoint("a", "calia", 1))
	b.monitor.updates <- ifUp("calia", 1)
	silent := func(when string) {
		t.Helper()
		time.Sleep(150 * time.Millisecond)
		b.inspect(func() {
			if b.fake.Applies > 0 || len(b.fake.Dump()) > 0 || len(b.sysctls.values) > 1 || len(b.routes[4].kernel) > 0 {
				t.Errorf("something was written %s", when)
			}
		})
	}
	silent("before InSync")
	b.send(&proto.InSync{})
	silent("before the interfaces were listed")
	listed.Store(true)
	if err := b.flush(); err != nil {
		t.Fatal(err)
	}
	b.inspect(func() {
		b.expect("then", packet("eth0", "calia", "1.1.1.1", "10.65.0.1", 80), "accept")
	})
}

func TestFlushAndStatus(t *testing.T) {
	b := newBench(t, both)
	b.start()
	b.send(openProfile(), endpoint("a", "calia", 1), &proto.InSync{})
	b.monitor.updates <- ifUp("calia", 1)
	eventually(t, "status up", func() bool {
		msg, err := b.d.RecvMessage()
		update, is := msg.(*proto.WorkloadEndpointStatusUpdate)
		return err == nil && is && update.GetId().GetWorkloadId() == "a" && update.GetStatus().GetStatus() == "up"
	})
	for i := range 5 {
		name := string(rune('b' + i))
		b.send(endpoint(name, "cali"+name, 2+i))
		if err := b.flush(); err != nil {
			t.Fatal(err)
		}
		b.inspect(func() {
			if len(b.chains("cali-fw-cali"+name)) == 0 {
				t.Errorf("%s is not there after the flush", name)
			}
		})
	}
	b.send(gone("a"))
	eventually(t, "status removed", func() bool {
		msg, err := b.d.RecvMessage()
		_, is := msg.(*proto.WorkloadEndpointStatusRemove)
		return err == nil && is
	})
}

func TestFlushFailsWithTheApply(t *testing.T) {
	b := newBench(t, both)
	b.fake.Fail = func() error { return errors.New("no luck") }
	b.start()
	b.send(&proto.InSync{})
	if err := b.flush(); err == nil || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("flush: %v, want the apply's error", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.d.Flush(ctx); !errors.Is(err, context.Canceled) && (err == nil || !strings.Contains(err.Error(), "no luck")) {
		t.Errorf("flush with a context that is over: %v", err)
	}
}

func TestFailedApplyIsTriedAgain(t *testing.T) {
	b := newBench(t, both)
	var fail atomic.Bool
	fail.Store(true)
	b.fake.Fail = func() error {
		if fail.Load() {
			return errors.New("no luck")
		}
		return nil
	}
	b.start()
	b.send(openProfile(), endpoint("a", "calia", 1), &proto.InSync{})
	_ = b.flush()
	fail.Store(false)
	eventually(t, "applied without a message", func() bool {
		done := false
		b.inspect(func() { done = len(b.chains("cali-fw-calia")) > 0 })
		return done
	})
}

func TestRefreshIntervals(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*Config)
		done func(*bench) bool
	}{
		"IPSetsRefreshInterval": {func(c *Config) { c.IPSetsRefreshInterval = 20 * time.Millisecond },
			func(b *bench) bool { return b.fake.Resyncs >= 2 }},
		"IptablesRefreshInterval": {func(c *Config) { c.IptablesRefreshInterval = 20 * time.Millisecond },
			func(b *bench) bool { return b.fake.Resyncs >= 2 }},
		"RouteRefreshInterval": {func(c *Config) { c.RouteRefreshInterval = 20 * time.Millisecond },
			func(b *bench) bool { return b.routes[4].resyncs >= 2 && b.routes[6].resyncs >= 2 }},
	} {
		config := both
		c.set(&config)
		b := newBench(t, config)
		b.start()
		b.send(&proto.InSync{})
		eventually(t, name, func() bool {
			done := false
			b.inspect(func() { done = c.done(b) })
			return done
		})
	}
	b := newBench(t, both)
	b.start()
	b.send(&proto.InSync{})
	time.Sleep(200 * time.Millisecond)
	b.inspect(func() {
		if b.fake.Resyncs+b.routes[4].resyncs > 0 {
			t.Error("refreshed although all intervals are 0")
		}
	})
}

func TestCallbacksHealthAndProcessStatus(t *testing.T) {
	var restarts, synced atomic.Int32
	config := both
	config.PostInSyncCallback = func() { synced.Add(1) }
	config.ConfigChangedRestartCallback = func() { restarts.Add(1) }
	config.HealthAggregator = health.NewHealthAggregator()
	b := newBench(t, config)
	b.start()
	if config.HealthAggregator.Summary().Ready {
		t.Error("ready before the first apply")
	}
	b.send(&proto.InSync{})
	if err := b.flush(); err != nil {
		t.Fatal(err)
	}
	b.send(endpoint("a", "calia", 1))
	if err := b.flush(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "ready", func() bool { s := config.HealthAggregator.Summary(); return s.Ready && s.Live })
	if synced.Load() != 1 {
		t.Errorf("PostInSyncCallback was called %d times", synced.Load())
	}
	b.monitor.updates <- ifUp(KubeIPVSInterface, 9)
	eventually(t, "ConfigChangedRestartCallback", func() bool { return restarts.Load() == 1 })
}

func TestRegisteredManagerGetsAllMessages(t *testing.T) {
	b := newBench(t, both)
	m := &listener{}
	b.d.RegisterManager(m)
	b.start()
	b.send(&proto.InSync{}, ipSet("s", "10.0.0.1"))
	if err := b.flush(); err != nil {
		t.Fatal(err)
	}
	b.inspect(func() {
		if m.completed == 0 || !slices.ContainsFunc(m.heard, func(msg any) bool { _, is := msg.(*proto.IPSetUpdate); return is }) {
			t.Errorf("completed %d times, heard %v", m.completed, m.heard)
		}
	})
}

type listener struct {
	heard     []any
	completed int
}

func (l *listener) OnUpdate(msg any) { l.heard = append(l.heard, msg) }
func (l *listener) CompleteDeferredWork() error {
	l.completed++
	return nil
}

func TestLooseReversePath(t *testing.T) {
	config := both
	config.HealthAggregator = health.NewHealthAggregator()
	b := newBench(t, config)
	b.sysctls.values["net/ipv4/conf/all/rp_filter"] = "2"
	b.start()
	if err := b.d.SendMessage(&proto.InSync{}); err == nil || !strings.Contains(err.Error(), "rp_filter") {
		t.Errorf("SendMessage: %v, want an error about rp_filter", err)
	}
	if s := config.HealthAggregator.Summary(); s.Live || s.Ready {
		t.Errorf("health: %+v, want neither live nor ready", s)
	}
	config.IgnoreLooseRPF = true
	b = newBench(t, config)
	b.sysctls.values["net/ipv4/conf/all/rp_filter"] = "2"
	b.start()
	b.send(&proto.InSync{})
	if err := b.flush(); err != nil {
		t.Errorf("with IgnoreLooseRPF: %v", err)
	}
}

func TestBadConfig(t *testing.T) {
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	defer slog.SetDefault(before)
	for field, spoil := range map[string]func(*Config){
		"IPIPMTU":                       func(c *Config) { c.IPIPMTU = 5 },
		"MaxIPSetSize":                  func(c *Config) { c.MaxIPSetSize = -1 },
		"IptablesInsertMode":            func(c *Config) { c.IptablesInsertMode = "prepend" },
		"NetlinkTimeout":                func(c *Config) { c.NetlinkTimeout = -1 },
		"ExternalNodesCidrs[1]":         func(c *Config) { c.ExternalNodesCidrs = []string{"10.0.0.0/8", "x"} },
		"RulesConfig.IptablesMarkPass":  func(c *Config) { c.RulesConfig.IptablesMarkAccept = 1 },
		"RulesConfig.VXLANPort":         func(c *Config) { c.RulesConfig.VXLANPort = -1 },
		"RulesConfig.FailsafeInboundHo": func(c *Config) { c.RulesConfig.FailsafeInboundHostPorts = []rules.ProtoPort{{}} },
	} {
		config := Config{HealthAggregator: health.NewHealthAggregator()}
		spoil(&config)
		if _, err := New(config, Options{Backend: rulestest.New()}); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: New returned %v", field, err)
		}
		d := NewIntDataplaneDriver(config)
		d.RegisterManager(&listener{})
		d.Start()
		if err := d.SendMessage(&proto.InSync{}); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: SendMessage returned %v", field, err)
		}
		if _, err := d.RecvMessage(); err == nil {
			t.Errorf("%s: RecvMessage returned no error", field)
		}
		if s := config.HealthAggregator.Summary(); s.Live || s.Ready || !strings.Contains(s.Detail, field) {
			t.Errorf("%s: health %+v", field, s)
		}
		if err := errors.Join(d.Stop(context.Background())); err != nil {
			t.Errorf("%s: Stop returned %v", field, err)
		}
		if d.Uninstall(context.Background()) == nil {
			t.Errorf("%s: Uninstall says that it worked", field)
		}
		if _, err := d.Dump(); err == nil {
			t.Errorf("%s: Dump returned no error", field)
		}
	}
}

func TestRuleRendererOverride(t *testing.T) {
	config := both
	render, err := rules.NewRenderer(rules.Config{EndpointToHostAction: "ACCEPT"})
	if err != nil {
		t.Fatal(err)
	}
	config.RuleRendererOverride = render
	b := newBench(t, config)
	b.must(openProfile(), endpoint("a", "calia", 1))
	b.expect("the override's rules", packet("calia", "", "10.65.0.1", "192.0.2.1", 80), "accept")
}

func TestMaxIPSetSizeReachesTheBackend(t *testing.T) {
	config := both
	config.MaxIPSetSize = 1234
	b := newBench(t, config)
	b.must(ipSet("s", "10.0.0.1"))
	if text := b.fake.Dump()["set v4 s"]; !strings.Contains(text, "max 1234") {
		t.Errorf("%s", text)
	}
}

func TestRestartWritesNothing(t *testing.T) {
	msgs := change(nil, scenarios()["nodes"][0], newRandom())
	b := newBench(t, permuted)
	b.must(msgs...)
	again := newBenchOn(t, permuted, b.fake.Restart())
	again.must(msgs...)
	if again.fake.Writes != 0 {
		t.Errorf("a restart wrote %d objects: %v", again.fake.Writes, again.fake.Order)
	}
	if again.fake.Text() != b.fake.Text() {
		t.Errorf("a restart differs:\n%s", difference(b.fake.Text(), again.fake.Text()))
	}
}

func TestUninstall(t *testing.T) {
	b := newBench(t, permuted)
	b.start()
	b.send(append(change(nil, scenarios()["nodes"][0], newRandom()), &proto.InSync{})...)
	if err := b.flush(); err != nil {
		t.Fatal(err)
	}
	if err := b.d.Uninstall(context.Background()); err != nil {
		t.Fatal(err)
	}
	if left := b.fake.Text(); left != "" {
		t.Errorf("left in the kernel:\n%s", left)
	}
	for _, f := range []table.Family{4, 6} {
		if text := b.routes[f].text(); text != "" {
			t.Errorf("routes left: %s", text)
		}
	}
	if len(b.vxlan.local)+len(b.vxlan.others) > 0 || b.vxlan.applied == 0 || !b.fake.Closed {
		t.Errorf("VXLAN %+v, backend closed %v", b.vxlan, b.fake.Closed)
	}
	if err := b.d.SendMessage(&proto.InSync{}); err == nil {
		t.Error("the driver still takes messages")
	}
	// A driver that never ran removes the objects of an earlier one.
	first := newBench(t, permuted)
	first.must(openProfile(), endpoint("a", "calia", 1))
	second := newBenchOn(t, permuted, first.fake.Restart())
	if err := second.d.Uninstall(context.Background()); err != nil || second.fake.Text() != "" {
		t.Errorf("%v, left:\n%s", err, second.fake.Text())
	}
}

func TestStopLeavesTheKernel(t *testing.T) {
	b := newBench(t, both)
	b.start()
	b.send(openProfile(), endpoint("a", "calia", 1), &proto.InSync{})
	if err := b.flush(); err != nil {
		t.Fatal(err)
	}
	before := b.fake.Text()
	if err := b.d.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if b.fake.Text() != before || len(b.routes[4].kernel) == 0 {
		t.Error("Stop changed the kernel")
	}
	if err := b.d.SendMessage(&proto.InSync{}); err == nil {
		t.Error("SendMessage after Stop: no error")
	}
}

func TestDump(t *testing.T) {
	b := newBench(t, both)
	if _, err := b.d.Dump(); err == nil {
		t.Error("Dump before Start: no error")
	}
	b.routes[4].fail = errors.New("route 10.9.9.9/32 trouble")
	b.start()
	b.send(openProfile(), endpoint("a", "calia", 1), hostEndpoint("h", "eth9"), &proto.InSync{})
	if err := b.flush(); err != nil {
		t.Fatal(err)
	}
	dump, err := b.d.Dump()
	if err != nil {
		t.Fatal(err)
	}
	if dump.Backend != "fake" || len(dump.Endpoints) != 4 || dump.Writes == 0 || !strings.Contains(strings.Join(dump.Errors,
		""), "trouble") {
		t.Errorf("%+v", dump)
	}
	if e := dump.Endpoints[2]; e.ID != "k8s/a/eth0" || e.Interface != "calia" || e.Status != "down" ||
		!strings.Contains(e.Reason, "not up") {
		t.Errorf("%+v", e)
	}
}

func TestHangSimulation(t *testing.T) {
	config := both
	config.DebugSimulateDataplaneHangAfter = 20 * time.Millisecond
	b := newBench(t, config)
	b.d.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		_ = b.d.loop.Stop(ctx) // it hangs, as simulated
	})
	b.send(&proto.InSync{})
	eventually(t, "a flush without an answer", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		return errors.Is(b.d.Flush(ctx), context.DeadlineExceeded)
	})
}

func TestProcessStatusInterval(t *testing.T) {
	if got := (&InternalDataplane{config: Config{StatusReportingInterval: 7 * time.Second}, options: Options{Log: slog.Default()},
		parts: parts{monitor: &fakeMonitor{}}}).loopConfig().StatusReportingInterval; got != 7*time.Second {
		t.Errorf("the loop reports every %s", got)
	}
}
