package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	kube "contiv.dev/vswitch/internal/kube/model"
)

// post sends a text to be tried.
func (h handlers) post(t *testing.T, text string, status int, into any) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"policy": text})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h[tryPath](w, httptest.NewRequest(http.MethodPost, tryPath, bytes.NewReader(body)))
	if w.Code != status {
		t.Fatalf("%s: status %d: %s", text, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		t.Fatalf("%s: %v: %s", text, err, w.Body)
	}
}

func selector(key, value string) *kube.LabelSelector {
	return &kube.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// tryBench returns a bench with pods ns/web (both families), ns/peer and other/far, of which ns/web is on this node. The parser accepts the
// names in known.
func tryBench(t *testing.T, list Connections, known map[string]any) (*bench, handlers) {
	h := handlers{}
	b := newBench(t, func(d *Deps) {
		d.HTTPHandlers, d.Connections = h, list
		d.ParsePolicy = func(text []byte) (*kube.Policy, *kube.ClusterPolicy, error) {
			switch p := known[string(text)].(type) {
			case *kube.Policy:
				return p, nil, nil
			case *kube.ClusterPolicy:
				return nil, p, nil
			}
			return nil, nil, fmt.Errorf("unknown field %q", text)
		}
	})
	b.set(kube.NodeKeyword, "", "n1", &kube.Node{Name: "n1", Addresses: []string{"192.0.2.10"}})
	b.pod("web", "1", "10.0.0.1")
	b.pod("peer", "2", "10.0.0.2")
	b.set(kube.PodKeyword, "other", "far", &kube.Pod{Namespace: "other", Name: "far", Ips: []string{"10.0.1.1"}})
	b.add("c1", "web", "1")
	return b, h
}

func conn(proto uint8, client, server string) Connection {
	return Connection{proto, netip.MustParseAddrPort(client), netip.MustParseAddrPort(server)}
}

func allowFrom(ports ...*kube.PolicyPort) *kube.Policy {
	return &kube.Policy{Namespace: "ns", Name: "p", Ingress: true, Pods: &kube.LabelSelector{}, Problems: []string{"spec.x: not understood"},
		IngressRules: []*kube.PolicyRule{{Ports: ports, Peers: []*kube.PolicyPeer{{Pods: &kube.LabelSelector{}}, {IpBlock: &kube.IPBlock{Cidr: "198.51.100.0/24"}}}}}}
}

// TestTry checks the changes by pods, ports, peers and open connections, and that nothing is applied.
func TestTry(t *testing.T) {
	list := func(context.Context) ([]Connection, error) {
		return []Connection{conn(6, "10.0.0.2:4000", "10.0.0.1:80"), conn(6, "10.0.0.2:4001", "10.0.0.1:81"), conn(17, "10.0.1.1:53", "10.0.0.1:80"),
			conn(6, "10.0.0.1:5000", "10.0.1.1:80"), conn(6, "192.0.2.10:5000", "10.0.0.1:9000"), conn(6, "10.0.0.1:1", "10.0.0.1:2")}, nil
	}
	b, h := tryBench(t, list, map[string]any{
		"np": allowFrom(&kube.PolicyPort{Port: 80, EndPort: 80}),
		"guard": &kube.ClusterPolicy{Name: "guard", Namespaces: &kube.LabelSelector{}, Pods: &kube.LabelSelector{}, EgressRules: []*kube.PolicyRule{
			{Action: kube.PolicyRule_DENY, Peers: []*kube.PolicyPeer{{Nodes: &kube.LabelSelector{}}}, Ports: []*kube.PolicyPort{{Port: 22}}}}},
		"elsewhere": &kube.Policy{Namespace: "other", Name: "q", Ingress: true, Pods: selector("a", "b")},
	})
	before := fmt.Sprint(*b.dp)
	var got tried
	h.post(t, "np", 200, &got)
	want := tried{Policy: "ns/p", Problems: []string{"spec.x: not understood"}, Selects: []string{"ns/web"}, Changes: []triedChange{
		{"ns/web", "ingress", []string{"all"}, []string{"other/far", "any other address"}, "allowed", "denied"},
		{"ns/web", "ingress", []string{"tcp 1-79", "tcp 81-65535", "udp", "sctp", "other"}, []string{"ns/peer", "198.51.100.0/24"}, "allowed", "denied"},
	}, Connections: []triedConnection{
		{"TCP", netip.MustParseAddrPort("10.0.0.2:4001"), netip.MustParseAddrPort("10.0.0.1:81"), "ns/peer", "ns/web"},
		{"UDP", netip.MustParseAddrPort("10.0.1.1:53"), netip.MustParseAddrPort("10.0.0.1:80"), "other/far", "ns/web"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	h.post(t, "guard", 200, &got)
	if len(got.Changes) != 1 || !reflect.DeepEqual(got.Changes[0], triedChange{"ns/web", "egress", []string{"tcp 22"}, []string{"node n1"}, "allowed", "denied"}) {
		t.Errorf("own node: %+v", got)
	}
	h.post(t, "elsewhere", 200, &got)
	if len(got.Selects)+len(got.Changes)+len(got.Connections) != 0 {
		t.Errorf("a policy of other pods: %+v", got)
	}
	if after := fmt.Sprint(*b.dp); after != before {
		t.Errorf("values have changed:\n%s\n%s", before, after)
	}
	var failed map[string]string
	if h.post(t, "nonsense", 400, &failed); !strings.Contains(failed["error"], `unknown field "nonsense"`) {
		t.Errorf("%v", failed)
	}
}

// TestTryAgainst checks that the tried policy replaces an existing one, and that traffic that the existing one denied is allowed.
func TestTryAgainst(t *testing.T) {
	b, h := tryBench(t, func(context.Context) ([]Connection, error) { return nil, errors.New("no plugin") }, map[string]any{
		"same": allowFrom(&kube.PolicyPort{Port: 80}), "wider": allowFrom(&kube.PolicyPort{Port: 80, EndPort: 90}, &kube.PolicyPort{Protocol: kube.Protocol_UDP})})
	b.set(kube.PolicyKeyword, "ns", "p", allowFrom(&kube.PolicyPort{Port: 80}))
	var got tried
	if h.post(t, "same", 200, &got); len(got.Changes) != 0 || len(got.Selects) != 1 || !strings.Contains(got.Unknown, "no plugin") {
		t.Errorf("the same policy: %+v", got)
	}
	h.post(t, "wider", 200, &got)
	want := []triedChange{{"ns/web", "ingress", []string{"tcp 81-90", "udp"}, []string{"ns/peer", "198.51.100.0/24"}, "denied", "allowed"}}
	if !reflect.DeepEqual(got.Changes, want) {
		t.Errorf("got %+v\nwant %+v", got.Changes, want)
	}
}
