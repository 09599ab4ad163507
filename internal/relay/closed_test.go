package relay

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/clusterdb/cas"
	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/internal/kube/model"
)

func policyKey(name string) string { return model.Key(model.PolicyKeyword, "default", name) }

// largePolicy returns a policy of about size bytes that allows traffic.
func largePolicy(name string, size int) *model.Policy {
	p := &model.Policy{Name: name, Namespace: "default", Uid: "u", Ingress: true,
		Pods: &model.LabelSelector{MatchLabels: map[string]string{"app": "a"}}}
	for n := 0; n < size; n += 1000 {
		p.IngressRules = append(p.IngressRules, &model.PolicyRule{Name: strings.Repeat("x", 1000)})
	}
	return p
}

// awaitEtcd waits until etcd has exactly these objects and is marked as complete.
func awaitEtcd(t *testing.T, r *replica, want map[string]proto.Message) {
	t.Helper()
	until(t, "etcd has the state", func() bool {
		got, marked, _ := inEtcd(t, r.db)
		return marked && maps.EqualFunc(got, want, proto.Equal)
	})
}

// expectClosed checks that a policy blocks the traffic of its pods and names the problem.
func expectClosed(t *testing.T, m proto.Message) {
	t.Helper()
	p, ok := m.(*model.Policy)
	if !ok || len(p.GetIngressRules()) != 0 || !p.GetIngress() || p.GetEgress() || p.GetPods().GetMatchLabels()["app"] != "a" || p.GetUid() != "u" ||
		len(p.GetProblems()) != 1 || !strings.Contains(p.GetProblems()[0], "cannot be stored in etcd") {
		t.Errorf("the closed version is %v", m)
	}
}

// TestTooLarge checks that objects that are too large for etcd do not prevent that the state is complete, that their former versions are not in force,
// and that they are named.
func TestTooLarge(t *testing.T) {
	e := newEtcd(t)
	registry := prometheus.NewRegistry()
	r := newReplica(t, e, "a", func(d *Deps) { d.Metrics = registry })
	want := services(2)
	want[policyKey("p")] = largePolicy("p", 2000)
	all := maps.Clone(want)
	large := largePolicy("large", maxValue)
	all[policyKey("large")] = large // from the beginning
	r.report(t, all)
	closed, _ := closedVersion(large, errLimit(t, large))
	expectClosed(t, closed)
	want[policyKey("large")] = closed
	awaitEtcd(t, r, want)

	grown := largePolicy("p", maxValue)
	r.change(t, policyKey("p"), grown)
	want[policyKey("p")], _ = closedVersion(grown, errLimit(t, grown))
	r.change(t, serviceKey(0), &model.Service{Name: strings.Repeat("x", maxValue)})
	delete(want, serviceKey(0))
	r.change(t, serviceKey(1), service(1, 5))
	want[serviceKey(1)] = service(1, 5)
	r.change(t, serviceKey(2), &model.Service{Name: "\xff"}) // invalid UTF-8
	nodeKey := model.Key(model.NodeKeyword, "", "n1")
	r.change(t, nodeKey, &model.Node{Name: "n1", Addresses: []string{"192.0.2.1"}, Labels: map[string]string{"a": strings.Repeat("x", maxValue)}})
	want[nodeKey] = &model.Node{Name: "n1", Addresses: []string{"192.0.2.1"}}
	namespaceKey := model.Key(model.NamespaceKeyword, "", "tenant")
	tenant := &model.Namespace{Name: "tenant", Labels: map[string]string{"a": strings.Repeat("x", maxValue)}}
	r.change(t, namespaceKey, tenant)
	want[namespaceKey] = &model.Namespace{Name: "tenant", Problems: []string{
		fmt.Sprintf("the object cannot be stored in etcd: %v; it allows nothing", errLimit(t, tenant))}}
	awaitEtcd(t, r, want)
	if got := r.Refused(); len(got) != 6 || !strings.Contains(got[clusterdb.KSRPrefix+serviceKey(0)], "bytes") {
		t.Errorf("refused %v", got)
	}
	named := 0
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "contiv_ksr_refused_value" {
			named = len(f.GetMetric())
		}
	}
	if named != 6 {
		t.Errorf("metrics name %d objects", named)
	}

	r.change(t, policyKey("large"), nil)
	delete(want, policyKey("large"))
	r.change(t, policyKey("p"), largePolicy("p", 1000))
	want[policyKey("p")] = largePolicy("p", 1000)
	r.change(t, serviceKey(0), service(0, 7))
	want[serviceKey(0)] = service(0, 7)
	r.change(t, namespaceKey, &model.Namespace{Name: "tenant"})
	want[namespaceKey] = &model.Namespace{Name: "tenant"}
	awaitEtcd(t, r, want)
	if got := r.Refused(); len(got) != 2 {
		t.Errorf("refused %v", got)
	}
}

func errLimit(t *testing.T, m proto.Message) error {
	t.Helper()
	_, err := encode(m)
	if err == nil {
		t.Fatal("the object is small enough")
	}
	return err
}

// TestTooLargeForServer checks objects that only etcd itself rejects: its limit may be lower than ours.
func TestTooLargeForServer(t *testing.T) {
	e := newEtcd(t)
	r := newReplica(t, e, "a")
	want := services(3)
	r.report(t, want)
	r.awaitSettled(t)
	data, err := kube.Encode(largePolicy("p", 1700<<10)) // etcd accepts 1.5 MiB
	if err != nil {
		t.Fatal(err)
	}
	r.table.set(clusterdb.KSRPrefix+policyKey("p"), string(data))
	r.change(t, serviceKey(1), service(1, 5))
	want[serviceKey(1)] = service(1, 5)
	until(t, "all is written", func() bool {
		got, marked, _ := inEtcd(t, r.db)
		if !marked || len(got) != 4 {
			return false
		}
		expectClosed(t, got[policyKey("p")])
		delete(got, policyKey("p"))
		return maps.EqualFunc(got, want, proto.Equal)
	})
}

// TestSmallerWrites checks what follows when etcd rejects a write: smaller writes, then a closed version, then nothing. A newer version of the
// object is not replaced.
func TestSmallerWrites(t *testing.T) {
	r, err := New(Deps{Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	big := errors.New("too large")
	all := map[string]string{}
	for i := range 8 {
		data, err := kube.Encode(largePolicy(fmt.Sprint(i), 60_000))
		if err != nil {
			t.Fatal(err)
		}
		all[clusterdb.KSRPrefix+policyKey(fmt.Sprint(i))] = string(data)
	}
	r.table.setAll(all, nil)
	r.table.load(nil)
	var sizes []int
	for range 4 {
		writes := r.table.next()
		sizes = append(sizes, len(writes))
		if len(writes) > 1 && !r.tooLarge(writes, big) {
			t.Fatal("it gives up")
		}
	}
	if fmt.Sprint(sizes) != "[8 4 2 1]" {
		t.Errorf("writes of %v objects", sizes)
	}
	first := r.table.next()[0]
	r.table.set(first.Key, "newer")
	r.tooLarge([]cas.Write{first}, big)
	if got := r.table.next()[0]; string(got.Value) != "newer" || len(r.Refused()) != 0 {
		t.Errorf("the newer version is replaced by %q", got.Value)
	}
	r.table.set(first.Key, string(first.Value))
	r.tooLarge([]cas.Write{first}, big)
	closed := r.table.next()[0]
	if closed.Key != first.Key || len(closed.Value) > 1000 || len(closed.Value) == 0 {
		t.Errorf("the closed version has %d bytes", len(closed.Value))
	}
	r.tooLarge([]cas.Write{closed}, big)
	if next := r.table.next()[0]; next.Key == first.Key || len(r.Refused()) != 1 {
		t.Errorf("next write %s, refused %v", next.Key, r.Refused())
	}
	if r.tooLarge([]cas.Write{{Key: first.Key}}, big) {
		t.Error("a delete cannot be made smaller")
	}
}

// TestClosedClusterPolicy checks that a cluster policy blocks the traffic of its pods in the directions in which it has rules.
func TestClosedClusterPolicy(t *testing.T) {
	selector := &model.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	huge := &model.LabelSelector{MatchLabels: map[string]string{"a": strings.Repeat("x", maxValue)}}
	m, _ := closedVersion(&model.ClusterPolicy{Name: "p", Tier: model.ClusterPolicy_BASELINE, Priority: 7, Namespaces: selector, Pods: huge,
		EgressRules: []*model.PolicyRule{{Action: model.PolicyRule_ALLOW}, {Action: model.PolicyRule_PASS}}}, errors.New("too large"))
	p, ok := m.(*model.ClusterPolicy)
	if !ok || p.GetTier() != model.ClusterPolicy_BASELINE || p.GetPriority() != 7 || len(p.GetIngressRules()) != 0 || len(p.GetEgressRules()) != 1 ||
		p.GetEgressRules()[0].GetAction() != model.PolicyRule_DENY || len(p.GetProblems()) != 1 ||
		!proto.Equal(p.GetNamespaces(), selector) || p.GetPods() == nil || len(p.GetPods().GetMatchLabels()) != 0 {
		t.Errorf("the closed version is %v", m)
	}
}
