package policy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/infra"
	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/problem"
	"contiv.dev/vswitch/internal/servicelabel"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/podmanager"
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/renderer"
)

// textRenderer puts texts under short keys.
type textRenderer struct{}

func put(txn renderer.Txn, key, text string) { txn.Put(key, &kube.Namespace{Name: text}) }

func (textRenderer) Base(txn renderer.Txn)                { put(txn, "base", "") }
func (textRenderer) PutSet(s model.Set, txn renderer.Txn) { put(txn, "set "+s.Meaning, string(s.ID)) }
func (textRenderer) DeleteSet(id model.SetID, txn renderer.Txn) {
	s, is := txn.(*store)
	if !is {
		return // a transaction that discards changes
	}
	for key, m := range s.values {
		if strings.HasPrefix(key, "set ") && m.(*kube.Namespace).GetName() == string(id) {
			txn.Delete(key)
		}
	}
}

func (textRenderer) ChangeMembers(m model.Members, txn renderer.Txn) {
	for _, x := range m.Removed {
		txn.Delete(fmt.Sprint("member ", m.Set, " ", x.Net))
	}
	for _, x := range m.Added {
		put(txn, fmt.Sprint("member ", m.Set, " ", x.Net), "")
	}
}

func (textRenderer) PutPolicy(p model.Policy, txn renderer.Txn) {
	put(txn, "policy "+p.ID.Name, fmt.Sprint(len(p.Ingress), " ", len(p.Egress)))
}
func (textRenderer) DeletePolicy(id model.PolicyID, txn renderer.Txn) {
	txn.Delete("policy " + id.Name)
}

func (textRenderer) PutEndpoint(a *podmanager.Attachment, e model.Endpoint, txn renderer.Txn) {
	text := e.Ingress.Default.String() + " " + e.Egress.Default.String()
	for _, tier := range e.Ingress.Tiers {
		text += fmt.Sprint(" ", tier.Policies)
	}
	put(txn, "endpoint "+a.ID.ContainerID, text)
}
func (textRenderer) DeleteEndpoint(a *podmanager.Attachment, txn renderer.Txn) {
	txn.Delete("endpoint " + a.ID.ContainerID)
}

// store is the state of the dataplane, and its transaction.
type store struct{ values map[string]proto.Message }

func (s *store) Put(key string, m proto.Message) { s.values[key] = m }
func (s *store) Get(key string) proto.Message    { return s.values[key] }
func (s *store) Delete(key string)               { delete(s.values, key) }
func (s *store) text(key string) string          { return s.values[key].(*kube.Namespace).GetName() }
func (s *store) has(prefix string) (keys []string) {
	for key := range s.values {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// bench is a plugin with its environment.
type bench struct {
	t     *testing.T
	p     *Plugin
	dp    *store
	data  api.KubeStateData
	list  []*podmanager.Attachment
	log   bytes.Buffer
	users *reported
}

func (b *bench) LocalAttachments() []*podmanager.Attachment { return b.list }

func newBench(t *testing.T, change func(*Deps)) *bench {
	b := &bench{t: t, dp: &store{map[string]proto.Message{}}, users: &reported{now: map[string][]problem.Problem{}},
		data: api.KubeStateData{kube.PodKeyword: {}, kube.PolicyKeyword: {}, kube.ClusterPolicyKeyword: {}, kube.NamespaceKeyword: {}, kube.NodeKeyword: {}}}
	for _, ns := range []string{"ns", "other"} {
		b.data[kube.NamespaceKeyword][kube.Key(kube.NamespaceKeyword, "", ns)] = &kube.Namespace{Name: ns}
	}
	deps := Deps{PluginDeps: infra.PluginDeps{PluginName: "policy", Log: slog.New(slog.NewTextHandler(&b.log, nil))},
		ServiceLabel: servicelabel.Label("n1"), Problems: b.users, PodManager: b, Renderer: textRenderer{}, Kubernetes: true}
	if change != nil {
		change(&deps)
	}
	b.p = New(deps)
	b.resync()
	return b
}

func (b *bench) resync() {
	b.t.Helper()
	b.dp.values = map[string]proto.Message{}
	if err := b.p.Resync(api.NewDBResync(), b.data, 1, b.dp); err != nil {
		b.t.Fatal(err)
	}
}

// update handles an event, and checks that a resync gives the same result.
func (b *bench) update(ev api.Event) {
	b.t.Helper()
	if !b.p.HandlesEvent(ev) {
		b.t.Fatalf("does not handle %s", ev)
	}
	if _, err := b.p.Update(ev, b.dp); err != nil {
		b.t.Fatal(err)
	}
	updated := maps.Clone(b.dp.values)
	b.resync()
	if !maps.EqualFunc(updated, b.dp.values, func(x, y proto.Message) bool { return proto.Equal(x, y) }) {
		b.t.Errorf("after %s updates have built\n%v\na resync\n%v", ev, updated, b.dp.values)
	}
}

func (b *bench) set(keyword, ns, name string, m proto.Message) {
	b.t.Helper()
	key := kube.Key(keyword, ns, name)
	ev := &api.KubeStateChange{Resource: keyword, Key: key, PrevValue: b.data[keyword][key]}
	if m == nil {
		delete(b.data[keyword], key)
	} else {
		ev.NewValue = m
		b.data[keyword][key] = m
	}
	b.update(ev)
}

func (b *bench) pod(name, uid, ip string) {
	b.t.Helper()
	b.set(kube.PodKeyword, "ns", name, &kube.Pod{Namespace: "ns", Name: name, Uid: uid, Ips: []string{ip}})
}

func (b *bench) add(container, pod, uid string) *podmanager.AddPod {
	b.t.Helper()
	a := &podmanager.Attachment{ID: podmanager.AttachmentID{ContainerID: container, IfName: "eth0"}, PodUID: uid,
		Pod: podmanager.PodID{Namespace: "ns", Name: pod}, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}}
	b.list = append(b.list, a)
	ev := podmanager.NewAddPod(a)
	b.update(ev)
	return ev
}

func (b *bench) want(key, text string) {
	b.t.Helper()
	if _, has := b.dp.values[key]; !has {
		b.t.Errorf("there is no %q, but %v", key, b.dp.has(""))
	} else if got := b.dp.text(key); got != text {
		b.t.Errorf("%q is %q, want %q", key, got, text)
	}
}

func fromPods(name string) *kube.Policy {
	return &kube.Policy{Namespace: "ns", Name: name, Uid: name, Pods: &kube.LabelSelector{}, Ingress: true,
		IngressRules: []*kube.PolicyRule{{Peers: []*kube.PolicyPeer{{Pods: &kube.LabelSelector{}}}}}}
}

// TestLife checks that a pod is closed until its object is known, that policies can be added and removed, and that unused objects are deleted.
func TestLife(t *testing.T) {
	b := newBench(t, nil)
	b.add("c1", "web", "1")
	b.want("endpoint c1", "deny deny")
	b.pod("web", "1", "10.0.0.1")
	b.want("endpoint c1", "allow allow")
	b.set(kube.PolicyKeyword, "ns", "p", fromPods("p"))
	b.want("endpoint c1", "allow allow [NetworkPolicy ns/p]")
	b.pod("peer", "2", "10.0.0.2")
	if got := b.dp.has("member "); len(got) != 2 {
		t.Errorf("members %q", got)
	}
	b.set(kube.PolicyKeyword, "ns", "p", nil)
	b.want("endpoint c1", "allow allow")
	if got := b.dp.has(""); !slices.Equal(got, []string{"base", "endpoint c1"}) {
		t.Errorf("left %q", got)
	}
	b.detach(0)
	if got := b.dp.has(""); !slices.Equal(got, []string{"base"}) {
		t.Errorf("left %q", got)
	}
}

// TestSetComesBack checks that a set that was deleted and is needed again has its current members only.
func TestSetComesBack(t *testing.T) {
	b := newBench(t, nil)
	b.add("c1", "web", "1")
	b.pod("web", "1", "10.0.0.1")
	b.pod("peer", "2", "10.0.0.2")
	b.set(kube.PolicyKeyword, "ns", "p", fromPods("p"))
	key := kube.Key(kube.PolicyKeyword, "ns", "p")
	change := func(ev *api.KubeStateChange) {
		t.Helper()
		if _, err := b.p.Update(ev, b.dp); err != nil {
			t.Fatal(err)
		}
	}
	policy := b.data[kube.PolicyKeyword][key]
	change(&api.KubeStateChange{Resource: kube.PolicyKeyword, Key: key, PrevValue: policy})
	peer := kube.Key(kube.PodKeyword, "ns", "peer")
	change(&api.KubeStateChange{Resource: kube.PodKeyword, Key: peer, PrevValue: b.data[kube.PodKeyword][peer]})
	change(&api.KubeStateChange{Resource: kube.PolicyKeyword, Key: key, NewValue: policy})
	if got := b.dp.has("member "); len(got) != 1 || !strings.Contains(got[0], "10.0.0.1/32") {
		t.Errorf("members %q, want that of web", got)
	}
}

func (b *bench) detach(i int) {
	b.t.Helper()
	a := b.list[i]
	ev := podmanager.NewDeletePod(a)
	if _, err := b.p.Update(ev, b.dp); err != nil {
		b.t.Fatal(err)
	}
	b.list = slices.Delete(b.list, i, i+1)
}

// TestAttachments checks that an attachment of an earlier pod with the same name is closed, and that one of the same pod is like the
// newest.
func TestAttachments(t *testing.T) {
	b := newBench(t, nil)
	b.pod("web", "1", "10.0.0.1")
	b.add("c1", "web", "1")
	b.add("c2", "web", "1")
	b.want("endpoint c1", "allow allow")
	b.want("endpoint c2", "allow allow")
	b.add("c3", "web", "2") // the pod has been replaced, its object is not known yet
	for _, c := range []string{"c1", "c2", "c3"} {
		b.want("endpoint "+c, "deny deny")
	}
	b.pod("web", "2", "10.0.0.1")
	b.want("endpoint c3", "allow allow")
	b.want("endpoint c1", "deny deny")
	b.detach(0)
	b.detach(0)
	if got := b.dp.has("endpoint "); !slices.Equal(got, []string{"endpoint c3"}) {
		t.Errorf("endpoints %q", got)
	}
	b.detach(0)
	if got := b.dp.has("endpoint "); len(got) > 0 {
		t.Errorf("endpoints %q", got)
	}
}

// TestRevert checks that a failed ADD restores the previous state.
func TestRevert(t *testing.T) {
	b := newBench(t, nil)
	b.pod("web", "1", "10.0.0.1")
	b.set(kube.PolicyKeyword, "ns", "p", fromPods("p"))
	before := maps.Clone(b.dp.values)
	a := &podmanager.Attachment{ID: podmanager.AttachmentID{ContainerID: "c1"}, Pod: podmanager.PodID{Namespace: "ns", Name: "web"}}
	b.list = append(b.list, a)
	ev := podmanager.NewAddPod(a)
	if _, err := b.p.Update(ev, b.dp); err != nil {
		t.Fatal(err)
	}
	if err := b.p.Revert(ev); err != nil {
		t.Fatal(err)
	}
	b.list, b.dp.values = nil, before // as podmanager and the scheduler do
	b.pod("peer", "2", "10.0.0.2")
	b.add("c1", "web", "1")
	b.want("endpoint c1", "allow allow [NetworkPolicy ns/p]")
}

// TestWithoutKubernetes checks that there are no policies, and that pods are open at once.
func TestWithoutKubernetes(t *testing.T) {
	b := newBench(t, func(d *Deps) { d.Kubernetes = false })
	b.add("c1", "web", "")
	b.want("endpoint c1", "allow allow")
	begin := time.Now()
	b.p.AwaitPod(t.Context(), podmanager.PodID{Namespace: "ns", Name: "web"}, "")
	if time.Since(begin) > objectWait/2 {
		t.Error("an ADD waits for an object that cannot come")
	}
}

// TestPodOutsideKubernetes checks that a pod without a Kubernetes name, such as those of the connectivity test, has no object, and is open
// at once, also after a resync. A pod with a name stays closed without its object.
func TestPodOutsideKubernetes(t *testing.T) {
	b := newBench(t, nil)
	b.add("c1", "web", "1")
	test := &podmanager.Attachment{ID: podmanager.AttachmentID{ContainerID: "contiv-test-a", IfName: "eth0"},
		Pod: podmanager.PodID{Name: "contiv-test-a"}, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/32")}}
	begin := time.Now()
	b.p.AwaitPod(t.Context(), test.Pod, "")
	if time.Since(begin) > objectWait/2 {
		t.Error("an ADD waits for an object that cannot come")
	}
	b.list = append(b.list, test)
	b.update(podmanager.NewAddPod(test))
	for range 2 {
		b.want("endpoint contiv-test-a", "allow allow")
		b.want("endpoint c1", "deny deny")
		b.resync()
	}
}

// TestAwaitPod checks that an ADD waits for the pod's object, at most for a second.
func TestAwaitPod(t *testing.T) {
	b := newBench(t, nil)
	web := podmanager.PodID{Namespace: "ns", Name: "web"}
	done := make(chan error, 1)
	b.p.AwaitPod(t.Context(), web, "1") // without result
	if !strings.Contains(b.log.String(), "starts closed: the agent does not have its object or that of its namespace") {
		t.Errorf("log:\n%s", &b.log)
	}
	go func() {
		ctx, cancel := context.WithTimeoutCause(context.Background(), 30*time.Second, errors.New("too late"))
		defer cancel()
		b.p.AwaitPod(ctx, web, "1")
		done <- context.Cause(ctx)
	}()
	b.pod("web", "0", "10.0.0.9") // of an earlier pod with the same name
	b.pod("web", "1", "10.0.0.1")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if known, _ := b.p.knows(web, "1"); !known {
		t.Error("the wait ended before the object came")
	}
}

// TestNotUnderstood checks that unsupported parts of a policy are reported, and supported ones are not.
func TestNotUnderstood(t *testing.T) {
	b := newBench(t, nil)
	b.set(kube.PolicyKeyword, "ns", "good", fromPods("good"))
	if len(b.users.now) > 0 {
		t.Errorf("told: %v", b.users.now)
	}
	bad := fromPods("bad")
	bad.Problems = []string{"spec.ingress[0].ports[0].protocol: \"X\" is not TCP, UDP or SCTP; the port allows nothing"}
	b.set(kube.PolicyKeyword, "ns", "bad", bad)
	list := b.users.now["NetworkPolicy ns/bad bad"]
	if len(list) != 1 || list[0].Reason != "NotUnderstood" || list[0].Message != bad.Problems[0] || len(b.users.now) != 1 {
		t.Errorf("told: %v", b.users.now)
	}
	if !strings.Contains(b.log.String(), "not enforced as it was written") {
		t.Errorf("log:\n%s", &b.log)
	}
	b.set(kube.PolicyKeyword, "ns", "bad", fromPods("bad"))
	if len(b.users.now) > 0 {
		t.Errorf("told: %v", b.users.now)
	}
}

// TestDataplaneThatDoesNotEnforce checks that policies are problems only while the dataplane reports that it does not enforce them.
func TestDataplaneThatDoesNotEnforce(t *testing.T) {
	why := "VPP has no contiv plugin"
	b := newBench(t, func(d *Deps) { d.NotEnforced = func() string { return why } })
	pol := policy("a", "1")
	b.data[kube.PolicyKeyword][kube.Key(kube.PolicyKeyword, pol.Namespace, pol.Name)] = pol
	b.resync()
	want := []problem.Problem{{Reason: "NotEnforced", Message: why}}
	if got := b.users.now["NetworkPolicy ns/a 1"]; !slices.Equal(got, want) {
		t.Errorf("told: %v", b.users.now)
	}
	why = ""
	b.resync()
	if len(b.users.now["NetworkPolicy ns/a 1"]) > 0 {
		t.Errorf("told after VPP has the plugin: %v", b.users.now)
	}
}
