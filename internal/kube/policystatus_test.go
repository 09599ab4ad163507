package kube

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	npapi "sigs.k8s.io/network-policy-api/apis/v1alpha2"
)

// policyAPI is an API server that has ClusterNetworkPolicies, and no NetworkPolicies.
type policyAPI struct {
	mu     sync.Mutex
	has    map[string]*npapi.ClusterNetworkPolicy
	absent bool // the definition is missing
	puts   int
	code   int // status of the answers to writes
}

func (a *policyAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	fail := func(code int, reason string) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason})
	}
	const path = "/apis/policy.networking.k8s.io/v1alpha2/clusternetworkpolicies"
	switch {
	case strings.HasSuffix(r.URL.Path, "/networkpolicies"):
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "NetworkPolicyList", "apiVersion": "networking.k8s.io/v1"})
	case a.absent:
		fail(http.StatusNotFound, "NotFound")
	case r.Method == http.MethodGet && r.URL.Path == path:
		list := npapi.ClusterNetworkPolicyList{TypeMeta: metav1.TypeMeta{Kind: "ClusterNetworkPolicyList", APIVersion: npapi.GroupVersion.String()}}
		for _, p := range a.has {
			list.Items = append(list.Items, *p)
		}
		_ = json.NewEncoder(w).Encode(list)
	case r.Method == http.MethodPut:
		a.puts++
		name, status := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, path+"/"), "/status")
		var p npapi.ClusterNetworkPolicy
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &p); err != nil || !status || a.has[name] == nil {
			fail(http.StatusBadRequest, "BadRequest")
			return
		}
		if a.code != 0 {
			fail(a.code, http.StatusText(a.code))
			return
		}
		a.has[name].Status = p.Status
		_, _ = w.Write(body)
	default:
		fail(http.StatusMethodNotAllowed, "MethodNotAllowed")
	}
}

func policyClient(t *testing.T, api *policyAPI) *Client {
	t.Helper()
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	c, err := newClient(&rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{AcceptContentTypes: protobufType + ",application/json", ContentType: protobufType}},
		&http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func conditioned(name string, generation int64, domain ...npapi.DomainName) *npapi.ClusterNetworkPolicy {
	p := &npapi.ClusterNetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: generation}}
	p.Spec.Tier, p.Spec.Subject.Namespaces = npapi.AdminTier, &metav1.LabelSelector{}
	peer := npapi.ClusterNetworkPolicyEgressPeer{Namespaces: &metav1.LabelSelector{}}
	if len(domain) > 0 {
		peer = npapi.ClusterNetworkPolicyEgressPeer{DomainNames: domain}
	}
	p.Spec.Egress = []npapi.ClusterNetworkPolicyEgressRule{{Action: npapi.ClusterNetworkPolicyRuleActionAccept, To: []npapi.ClusterNetworkPolicyEgressPeer{peer}}}
	return p
}

// TestPolicyStatus checks that each policy has a condition that describes the elements that are not understood. Conditions of other programs stay,
// and a correct condition is not written again.
func TestPolicyStatus(t *testing.T) {
	other := metav1.Condition{Type: "other/Ready", Status: metav1.ConditionTrue, Reason: "Ready", Message: "x"}
	good, names := conditioned("good", 3), conditioned("names", 1, "example.com")
	good.Status.Conditions = []metav1.Condition{other}
	api := &policyAPI{has: map[string]*npapi.ClusterNetworkPolicy{"good": good, "names": names}}
	large := map[string]string{}
	s := NewPolicyStatus(PolicyStatusDeps{Client: policyClient(t, api), Large: func() map[string]string { return large }})
	write := func(puts int) {
		t.Helper()
		api.puts = 0
		if err := s.writeAll(context.Background()); err != nil || api.puts != puts {
			t.Fatalf("%d writes, want %d; error %v", api.puts, puts, err)
		}
	}
	write(2)
	if c := good.Status.Conditions; len(c) != 2 || c[0] != other || c[1].Type != conditionAccepted || c[1].Status != metav1.ConditionTrue || c[1].ObservedGeneration != 3 {
		t.Errorf("got %+v", c)
	}
	if c := names.Status.Conditions; len(c) != 1 || c[0].Status != metav1.ConditionFalse || c[0].Reason != "NotUnderstood" || !strings.Contains(c[0].Message, "domainNames") {
		t.Errorf("got %+v", c)
	}
	write(0)
	large["good"], large["names"] = "a set is too large", "another set is too large"
	write(2)
	if c := good.Status.Conditions[1]; c.Status != metav1.ConditionFalse || c.Reason != "SetTooLarge" || c.Message != "a set is too large" {
		t.Errorf("got %+v", c)
	}
	if c := names.Status.Conditions[0]; c.Reason != "NotUnderstood" || !strings.Contains(c.Message, "domainNames") || !strings.HasSuffix(c.Message, "; another set is too large") {
		t.Errorf("got %+v", c)
	}
	clear(large)
	write(2)
	if c := good.Status.Conditions[1]; c.Status != metav1.ConditionTrue || c.Reason != "Accepted" {
		t.Errorf("got %+v", c)
	}
	names.Spec, names.Generation = conditioned("", 0).Spec, 2
	write(1)
	if c := names.Status.Conditions[0]; c.Status != metav1.ConditionTrue || c.ObservedGeneration != 2 {
		t.Errorf("got %+v", c)
	}
	names.Generation, api.code = 3, http.StatusConflict
	write(1)
	api.code = http.StatusForbidden
	if err := s.writeAll(context.Background()); err == nil || !strings.Contains(err.Error(), "ClusterNetworkPolicy names") {
		t.Errorf("error %v", err)
	}
	api.absent = true
	write(0)
}

// TestPolicyStatusOfOneWriter checks that a process that is not the writer sends no request, and that it writes when it becomes the writer.
func TestPolicyStatusOfOneWriter(t *testing.T) {
	api := &policyAPI{has: map[string]*npapi.ClusterNetworkPolicy{"a": conditioned("a", 1)}}
	queried, writer := make(chan bool), make(chan bool)
	s := NewPolicyStatus(PolicyStatusDeps{
		Client: policyClient(t, api), Log: slog.New(slog.DiscardHandler), Writes: func() bool { queried <- true; return <-writer }, Interval: time.Hour,
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	for _, is := range []bool{false, true} {
		<-queried
		writer <- is
		s.Touch()
	}
	<-queried // waits for the end of the writer's round
	api.mu.Lock()
	if api.puts != 1 {
		t.Errorf("%d writes, want one by the writer", api.puts)
	}
	api.mu.Unlock()
	cancel()
	writer <- false
	if err := <-done; err != context.Canceled {
		t.Error(err)
	}
}

// TestAnyPolicy checks that a ClusterNetworkPolicy counts, and that a cluster without that API has none.
func TestAnyPolicy(t *testing.T) {
	api := &policyAPI{has: map[string]*npapi.ClusterNetworkPolicy{}}
	c := policyClient(t, api)
	for _, want := range []bool{false, true, false} {
		if any, err := c.AnyPolicy(context.Background()); err != nil || any != want {
			t.Errorf("any %t, want %t; error %v", any, want, err)
		}
		api.mu.Lock()
		api.absent = len(api.has) > 0
		api.has["a"] = conditioned("a", 1)
		api.mu.Unlock()
	}
}
