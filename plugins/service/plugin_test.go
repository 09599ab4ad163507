package service

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/internal/servicelabel"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync"
	"contiv.dev/vswitch/plugins/podmanager"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/rendertest"
)

// fakeNode replaces ipnet, nodesync and podmanager.
type fakeNode struct {
	nodes nodesync.Nodes
	own   []netip.Addr
	hosts []net.IP
	pods  []*podmanager.Attachment
	bvi   string
	// byContainer names interfaces after their containers instead of their pods.
	byContainer bool
}

func (f *fakeNode) PodInterface(id podmanager.AttachmentID) (name string, exists bool) {
	for _, a := range f.pods {
		if a.ID == id && f.byContainer {
			return "tap-" + id.ContainerID, true
		}
		if a.ID == id {
			return "tap-" + a.Pod.Namespace + "-" + a.Pod.Name, true
		}
	}
	return "", false
}
func (f *fakeNode) NodeAddresses() []netip.Addr                { return f.own }
func (f *fakeNode) GetHostIPs() []net.IP                       { return f.hosts }
func (f *fakeNode) GetHostInterconnectIfName() string          { return "tap-vpp2" }
func (f *fakeNode) GetVxlanBVIIfName() string                  { return f.bvi }
func (f *fakeNode) GetAllNodes() nodesync.Nodes                { return f.nodes }
func (f *fakeNode) LocalAttachments() []*podmanager.Attachment { return f.pods }

type handlers map[string]http.HandlerFunc

func (h handlers) RegisterHTTPHandler(path string, handler http.HandlerFunc, _ ...string) {
	h[path] = handler
}

// ops is a transaction.
type ops map[string]proto.Message

func (o ops) Put(key string, value proto.Message) { o[key] = value }
func (o ops) Get(key string) proto.Message        { return o[key] }
func (o ops) Delete(key string)                   { delete(o, key) }

func attachment(container, pod string, addrs ...string) *podmanager.Attachment {
	a := &podmanager.Attachment{
		ID: podmanager.AttachmentID{ContainerID: container, IfName: "eth0"}, Pod: podmanager.PodID{Namespace: "ns", Name: pod},
	}
	for _, addr := range addrs {
		a.Addresses = append(a.Addresses, netip.MustParsePrefix(addr))
	}
	return a
}

func vppNode(name, ip string) *nodesync.Node {
	p := netip.MustParsePrefix(ip)
	return &nodesync.Node{Name: name, VppIPAddresses: contivconf.IPsWithNetworks{
		{Version: contivconf.VersionOf(p.Addr()), Address: p.Addr(), Network: p.Masked()},
	}, MgmtIPAddresses: []net.IP{net.ParseIP("172.16.0." + name[1:])}}
}

func kubeNode(name, zone string) *model.Node {
	return &model.Node{Name: name, Addresses: []string{"192.0.2." + name[1:]}, Labels: map[string]string{zoneLabel: zone}}
}

func newPlugin(t *testing.T, f *fakeNode) (*Plugin, *rendertest.Recorder, handlers) {
	t.Helper()
	h := handlers{}
	p := New(Deps{
		ServiceLabel: servicelabel.Label("n1"), ContivConf: contivconf.Default(contivconf.Env{NodeName: "n1"}), IPNet: f, NodeSync: f,
		PodManager: f, HTTPHandlers: h, HealthCheckAddress: "127.0.0.1",
		Reserved: Reserved{Addresses: []netip.Prefix{netip.MustParsePrefix("198.51.100.53/32")},
			Etcd: []netip.AddrPort{netip.MustParseAddrPort("203.0.113.79:2379")}},
	})
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	r := rendertest.New(t)
	p.RegisterRenderer(r)
	return p, r, h
}

func service(name string) *model.Service {
	return &model.Service{
		Name: name, Namespace: "ns", ClusterIps: []string{"10.96.0.1"}, Ports: []*model.ServicePort{{Name: "http", Port: 80,
			NodePort: 30000}},
	}
}

func slice(name, service string, addrs ...string) *model.EndpointSlice {
	s := &model.EndpointSlice{Name: name, Namespace: "ns", Service: service, Ports: []*model.EndpointPort{{Name: "http",
		Port: 8080}}}
	b := model.NewSliceBuilder(s, len(addrs))
	for _, addr := range addrs {
		addr, node, _ := strings.Cut(addr, "@")
		b.Add(netip.MustParseAddr(addr), model.CondReady|model.CondServing, &model.Place{Node: node, ForZones: []string{"z-" + node}})
	}
	return s
}

func key(m proto.Message) string {
	switch m := m.(type) {
	case *model.Service:
		return model.Key(model.ServiceKeyword, m.Namespace, m.Name)
	case *model.EndpointSlice:
		return model.Key(model.EndpointSliceKeyword, m.Namespace, m.Name)
	case *model.Node:
		return model.Key(model.NodeKeyword, "", m.Name)
	}
	panic(m)
}

func data(values ...proto.Message) api.KubeStateData {
	out := api.KubeStateData{}
	for _, v := range values {
		keyword := model.KeywordOf(key(v))
		if out[keyword] == nil {
			out[keyword] = api.KeyValuePairs{}
		}
		out[keyword][key(v)] = v
	}
	return out
}

func changeOf(prev, next proto.Message) *api.KubeStateChange {
	ev := &api.KubeStateChange{PrevValue: prev, NewValue: next}
	if next != nil {
		ev.Key = key(next)
	} else {
		ev.Key = key(prev)
	}
	ev.Resource = model.KeywordOf(ev.Key)
	return ev
}

// TestOwnAddressesBeforeTheRecord checks that node ports are served at VPP's address of this node although no record of the node has it
// yet.
func TestOwnAddressesBeforeTheRecord(t *testing.T) {
	f := &fakeNode{own: []netip.Addr{netip.MustParseAddr("192.168.16.1")}, nodes: nodesync.Nodes{"n1": {Name: "n1"}}}
	p, r, _ := newPlugin(t, f)
	if err := p.Resync(api.NewDBResync(), data(kubeNode("n1", "")), 1, ops{}); err != nil {
		t.Fatal(err)
	}
	if got := r.String(); !strings.Contains(got, "local {192.0.2.1, 192.168.16.1}") {
		t.Errorf("after the first resync: %s", got)
	}
}

// TestUpdatesEqualResync checks that events give the same result as a resync of the same state.
func TestUpdatesEqualResync(t *testing.T) {
	f := &fakeNode{bvi: "vxlanBVI", hosts: []net.IP{net.ParseIP("172.30.1.2")}, nodes: nodesync.Nodes{"n1": vppNode("n1",
		"192.168.16.1/24")}}
	p, r, _ := newPlugin(t, f)
	if err := p.Resync(api.NewDBResync(), data(kubeNode("n1", "z-n2")), 1, ops{}); err != nil {
		t.Fatal(err)
	}
	if got := r.String(); got != "nodes {172.16.0.1, 172.30.1.2, 192.0.2.1, 192.168.16.1} local "+
		"{172.16.0.1, 172.30.1.2, 192.0.2.1, 192.168.16.1} frontends {tap-vpp2, vxlanBVI} backends {tap-vpp2, vxlanBVI}\n" {
		t.Errorf("after the first resync: %s", got)
	}
	f.pods = []*podmanager.Attachment{attachment("c0", "old", "10.1.1.9/32"), attachment("c1", "web", "10.1.1.2/32"),
		attachment("c2", "web", "10.1.1.3/32")}
	f.nodes = nodesync.Nodes{"n1": vppNode("n1", "192.168.16.1/24"), "n2": vppNode("n2", "192.168.16.2/24")}
	f.hosts = nil
	s1, e1, n1 := service("s"), slice("s-1", "s", "10.1.1.3@n1", "10.1.2.2@n2", "192.168.16.2@n2"), kubeNode("n1", "z-n1")
	for _, ev := range []api.Event{
		&podmanager.AddPod{Attachment: f.pods[2]},
		changeOf(nil, s1), changeOf(nil, e1),
		changeOf(nil, kubeNode("n2", "z-n2")), changeOf(nil, kubeNode("n3", "")), changeOf(kubeNode("n3", ""), nil),
		&nodesync.NodeUpdate{NodeName: "n2", NewState: f.nodes["n2"]},
		&nodesync.NodeUpdate{NodeName: "n4", NewState: vppNode("n4", "192.168.16.4/24")},
		&nodesync.NodeUpdate{NodeName: "n4", PrevState: vppNode("n4", "192.168.16.4/24")},
		&nodesync.NodeUpdate{NodeName: "n1", PrevState: f.nodes["n1"], NewState: f.nodes["n1"]},
		changeOf(kubeNode("n1", "z-n2"), n1),
		changeOf(nil, service("gone")), changeOf(service("gone"), nil),
	} {
		if !p.HandlesEvent(ev) {
			t.Fatalf("%s is not handled", ev)
		}
		change, err := p.Update(ev, ops{})
		if err != nil {
			t.Fatal(err)
		}
		if change == "" {
			t.Errorf("%s: no change reported", ev)
		}
	}
	fresh, fr, _ := newPlugin(t, f)
	if err := fresh.Resync(api.NewDBResync(), data(s1, e1, n1, kubeNode("n2", "z-n2")), 1, ops{}); err != nil {
		t.Fatal(err)
	}
	if got, want := r.String(), fr.String(); got != want {
		t.Errorf("after updates\n%safter a resync\n%s", got, want)
	}
	if got, want := p.DescribeInternalData(), fresh.DescribeInternalData(); got != want {
		t.Errorf("after updates\n%safter a resync\n%s", got, want)
	}
	var got []string
	for _, b := range r.Services[svcmodel.ID{Namespace: "ns", Name: "s"}].Backends["http"] {
		got = append(got, b.String())
	}
	if !slices.Equal(got, []string{"10.1.1.3:8080 local"}) { // the node's zone has its own endpoint
		t.Errorf("backends %q", got)
	}
	if !r.Backend.Has("tap-ns-web") || r.Backend.Has("tap-ns-old") || !r.Frontend.Has("tap-ns-old") {
		t.Errorf("backends %s frontends %s", r.Backend, r.Frontend)
	}
}

// reached is a renderer that depends on how nodes are reached.
type reached struct {
	*rendertest.Recorder
	addrs []netip.Addr
}

func (r *reached) UpdateNodes(addrs []netip.Addr) error {
	r.addrs = addrs
	return nil
}

// TestNodeUpdateAddresses checks that renderers receive the old and the new addresses of a node whose data has changed.
func TestNodeUpdateAddresses(t *testing.T) {
	p, _, _ := newPlugin(t, &fakeNode{})
	r := &reached{Recorder: rendertest.New(t)}
	p.RegisterRenderer(r)
	if err := p.Resync(nil, data(), 1, ops{}); err != nil {
		t.Fatal(err)
	}
	var prev *nodesync.Node
	for _, step := range []struct{ ip, want string }{
		{"192.168.16.2/24", "192.168.16.2 172.16.0.2"}, {"192.168.16.3/24", "192.168.16.2 172.16.0.2 192.168.16.3 172.16.0.2"},
		{"", "192.168.16.3 172.16.0.2"},
	} {
		var now *nodesync.Node
		if step.ip != "" {
			now = vppNode("n2", step.ip)
		}
		if _, err := p.Update(&nodesync.NodeUpdate{NodeName: "n2", PrevState: prev, NewState: now}, ops{}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range r.addrs {
			got = append(got, a.String())
		}
		if strings.Join(got, " ") != step.want {
			t.Errorf("node at %q: renderers received %s, want %s", step.ip, got, step.want)
		}
		prev = now
	}
}

// TestAddPodReverted checks that an ADD that fails later leaves no state, and a DEL neither.
func TestAddPodReverted(t *testing.T) {
	f := &fakeNode{}
	p, r, _ := newPlugin(t, f)
	if err := p.Resync(api.NewDBResync(), data(service("s"), slice("s", "s", "10.1.1.2@n1")), 1, ops{}); err != nil {
		t.Fatal(err)
	}
	before := r.String()
	f.pods = []*podmanager.Attachment{attachment("c1", "web", "10.1.1.2/32")}
	ev := &podmanager.AddPod{Attachment: attachment("c1", "web")} // it gets an address later
	add := func() {
		t.Helper()
		if change, err := p.Update(ev, ops{}); err != nil || change != "frontend interfaces; backend interfaces" {
			t.Fatalf("%q %v", change, err)
		}
		if !r.Frontend.Has("tap-ns-web") || !r.Backend.Has("tap-ns-web") {
			t.Errorf("after ADD: %s", r)
		}
	}
	add()
	if err := p.Revert(ev); err != nil {
		t.Fatal(err)
	}
	if got := r.String(); got != before {
		t.Errorf("after the revert %s, before %s", got, before)
	}
	add()
	if _, err := p.Update(&podmanager.DeletePod{Attachment: f.pods[0]}, ops{}); err != nil {
		t.Fatal(err)
	}
	if got := r.String(); got != before {
		t.Errorf("after DEL %s, before ADD %s", got, before)
	}
}

// TestRepeatedAddReverted checks that an ADD that repeats an earlier one, and fails, does not change the pod.
func TestRepeatedAddReverted(t *testing.T) {
	f := &fakeNode{pods: []*podmanager.Attachment{attachment("c1", "web", "10.1.1.2/32")}}
	p, r, _ := newPlugin(t, f)
	if err := p.Resync(api.NewDBResync(), data(service("s"), slice("s", "s", "10.1.1.2@n1")), 1, ops{}); err != nil {
		t.Fatal(err)
	}
	before := r.String()
	ev := &podmanager.AddPod{Attachment: f.pods[0]}
	if _, err := p.Update(ev, ops{}); err != nil {
		t.Fatal(err)
	}
	if err := p.Revert(ev); err != nil {
		t.Fatal(err)
	}
	if got := r.String(); got != before || !r.Frontend.Has("tap-ns-web") {
		t.Errorf("after the revert %s, before %s", got, before)
	}
}

// TestNewerSandboxGoesFirst checks that the older one of a pod's two sandboxes is current again when the newer one is deleted.
func TestNewerSandboxGoesFirst(t *testing.T) {
	f := &fakeNode{pods: []*podmanager.Attachment{attachment("c1", "web", "10.1.1.2/32"), attachment("c2", "web", "10.1.1.3/32")}}
	f.byContainer = true
	p, r, _ := newPlugin(t, f)
	if err := p.Resync(api.NewDBResync(), data(service("s")), 1, ops{}); err != nil {
		t.Fatal(err)
	}
	if r.Frontend.Has("tap-c1") || !r.Frontend.Has("tap-c2") {
		t.Errorf("with both: %s", r.Frontend)
	}
	if _, err := p.Update(&podmanager.DeletePod{Attachment: f.pods[1]}, ops{}); err != nil {
		t.Fatal(err)
	}
	if !r.Frontend.Has("tap-c1") || r.Frontend.Has("tap-c2") {
		t.Errorf("after DEL of the newer one: %s", r.Frontend)
	}
}

// putter is a renderer that uses the transaction.
type putter struct {
	*rendertest.Recorder
	txn *Txn
}

func (p *putter) AddService(s *renderer.ContivService) error {
	p.txn.Update("mapping of "+s.ID.Name).Put("svc/"+s.ID.Name, &model.Service{})
	return nil
}

func (p *putter) Resync(ev *renderer.ResyncEventData) error {
	for _, s := range ev.Services {
		p.txn.Resync().Put("svc/"+s.ID.Name, &model.Service{})
	}
	return nil
}

// TestTransaction checks that renderers get the transaction of the event, and none outside events.
func TestTransaction(t *testing.T) {
	p, _, _ := newPlugin(t, &fakeNode{})
	r := &putter{rendertest.New(t), p.Txn()}
	p.RegisterRenderer(r)
	txn := ops{}
	if err := p.Resync(api.NewDBResync(), data(service("a")), 1, txn); err != nil || txn["svc/a"] == nil {
		t.Errorf("%v %v", err, txn)
	}
	txn = ops{}
	change, err := p.Update(changeOf(nil, service("b")), txn)
	if err != nil || txn["svc/b"] == nil || len(txn) != 1 || change != "add service ns/b: mapping of b" {
		t.Errorf("%q %v %v", change, err, txn)
	}
	p.Txn().Update("").Put("x", &model.Service{})
	p.Txn().Resync().Put("x", &model.Service{})
	if len(txn) != 1 {
		t.Errorf("an event's transaction can be reached after the event: %v", txn)
	}
}

// TestRendererFailure checks that a renderer's error is the error of the event.
func TestRendererFailure(t *testing.T) {
	p, r, _ := newPlugin(t, &fakeNode{})
	r.Err = errors.New("no room")
	if err := p.Resync(api.NewDBResync(), nil, 1, ops{}); !errors.Is(err, r.Err) {
		t.Error(err)
	}
	if _, err := p.Update(changeOf(nil, service("b")), ops{}); !errors.Is(err, r.Err) {
		t.Error(err)
	}
}

func TestHandledEvents(t *testing.T) {
	p, _, _ := newPlugin(t, &fakeNode{})
	for resource, want := range map[string]bool{"service": true, "endpointslice": true, "node": true, "pod": false,
		"policy": false} {
		if got := p.HandlesEvent(&api.KubeStateChange{Resource: resource}); got != want {
			t.Errorf("%s: %t", resource, got)
		}
	}
}

func TestREST(t *testing.T) {
	p, _, h := newPlugin(t, &fakeNode{})
	lb := service("lb")
	lb.Type, lb.ExternalLocal, lb.HealthCheckNodePort = model.Service_LOAD_BALANCER, true, 0
	if err := p.Resync(api.NewDBResync(), data(service("a"), lb, slice("a", "a", "10.1.1.2@n1")), 1, ops{}); err != nil {
		t.Fatal(err)
	}
	get := func(query string) (out []serviceReport) {
		w := httptest.NewRecorder()
		h[servicesPath](w, httptest.NewRequest(http.MethodGet, servicesPath+query, nil))
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if all := get(""); len(all) != 2 || all[0].Name != "a" {
		t.Errorf("%+v", all)
	}
	if one := get("?namespace=ns&name=a"); len(one) != 1 || one[0].Ports[0].Backends[0] != "10.1.1.2:8080 local" {
		t.Errorf("%+v", one)
	}
	if none := get("?name=nobody"); len(none) != 0 {
		t.Errorf("%+v", none)
	}
}
