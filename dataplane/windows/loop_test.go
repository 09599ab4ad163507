package windataplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/driver"
	"contiv.dev/vswitch/dataplane/driver/epstate"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
)

// running is a driver whose loop runs.
type running struct {
	*bench
	mu   sync.Mutex
	last map[string]string // guarded by mu; the status of each workload as received
	got  int               // guarded by mu; messages received
	beat atomic.Int32      // ProcessStatusUpdates
}

func (b *bench) start() *running {
	b.t.Helper()
	r := &running{bench: b, last: map[string]string{}}
	b.d.statuses.queue = b.d.loop.QueueStatus
	b.d.Start()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			msg, err := b.d.RecvMessage()
			if err != nil {
				return
			}
			r.take(msg)
		}
	}()
	b.t.Cleanup(func() {
		b.host.Hook(nil)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := b.d.Stop(ctx); err != nil && b.d.config.DebugSimulateDataplaneHangAfter == 0 {
			b.t.Errorf("stop: %v", err)
		}
		<-done
	})
	return r
}

func (r *running) take(msg any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got++
	switch msg := msg.(type) {
	case *proto.WorkloadEndpointStatusUpdate:
		r.last[msg.GetId().GetWorkloadId()] = msg.GetStatus().GetStatus()
	case *proto.WorkloadEndpointStatusRemove:
		delete(r.last, msg.GetId().GetWorkloadId())
	case *proto.ProcessStatusUpdate:
		r.beat.Add(1)
	}
}

func (r *running) received(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[name]
}

func (r *running) send(msgs ...any) {
	r.t.Helper()
	for _, msg := range msgs {
		r.runtime(msg)
		if err := r.d.SendMessage(msg); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *running) flush() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return r.d.Flush(ctx)
}

// quickBench returns a bench whose driver has short retry intervals and timeouts.
func quickBench(t testing.TB, config Config, host *hnsmem.Host, change ...func(*Options)) *bench {
	t.Helper()
	config.Hostname = "node1"
	options := Options{HCN: host.V2(), Log: slog.New(slog.DiscardHandler), RetryInterval: 50 * time.Millisecond,
		CallTimeout: 100 * time.Millisecond, HostInterval: 20 * time.Millisecond,
		HostAddresses: func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil }}
	for _, f := range change {
		f(&options)
	}
	d, err := New(host.V1(), config, options)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, d: d, host: host, pods: map[string]string{}, status: map[any]string{}}
}

func TestNothingIsWrittenBeforeInSync(t *testing.T) {
	var known atomic.Bool
	b := quickBench(t, both, newHost(t, hcn.L2Bridge), func(o *Options) {
		o.HostAddresses = func() ([]netip.Addr, error) {
			if !known.Load() {
				return nil, errors.New("not yet")
			}
			return nil, nil
		}
	})
	r := b.start()
	r.send(openProfile(), endpoint("a", 1))
	silent := func(when string) {
		t.Helper()
		time.Sleep(100 * time.Millisecond)
		if calls := b.host.Calls(); len(calls) > 0 {
			t.Errorf("%s: %v", when, calls)
		}
	}
	silent("before InSync")
	r.send(&proto.InSync{})
	silent("before the node's own addresses are known")
	known.Store(true)
	if err := r.flush(); err != nil {
		t.Fatal(err)
	}
	b.expect("then", "a", packet("1.1.1.1", "10.65.0.1", 80), true)
	eventually(t, "status", func() bool { return r.received("a") == "up" })
}

// TestHangingCall: a call for one endpoint that hangs times out, other endpoints continue, the status reports it, and there is no second call
// for the endpoint until the first one has ended. Then it gets what is desired at that time.
func TestHangingCall(t *testing.T) {
	b := quickBench(t, both, newHost(t, hcn.L2Bridge))
	r := b.start()
	r.send(openProfile(), endpoint("a", 1), endpoint("b", 2), &proto.InSync{})
	if err := r.flush(); err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	var hanging atomic.Int32
	b.host.Hook(func(c hnsmem.Call) error {
		if c.Op == "ApplyACLs" && c.ID == b.pods["a"] {
			hanging.Add(1)
			<-release
		}
		return nil
	})
	r.send(policy("p", tcpPort("allow", 80)), endpoint("a", 1, withTiers(ingress("p"))), endpoint("b", 2, withTiers(ingress("p"))))
	if err := r.flush(); err != nil {
		t.Errorf("a fault of one endpoint affects the others: %v", err)
	}
	eventually(t, "status error", func() bool { return r.received("a") == "error" })
	if c, _ := b.d.Status(wlID("a")); !strings.Contains(c.Reason, "does not respond") {
		t.Errorf("%+v", c)
	}
	eventually(t, "the other is up", func() bool { return r.received("b") == "up" })
	b.expect("the other", "b", packet("1.1.1.1", "10.65.0.2", 81), false)
	time.Sleep(200 * time.Millisecond) // several retries
	if n := hanging.Load(); n != 1 {
		t.Errorf("%d calls for an endpoint whose first call hangs", n)
	}
	r.send(policy("p", tcpPort("allow", 90)))
	if err := r.flush(); err != nil {
		t.Error(err)
	}
	close(release)
	eventually(t, "up again", func() bool { return r.received("a") == "up" })
	b.expect("what is desired now", "a", packet("1.1.1.1", "10.65.0.1", 90), true)
	b.expect("what was desired when the call hung", "a", packet("1.1.1.1", "10.65.0.1", 80), false)
}

// TestHNSThatHangs: if the list call itself hangs, the apply fails, the loop stays live, and the driver recovers when HNS answers again.
func TestHNSThatHangs(t *testing.T) {
	b := quickBench(t, both, newHost(t, hcn.L2Bridge))
	r := b.start()
	release := make(chan struct{})
	b.host.Hook(func(c hnsmem.Call) error {
		<-release
		return nil
	})
	r.send(openProfile(), endpoint("a", 1), &proto.InSync{})
	if err := r.flush(); err == nil || !strings.Contains(err.Error(), "does not respond") {
		t.Errorf("flush: %v", err)
	}
	close(release)
	eventually(t, "up", func() bool { return r.received("a") == "up" })
}

// TestNoStatusIsLost: with random failures and endpoints that are added, removed and vanish, the last status that is received for each
// workload is its current one; and the driver continues while no status is read.
func TestNoStatusIsLost(t *testing.T) {
	b := quickBench(t, both, newHost(t, hcn.L2Bridge))
	var n atomic.Int32
	b.host.Hook(func(c hnsmem.Call) error {
		if k := n.Add(1); k%3 == 0 && c.Op == "ApplyACLs" {
			return errors.New("no luck")
		} else if k%17 == 0 {
			time.Sleep(150 * time.Millisecond) // longer than the limit
		}
		return nil
	})
	b.d.statuses.queue = b.d.loop.QueueStatus
	b.d.Start()
	r := &running{bench: b, last: map[string]string{}}
	r.send(openProfile(), &proto.InSync{})
	for i := range 300 { // without a reader
		name := fmt.Sprintf("w%d", i%20)
		switch i % 7 {
		case 3:
			b.host.Vanish(b.pods[name])
			delete(b.pods, name)
		case 5:
			r.send(gone(name))
		default:
			r.send(policy("p", tcpPort("allow", int32(i+1))), endpoint(name, i%20+1, withTiers(ingress("p"))))
		}
	}
	b.host.Hook(nil)
	left := 20
	for i := range 20 {
		name := fmt.Sprintf("w%d", i)
		if b.pods[name] == "" && i%2 == 0 {
			r.send(gone(name))
			left--
		} else {
			r.send(endpoint(name, i+1))
		}
	}
	want := map[string]string{}
	eventually(t, "settled", func() bool {
		clear(want)
		for key, c := range b.d.statuses.all() {
			want[key.(epstate.WorkloadID).Workload] = c.Status
			if c.Status != "up" {
				return false
			}
		}
		return len(want) == left
	})
	if err := r.flush(); err != nil {
		t.Fatal(err)
	}
	if err := b.d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	for {
		msg, err := b.d.RecvMessage()
		if err != nil {
			break
		}
		r.take(msg)
	}
	for name, status := range want {
		if r.last[name] != status {
			t.Errorf("%s: received %q, and it is %q", name, r.last[name], status)
		}
	}
	if len(r.last) != len(want) {
		t.Errorf("received %v, want %v", r.last, want)
	}
}

// TestExpedite: an endpoint that appears in HNS while a caller waits for it is found soon, not after RetryInterval.
func TestExpedite(t *testing.T) {
	b := quickBench(t, both, newHost(t, hcn.L2Bridge), func(o *Options) { o.RetryInterval = time.Hour })
	b.noPods = true
	r := b.start()
	r.send(openProfile(), endpoint("a", 1), &proto.InSync{})
	if err := r.flush(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "down", func() bool { return r.received("a") == "down" })
	n, _ := b.host.Network("contiv")
	e, err := b.host.V2().CreateEndpoint(hcn.Endpoint{Name: "a", HostComputeNetwork: n.ID,
		IPConfigurations: []hcn.IPConfig{{IPAddress: "10.65.0.1", PrefixLength: 16}}})
	if err != nil {
		t.Fatal(err)
	}
	ns, err := b.host.V2().CreateNamespace(hcn.Namespace{Type: hcn.NamespaceGuest})
	if err != nil {
		t.Fatal(err)
	}
	release := b.d.Expedite()
	defer release()
	time.Sleep(50 * time.Millisecond)
	if r.received("a") != "down" {
		t.Error("an endpoint that no container can have yet is up")
	}
	if err := b.host.V2().AttachEndpoint(ns.ID, e.ID); err != nil {
		t.Fatal(err)
	}
	eventually(t, "up", func() bool { return r.received("a") == "up" })
}

func TestStop(t *testing.T) {
	b := quickBench(t, both, newHost(t, hcn.L2Bridge))
	r := b.start()
	r.send(openProfile(), endpoint("a", 1), &proto.InSync{})
	if err := r.flush(); err != nil {
		t.Fatal(err)
	}
	b.host.Calls()
	if err := b.d.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w := b.writes(); len(w) > 0 {
		t.Errorf("Stop wrote %v", w)
	}
	b.expect("traffic goes on", "a", packet("1.1.1.1", "10.65.0.1", 80), true)
	if err := b.d.SendMessage(&proto.InSync{}); !errors.Is(err, driver.ErrStopped) {
		t.Errorf("SendMessage: %v", err)
	}
}

func TestRegisteredManagerGetsAllMessages(t *testing.T) {
	b := quickBench(t, both, newHost(t, hcn.L2Bridge))
	m := &listener{}
	b.d.RegisterManager(m)
	r := b.start()
	r.send(ipSet("s", "10.0.0.1"), &proto.InSync{})
	if err := r.flush(); err != nil {
		t.Fatal(err)
	}
	if err := b.d.loop.Inspect(func() {
		if m.completed == 0 || len(m.heard) < 2 {
			t.Errorf("completed %d times, heard %v", m.completed, m.heard)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// TestManagerReachesSetsAndPolicies: a registered manager makes sets and policies from its own messages, in its OnUpdate or later.
func TestManagerReachesSetsAndPolicies(t *testing.T) {
	b := quickBench(t, both, newHost(t, hcn.L2Bridge))
	b.d.RegisterManager(&outsider{d: b.d})
	r := b.start()
	r.send(openProfile(), endpoint("a", 1, withTiers(ingress("outside")), func(ep *proto.WorkloadEndpoint) { ep.ProfileIds = []string{"outside"} }),
		&proto.InSync{}, "from 198.51.100.1")
	if err := r.flush(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "up", func() bool { return r.received("a") == "up" })
	b.expect("member", "a", packet("198.51.100.1", "10.65.0.1", 80), true)
	b.expect("another", "a", packet("198.51.100.2", "10.65.0.1", 80), false)
	r.send("from 198.51.100.2")
	if err := r.flush(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "added in deferred work", func() bool { return b.allowed("a", hns.In, packet("198.51.100.2", "10.65.0.1", 80)) })
}

// outsider is a manager that has a policy and a set; its own messages contain the set's members.
type outsider struct {
	d       *WindowsDataplane
	made    bool
	members []string
}

func (o *outsider) OnUpdate(msg any) {
	if text, is := msg.(string); is {
		o.members = append(o.members, strings.TrimPrefix(text, "from "))
	}
	if !o.made {
		o.made = true
		o.d.IPSets().AddOrReplaceIPSet("outside", proto.IPSetUpdate_IP, nil)
		o.d.PolicySets().AddOrReplacePolicy(&proto.PolicyID{Tier: "default", Name: "outside"},
			&proto.Policy{InboundRules: []*proto.Rule{fromSet("allow", "outside")}})
		o.d.PolicySets().AddOrReplaceProfile("outside", &proto.Profile{})
	}
}

func (o *outsider) CompleteDeferredWork() error {
	if len(o.members) > 0 {
		o.d.IPSets().AddMembers("outside", o.members)
		o.members = nil
	}
	return nil
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
