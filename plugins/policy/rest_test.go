package policy

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	kube "contiv.dev/vswitch/internal/kube/model"
)

// handlers maps paths to REST handlers.
type handlers map[string]http.HandlerFunc

func (h handlers) RegisterHTTPHandler(path string, f http.HandlerFunc, _ ...string) { h[path] = f }

func (h handlers) get(t *testing.T, url string, status int, into any) {
	t.Helper()
	path, _, _ := strings.Cut(url, "?")
	w := httptest.NewRecorder()
	h[path](w, httptest.NewRequest(http.MethodGet, url, nil))
	if w.Code != status {
		t.Fatalf("%s: status %d: %s", url, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		t.Fatalf("%s: %v: %s", url, err, w.Body)
	}
}

func restBench(t *testing.T) (*bench, handlers) {
	h := handlers{}
	b := newBench(t, func(d *Deps) { d.HTTPHandlers = h })
	b.set(kube.NodeKeyword, "", "n1", &kube.Node{Name: "n1", Addresses: []string{"192.0.2.1"}})
	b.set(kube.NodeKeyword, "", "n2", &kube.Node{Name: "n2", Addresses: []string{"192.0.2.2"}})
	b.pod("web", "1", "10.0.0.1")
	b.pod("peer", "2", "10.0.0.2")
	b.pod("both", "3", "10.0.0.3")
	b.set(kube.PodKeyword, "other", "far", &kube.Pod{Namespace: "other", Name: "far", Ips: []string{"10.0.1.1"}})
	p := fromPods("p")
	p.IngressRules[0].Ports = []*kube.PolicyPort{{Port: 80, EndPort: 90}, {Port: 443}}
	p.Problems = []string{"something"}
	p.Egress = true
	b.set(kube.PolicyKeyword, "ns", "p", p)
	b.set(kube.PolicyKeyword, "away", "q", &kube.Policy{Namespace: "away", Name: "q", Ingress: true})
	everything := &kube.LabelSelector{}
	b.set(kube.ClusterPolicyKeyword, "", "guard", &kube.ClusterPolicy{Name: "guard", Priority: 5, Namespaces: everything, Pods: everything,
		EgressRules: []*kube.PolicyRule{
			{Action: kube.PolicyRule_DENY, Name: "kubelet", Peers: []*kube.PolicyPeer{{Nodes: everything}}, Ports: []*kube.PolicyPort{{Port: 10250}}},
			{Action: kube.PolicyRule_ALLOW, Index: 1, Peers: []*kube.PolicyPeer{{IpBlock: &kube.IPBlock{Cidr: "9.9.9.9/32"}}}}}})
	b.add("c1", "web", "1")
	return b, h
}

func TestServePolicies(t *testing.T) {
	_, h := restBench(t)
	var rows []policyRow
	h.get(t, policiesPath, 200, &rows)
	five := uint32(5)
	want := []policyRow{
		{Kind: "ClusterNetworkPolicy", Name: "guard", Tier: "Admin", Priority: &five, Types: []string{"Egress"}, Enforced: true, Endpoints: []string{"ns/web"}},
		{Kind: "NetworkPolicy", Namespace: "away", Name: "q", Types: []string{"Ingress"}, Enforced: true, Endpoints: []string{}},
		{Kind: "NetworkPolicy", Namespace: "ns", Name: "p", Types: []string{"Ingress", "Egress"}, Enforced: true, Endpoints: []string{"ns/web"}, Problems: []string{"something"}}}
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("got %+v\nwant %+v", rows, want)
	}
	var detail policyDetail
	h.get(t, policyPath+"?policy=ns/p", 200, &detail)
	if len(detail.Ingress) != 1 || len(detail.Egress) != 0 || detail.Ingress[0].Origin != "ingress[0]" ||
		detail.Ingress[0].Text != "allow TCP 80-90,443 from pods of namespace ns" ||
		!reflect.DeepEqual(detail.Ingress[0].Sets[0].Members, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}) {
		t.Errorf("got %+v", detail)
	}
	h.get(t, policyPath+"?policy=guard", 200, &detail)
	if len(detail.Egress) != 2 || detail.Egress[0].Origin != "egress[0] kubelet" || detail.Egress[0].Text != "deny TCP 10250 to nodes" ||
		!reflect.DeepEqual(detail.Egress[0].Sets[0].Members, []string{"192.0.2.1", "192.0.2.2"}) {
		t.Errorf("got %+v", detail)
	}
	var failed map[string]string
	h.get(t, policyPath+"?policy=p", 404, &failed)
	if failed["error"] != "there is neither a ClusterNetworkPolicy p nor a NetworkPolicy default/p" {
		t.Errorf("got %v", failed)
	}
}

func TestServeWhy(t *testing.T) {
	_, h := restBench(t)
	for _, test := range []struct{ query, egress, ingress string }{
		{"from=ns/peer&to=ns/web&port=85", "", "allow ns/p ingress[0]: this rule allows it"},
		{"from=ns/peer&to=ns/web&port=91", "", "deny : policies select the pod in this direction, and no rule of theirs allows it: ns/p"},
		{"from=other/far&to=ns/web&protocol=tcp&port=80", "", "deny : policies select the pod in this direction, and no rule of theirs allows it: ns/p"},
		{"from=10.0.0.2&to=10.0.0.1&protocol=TCP&port=443", "", "allow ns/p ingress[0]: this rule allows it"},
		{"from=ns/web&to=8.8.8.8&protocol=icmp", "deny : policies select the pod in this direction, and no rule of theirs allows it: ns/p", ""},
		{"from=ns/web&to=192.0.2.1", "allow : a pod reaches its own node unless a ClusterNetworkPolicy denies it", ""},
		{"from=ns/web&to=192.0.2.1&port=10250", "deny guard egress[0] kubelet: this rule denies it", ""},
		{"from=192.0.2.1&to=ns/web&port=10250", "", "allow : a node always reaches its own pods"},
		{"from=ns/web&to=9.9.9.9", "allow guard egress[1]: this rule allows it", ""},
		{"from=192.0.2.2&to=ns/web", "", "deny : policies select the pod in this direction, and no rule of theirs allows it: ns/p"},
		{"from=ns/web&to=ns/web&protocol=udp&port=1", "allow : a pod always reaches itself", "allow : a pod always reaches itself"},
	} {
		var rows []whyRow
		h.get(t, whyPath+"?"+test.query, 200, &rows)
		text := func(d *decision) string {
			if d == nil {
				return ""
			}
			return strings.TrimSpace(d.Action+" "+d.Policy+" "+d.Rule) + map[bool]string{true: " "}[d.Policy == ""] + ": " + d.Because
		}
		if len(rows) != 1 || text(rows[0].Egress) != test.egress || text(rows[0].Ingress) != test.ingress {
			t.Errorf("%s: got egress %q, ingress %q", test.query, text(rows[0].Egress), text(rows[0].Ingress))
		}
	}
	var failed map[string]string
	h.get(t, whyPath+"?from=ns/none&to=ns/web", 404, &failed)
	h.get(t, whyPath+"?from=ns/peer&to=ns/web&port=0", 400, &failed)
	h.get(t, whyPath+"?from=ns/peer&to=ns/web&protocol=x", 400, &failed)
}

// TestBlockedNamespace checks that the pods of a namespace whose labels are not known are closed, that the reason is reported and explained,
// and that both end when the labels are known.
func TestBlockedNamespace(t *testing.T) {
	b, h := restBench(t)
	const key = "Namespace /ns "
	why := func() string {
		t.Helper()
		var rows []whyRow
		h.get(t, whyPath+"?from=ns/web&to=10.0.1.1", 200, &rows)
		return rows[0].Egress.Action + ": " + rows[0].Egress.Because
	}
	b.set(kube.NamespaceKeyword, "", "ns", &kube.Namespace{Name: "ns", Problems: []string{"it has 2 MB"}})
	b.want("endpoint c1", "deny deny")
	if got := why(); got != "deny: the labels of the pod's namespace are not known, so only its own node reaches it: it has 2 MB" {
		t.Error(got)
	}
	if list := b.users.now[key]; len(list) != 1 || list[0].Message != "it has 2 MB" {
		t.Errorf("reported: %v", b.users.now)
	}
	if !strings.Contains(b.log.String(), "all traffic of its pods is blocked") {
		t.Errorf("log: %s", b.log.String())
	}
	b.set(kube.NamespaceKeyword, "", "ns", &kube.Namespace{Name: "ns"})
	b.want("endpoint c1", "allow allow [NetworkPolicy ns/p]")
	if b.users.now[key] != nil {
		t.Errorf("reported: %v", b.users.now)
	}
}
