package kube

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	npapi "sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/test/testbed/poll"
)

// loop is an event loop that records events, and checks that each change begins with the value at which the last one ended.
type loop struct {
	t *testing.T

	mu      sync.Mutex
	full    bool
	state   map[string]proto.Message
	events  []string
	resyncs []*api.DBResync
	news    chan struct{}
}

func newLoop(t *testing.T) *loop { return &loop{t: t, news: make(chan struct{}, 1)} }

func (l *loop) PushEvent(event api.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full {
		return api.ErrQueueFull
	}
	switch ev := event.(type) {
	case *api.DBResync:
		l.state = map[string]proto.Message{}
		for resource, kvs := range ev.KubeState {
			for key, value := range kvs {
				if model.KeywordOf(key) != resource {
					l.t.Errorf("%s is among %s", key, resource)
				}
				l.state[key] = value
			}
		}
		l.resyncs = append(l.resyncs, ev)
		l.events = append(l.events, fmt.Sprintf("resync local=%t", ev.Local))
	case *api.KubeStateChange:
		if l.state == nil {
			l.t.Errorf("%s before the first resync", ev)
			return nil
		}
		if !equal(l.state[ev.Key], ev.PrevValue) {
			l.t.Errorf("%s: previous value is %v, it was told to be %v", ev.Key, ev.PrevValue, l.state[ev.Key])
		}
		if ev.NewValue == nil {
			delete(l.state, ev.Key)
		} else {
			l.state[ev.Key] = ev.NewValue
		}
		l.events = append(l.events, strings.TrimPrefix(ev.String(), "Kubernetes State Change: "))
	}
	select {
	case l.news <- struct{}{}:
	default:
	}
	return nil
}

// await waits until the condition holds for the events so far.
func (l *loop) await(what string, cond func(events []string, state map[string]proto.Message) bool) {
	l.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		l.mu.Lock()
		ok := cond(l.events, l.state)
		events := slices.Clone(l.events)
		l.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-l.news:
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			l.t.Fatalf("waited in vain for %s; events: %q", what, events)
		}
	}
}

func (l *loop) awaitKey(key string) proto.Message {
	l.t.Helper()
	l.await(key, func(_ []string, s map[string]proto.Message) bool { return s[key] != nil })
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state[key]
}

func (l *loop) awaitGone(key string) {
	l.t.Helper()
	l.await(key+" gone", func(_ []string, s map[string]proto.Message) bool { return s != nil && s[key] == nil })
}

// take returns the events and clears the record.
func (l *loop) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.events
	l.events = nil
	return out
}

func (l *loop) setFull(full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.full = full
}

// copyInMemory is a local copy in memory.
type copyInMemory struct {
	mu     sync.Mutex
	values map[string][]byte
	writes int
	fail   error
}

func (c *copyInMemory) Load() (map[string][]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.values), c.fail
}

func (c *copyInMemory) Apply(changes map[string][]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		return c.fail
	}
	if c.values == nil {
		c.values = map[string][]byte{}
	}
	for k, v := range changes {
		c.writes++
		if v == nil {
			delete(c.values, k)
		} else {
			c.values[k] = v
		}
	}
	return nil
}

func (c *copyInMemory) written() (int, map[string][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes, maps.Clone(c.values)
}

type rig struct {
	*Source
	api  *fakeAPI
	loop *loop
	stop func()
}

// run starts a source on a fake server.
func run(t *testing.T, f *fakeAPI, change func(*Deps)) *rig {
	t.Helper()
	l := newLoop(t)
	deps := Deps{
		Client: f.client(), Events: l, Log: slog.New(slog.DiscardHandler), LocalDelay: 10 * time.Second,
		SaveInterval: 20 * time.Millisecond,
	}
	if change != nil {
		change(&deps)
	}
	s, err := NewSource(deps)
	if err != nil {
		t.Fatal(err)
	}
	jobs := lifecycle.NewGroup(context.Background(), deps.Log)
	s.Start(jobs)
	var once sync.Once
	stop := func() {
		once.Do(func() {
			if err := jobs.Stop(20 * time.Second); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return &rig{Source: s, api: f, loop: l, stop: stop}
}

func pod(name, ip string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: "n1"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}},
	}
}

func podKey(name string) string { return model.Key(model.PodKeyword, "default", name) }

func TestSnapshotThenChanges(t *testing.T) {
	for _, streams := range []bool{true, false} {
		t.Run(fmt.Sprintf("streams=%t", streams), func(t *testing.T) {
			f := newFakeAPI(t)
			f.StreamLists(streams)
			f.put(pod("a", "10.1.0.1"))
			f.put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
			f.put(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}})
			f.put(&discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{
					Name: "s-1", Namespace: "default", Labels: map[string]string{discoveryv1.LabelServiceName: "s"},
				},
				AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1"}}},
			})
			r := run(t, f, nil)
			if ip := r.loop.awaitKey(podKey("a")).(*model.Pod).Ips[0]; ip != "10.1.0.1" {
				t.Errorf("address %s", ip)
			}
			if got := r.loop.take(); !slices.Equal(got, []string{"resync local=false"}) {
				t.Fatalf("events %q", got)
			}
			if n := r.loop.resyncs[0].KubeState; len(n) != 8 || len(n["endpointslice"]) != 1 ||
				len(n["policy"]) != 1 || len(n["node"]) != 1 {
				t.Errorf("snapshot %v", n)
			}

			f.put(pod("b", "10.1.0.2"))
			r.loop.awaitKey(podKey("b"))
			f.put(pod("a", "10.1.0.9"))
			r.loop.await("new address", func(_ []string, s map[string]proto.Message) bool {
				return s[podKey("a")].(*model.Pod).Ips[0] == "10.1.0.9"
			})
			f.remove(pod("b", ""))
			r.loop.awaitGone(podKey("b"))
			want := []string{podKey("b") + " added", podKey("a") + " changed", podKey("b") + " deleted"}
			if got := r.loop.take(); !slices.Equal(got, want) {
				t.Errorf("events %q, want %q", got, want)
			}
			if synced, missing := r.Synced(); !synced {
				t.Errorf("missing %q", missing)
			}
		})
	}
}

// TestMeaninglessChanges checks that a node's heartbeat or a pod's readiness causes no event.
func TestMeaninglessChanges(t *testing.T) {
	f := newFakeAPI(t)
	f.put(pod("a", "10.1.0.1"))
	r := run(t, f, nil)
	r.loop.awaitKey(podKey("a"))
	r.loop.take()
	for i := range 5 {
		p := pod("a", "10.1.0.1")
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Message: strings.Repeat("x", i)}}
		p.Annotations = map[string]string{"not": strings.Repeat("kept", i)}
		f.put(p)
	}
	f.put(pod("b", "10.1.0.2")) // after all of these
	r.loop.awaitKey(podKey("b"))
	if got := r.loop.take(); !slices.Equal(got, []string{podKey("b") + " added"}) {
		t.Errorf("events %q", got)
	}
}

// TestBrokenWatch checks that a broken watch continues at its last revision, without a new list; nothing is lost and nothing repeated.
func TestBrokenWatch(t *testing.T) {
	f := newFakeAPI(t)
	f.put(pod("a", "10.1.0.1"))
	r := run(t, f, nil)
	r.loop.awaitKey(podKey("a"))
	f.put(pod("b", "10.1.0.2"))
	r.loop.awaitKey(podKey("b"))
	r.loop.take()
	f.ResetRequests()
	f.Fail(http.StatusTooManyRequests)
	f.BreakWatches()
	f.put(pod("c", "10.1.0.3"))
	f.remove(pod("a", ""))
	f.Fail(0)
	r.loop.awaitKey(podKey("c"))
	r.loop.awaitGone(podKey("a"))
	if got := r.loop.take(); !slices.Equal(got, []string{podKey("c") + " added", podKey("a") + " deleted"}) {
		t.Errorf("events %q", got)
	}
	if lists, _, _ := f.Queried("pods"); lists != 0 {
		t.Errorf("%d new lists", lists)
	}
}

// TestExpiredWatch checks the case that the history from which the watch would continue has been discarded (410), including deletions
// that no watch has reported. A new list becomes exactly the differences.
func TestExpiredWatch(t *testing.T) {
	for _, streams := range []bool{true, false} {
		t.Run(fmt.Sprintf("streams=%t", streams), func(t *testing.T) {
			f := newFakeAPI(t)
			f.StreamLists(streams)
			for _, name := range []string{"a", "b", "c"} {
				f.put(pod(name, "10.1.0.1"))
			}
			r := run(t, f, nil)
			r.loop.awaitKey(podKey("c"))
			r.loop.take()
			f.Fail(http.StatusServiceUnavailable)
			f.BreakWatches()
			f.remove(pod("a", ""))
			f.put(pod("b", "10.1.0.77"))
			f.put(pod("d", "10.1.0.4"))
			f.Compact()
			f.Fail(0)
			r.loop.awaitKey(podKey("d"))
			r.loop.awaitGone(podKey("a"))
			got := r.loop.take()
			slices.Sort(got)
			want := []string{podKey("a") + " deleted", podKey("b") + " changed", podKey("d") + " added"}
			if !slices.Equal(got, want) {
				t.Errorf("events %q, want %q", got, want)
			}
			poll.Succeeds(t, "connection", 20*time.Second, r.Connected) // the other resources recover at different times
		})
	}
}

// TestManyChangesAreOneResync checks that pending changes above the limit are replaced by one snapshot.
func TestManyChangesAreOneResync(t *testing.T) {
	f := newFakeAPI(t)
	f.put(pod("a", "10.1.0.1"))
	r := run(t, f, func(d *Deps) { d.ResyncAbove = 20 })
	r.loop.awaitKey(podKey("a"))
	r.loop.take()
	r.loop.setFull(true)
	for i := range 50 {
		f.put(pod(fmt.Sprint("p", i), "10.1.0.1"))
	}
	poll.Await(t, "all pods", 20*time.Second, func() bool { return len(r.Source.mirror.snapshot().Values(model.PodKeyword)) >= 51 })
	r.loop.setFull(false)
	r.loop.awaitKey(podKey("p49"))
	// The job may have delivered some of the first changes already, or have delivered the resync before the last changes arrive.
	if got := r.loop.take(); !slices.Contains(got, "resync local=false") || len(got) > 2+20 {
		t.Errorf("%d events %q, want a resync in place of most", len(got), got)
	}
}

// TestFullQueue checks that changes that cannot be delivered wait, and that changes of one object become one.
func TestFullQueue(t *testing.T) {
	f := newFakeAPI(t)
	f.put(pod("a", "10.1.0.1"))
	r := run(t, f, nil)
	r.loop.awaitKey(podKey("a"))
	r.loop.take()
	r.loop.setFull(true)
	f.put(pod("first", "10.1.0.1")) // the delivering job holds this change
	for i := range 10 {
		f.put(pod("a", fmt.Sprint("10.1.1.", i)))
		f.put(pod("shortlived", "10.1.0.1"))
		f.remove(pod("shortlived", ""))
	}
	f.put(pod("last", "10.1.0.1"))
	poll.Await(t, "last pod", 20*time.Second, func() bool { return r.Source.mirror.snapshot().Values(model.PodKeyword)[podKey("last")] != nil })
	r.loop.setFull(false)
	r.loop.awaitKey(podKey("last"))
	got := r.loop.take()
	want := []string{podKey("first") + " added", podKey("a") + " changed", podKey("last") + " added"}
	// The job may have held some of these changes when the queue became full.
	if len(got) > len(want)+2 || got[len(got)-1] != want[2] {
		t.Errorf("events %q, want about %q", got, want)
	}
}

func TestAPIAwayAtStart(t *testing.T) {
	f := newFakeAPI(t)
	for _, name := range []string{"a", "b", "c"} {
		f.put(pod(name, "10.1.0.1"))
	}
	local := &copyInMemory{}
	withLocal := func(d *Deps) { d.Local, d.LocalDelay = local, 10*time.Millisecond }
	r := run(t, f, func(d *Deps) { withLocal(d); d.LocalDelay = 10 * time.Second })
	r.loop.awaitKey(podKey("c"))
	r.stop() // saves
	writes, values := local.written()
	if writes != 4 || values[podKey("a")] == nil { // the pods and their namespace
		t.Fatalf("%d writes, %d values", writes, len(values))
	}

	f.Fail(http.StatusServiceUnavailable)
	r = run(t, f, withLocal)
	r.loop.awaitKey(podKey("c"))
	if got := r.loop.take(); !slices.Equal(got, []string{"resync local=true"}) {
		t.Fatalf("events %q", got)
	}
	// The source may use the local copy before the first watch has failed.
	for end := time.Now().Add(20 * time.Second); r.Connected() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("connected to a server that is not there")
		}
	}
	f.remove(pod("a", ""))
	f.put(pod("d", "10.1.0.4"))
	f.Fail(0)
	r.loop.awaitKey(podKey("d"))
	r.loop.awaitGone(podKey("a"))
	got := r.loop.take()
	slices.Sort(got)
	if want := []string{podKey("a") + " deleted", podKey("d") + " added"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want the difference %q", got, want)
	}
	r.stop()
	if writes, values := local.written(); writes != 6 || values[podKey("a")] != nil || values[podKey("d")] == nil {
		t.Errorf("%d writes, values %v", writes, slices.Sorted(maps.Keys(values)))
	}

	r = run(t, f, func(d *Deps) { withLocal(d); d.LocalDelay = 10 * time.Second })
	r.loop.awaitKey(podKey("d"))
	r.stop()
	if writes, _ := local.written(); writes != 6 {
		t.Errorf("a restart with nothing changed wrote %d values", writes-6)
	}
}

// TestBoltCopy checks that the source works with the agent's real local copy, including a value that cannot be read.
func TestBoltCopy(t *testing.T) {
	f := newFakeAPI(t)
	f.put(pod("a", "10.1.0.1"))
	path := filepath.Join(t.TempDir(), "kube.db")
	open := func() *clusterdb.LocalCopy {
		local, err := clusterdb.OpenLocalCopy(path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return local
	}
	local := open()
	r := run(t, f, func(d *Deps) { d.Local = local })
	r.loop.awaitKey(podKey("a"))
	r.stop()
	if err := local.Apply(map[string][]byte{podKey("b"): {0xff}, "from/a/later/version": {1}}); err != nil {
		t.Fatal(err)
	}
	if err := local.Close(); err != nil {
		t.Fatal(err)
	}
	f.Fail(http.StatusServiceUnavailable)
	local = open()
	r = run(t, f, func(d *Deps) { d.Local, d.LocalDelay = local, time.Millisecond })
	r.loop.awaitKey(podKey("a"))
	if len(r.loop.state) != 2 || !r.loop.resyncs[0].Local {
		t.Errorf("state %v", r.loop.state)
	}
	r.stop()
	if err := local.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNoCopy checks that without a copy the agent waits, and starts as soon as the server answers.
func TestNoCopy(t *testing.T) {
	f := newFakeAPI(t)
	f.put(pod("a", "10.1.0.1"))
	f.Fail(http.StatusServiceUnavailable)
	r := run(t, f, func(d *Deps) { d.LocalDelay = time.Millisecond })
	time.Sleep(50 * time.Millisecond)
	if got := r.loop.take(); len(got) != 0 {
		t.Fatalf("events %q", got)
	}
	f.Fail(0)
	r.loop.awaitKey(podKey("a"))
}

// TestStopWhileAway checks that a reflector that waits for its next attempt ends at once; of five attempts most must do so, because other
// processes use this machine, too.
func TestStopWhileAway(t *testing.T) {
	for _, fromStart := range []bool{true, false} {
		var took []time.Duration
		for range 5 {
			took = append(took, stopWhileAway(t, fromStart))
		}
		slices.Sort(took)
		if took[2] > 300*time.Millisecond {
			t.Errorf("from the start: %t: stopping took %s", fromStart, took)
		}
	}
}

func stopWhileAway(t *testing.T, fromStart bool) time.Duration {
	t.Helper()
	f := newFakeAPI(t)
	if fromStart {
		f.Fail(http.StatusTooManyRequests)
	}
	r := run(t, f, nil)
	if !fromStart {
		r.loop.await("resync", func(ev []string, _ map[string]proto.Message) bool { return len(ev) == 1 })
		f.Fail(http.StatusTooManyRequests)
		f.BreakWatches()
	}
	poll.Await(t, "loss of the connection", 20*time.Second, func() bool { return r.Connected() != nil })
	start := time.Now()
	r.stop()
	return time.Since(start)
}

// TestOldServer checks that a server without ServiceCIDRs is accepted, and that a server that forbids pods is reported with the resource.
func TestOldServer(t *testing.T) {
	f := newFakeAPI(t)
	f.SetAbsent("servicecidrs", true)
	f.put(pod("a", "10.1.0.1"))
	r := run(t, f, nil)
	r.loop.awaitKey(podKey("a"))
	if err := r.Connected(); err != nil {
		t.Error(err)
	}
	f.SetAbsent("pods", true)
	r = run(t, f, nil)
	poll.Await(t, "loss of the connection", 20*time.Second, func() bool { return r.Connected() != nil })
	if err := r.Connected(); err == nil || !strings.Contains(err.Error(), "pods") {
		t.Errorf("connected: %v", err)
	}
}

// TestCustomResource checks that ClusterNetworkPolicies are watched as soon as the server has them, and are removed when the server no
// longer has them.
func TestCustomResource(t *testing.T) {
	const resource = "clusternetworkpolicies"
	f := newFakeAPI(t)
	f.SetAbsent(resource, true)
	policy := &npapi.ClusterNetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: npapi.ClusterNetworkPolicySpec{Tier: npapi.BaselineTier,
		Subject: npapi.ClusterNetworkPolicySubject{Namespaces: &metav1.LabelSelector{}}}}
	f.put(pod("a", "10.1.0.1"))
	f.put(policy)
	r := run(t, f, nil)
	r.loop.awaitKey(podKey("a"))
	if err := r.Connected(); err != nil {
		t.Error(err)
	}
	definition := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: resource + "." + npapi.GroupName}}
	f.put(definition) // as on a real server, the definition comes first
	time.Sleep(100 * time.Millisecond)
	f.SetAbsent(resource, false)
	key := model.Key(model.ClusterPolicyKeyword, "", "p")
	r.loop.awaitKey(key)
	policy.Spec.Priority = 7
	f.put(policy)
	has := func(what string, is func(p *model.ClusterPolicy) bool) {
		t.Helper()
		r.loop.await(what, func(_ []string, state map[string]proto.Message) bool {
			p, _ := state[key].(*model.ClusterPolicy)
			return is(p)
		})
	}
	has("the change", func(p *model.ClusterPolicy) bool {
		return p.GetPriority() == 7 && p.GetTier() == model.ClusterPolicy_BASELINE
	})
	f.SetAbsent(resource, true)
	if err := f.Delete(definition); err != nil {
		t.Fatal(err)
	}
	f.BreakWatches()
	has("the end", func(p *model.ClusterPolicy) bool { return p == nil })
	f.SetAbsent(resource, false)
	f.put(definition)
	has("the return", func(p *model.ClusterPolicy) bool { return p != nil })
	if err := r.Connected(); err != nil {
		t.Error(err)
	}
}

// TestSelectors checks that the server does not send objects that are not needed.
func TestSelectors(t *testing.T) {
	f := newFakeAPI(t)
	r := run(t, f, nil)
	r.loop.await("resync", func(ev []string, _ map[string]proto.Message) bool { return len(ev) == 1 })
	for resource, part := range map[string]string{
		"pods":           "fieldSelector=status.phase%21%3DSucceeded",
		"services":       "labelSelector=%21service.kubernetes.io%2Fservice-proxy-name",
		"endpointslices": "service.kubernetes.io%2Fheadless", "nodes": "allowWatchBookmarks=true",
	} {
		if _, _, query := f.Queried(resource); !strings.Contains(query, part) {
			t.Errorf("%s: query %s has no %s", resource, query, part)
		}
	}
}
