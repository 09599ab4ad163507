package podmanager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/internal/cniapi"
)

func TestStatus(t *testing.T) {
	r := newRig(t)
	status := &cniapi.Request{Version: 1, Command: cniapi.Status}
	if _, err := r.do(status); err != nil {
		t.Fatal(err)
	}
	var vpp, pool error
	r.check.Health = []HealthCheck{
		{Name: "VPP", Check: func(context.Context) error { return vpp }},
		{Name: "addresses", Check: func(context.Context) error { return pool }},
	}
	if _, err := r.do(status); err != nil {
		t.Fatal(err)
	}
	pool = errors.New("none left of 10.1.1.0/24")
	_, err := r.do(status)
	wantCode(t, err, cniapi.CodeNotAvailable, "addresses: none left")
	vpp = fmt.Errorf("connection lost: %w", ErrLimitedConnectivity)
	_, err = r.do(status)
	wantCode(t, err, cniapi.CodeLimitedConnectivity, "VPP: connection lost: existing pods may have limited connectivity; addresses: none left")
}

type verifier struct{ err error }

func (v *verifier) CheckAttachment(context.Context, *Attachment) error { return v.err }

func TestCheck(t *testing.T) {
	r := newRig(t)
	res := r.add("c1", "web")
	req := addReq("c1", "web")
	req.Command, req.PrevResult = cniapi.Check, res
	v := &verifier{}
	r.check.Verifier = v
	if _, err := r.do(req); err != nil {
		t.Fatal(err)
	}
	v.err = errors.New("no route to 10.1.0.2")
	_, err := r.do(req)
	wantCode(t, err, cniapi.CodeInternal, "no route to 10.1.0.2")
	v.err = nil

	change := func(f func(*cniapi.Request)) error {
		bad, prev := *req, *res
		prev.Interfaces, prev.IPs = slices.Clone(res.Interfaces), slices.Clone(res.IPs)
		bad.PrevResult = &prev
		f(&bad)
		_, err := r.do(&bad)
		return err
	}
	wantCode(t, change(func(q *cniapi.Request) { q.ContainerID = "c9" }), cniapi.CodeUnknownContainer, "no such attachment")
	wantCode(t, change(func(q *cniapi.Request) { q.Netns = "/run/netns/c9" }), cniapi.CodeInvalidNetns, "does not exist")
	wantCode(t, change(func(q *cniapi.Request) { q.Pod.Name = "db" }), cniapi.CodeInternal, "belongs to pod default/web")
	wantCode(t, change(func(q *cniapi.Request) { q.PrevResult.Interfaces[1].Sandbox = "/x" }), cniapi.CodeInvalidConfig, "has no eth0")
	wantCode(t, change(func(q *cniapi.Request) { q.PrevResult.IPs = nil }), cniapi.CodeInternal, "lacks 10.1.0.2/32")
	wantCode(t, change(func(q *cniapi.Request) {
		q.PrevResult.IPs = append(q.PrevResult.IPs, cniapi.IP{Interface: 1, Address: netip.MustParsePrefix("9.9.9.9/32")})
	}), cniapi.CodeInternal, "not an address of pod")
	// Later plugins of the chain may add interfaces and change MACs.
	if err := change(func(q *cniapi.Request) {
		q.PrevResult.Interfaces[1].MAC = "02:00:00:00:00:99"
		q.PrevResult.Interfaces = append(q.PrevResult.Interfaces, cniapi.Interface{Name: "ifb0"})
		q.PrevResult.IPs = append(q.PrevResult.IPs, cniapi.IP{Interface: 2, Address: netip.MustParsePrefix("9.9.9.9/32")})
	}); err != nil {
		t.Error(err)
	}
	r.ns.set("/run/netns/c1", 777)
	_, err = r.do(req)
	wantCode(t, err, cniapi.CodeInternal, "belongs to pod")
}

func TestGC(t *testing.T) {
	r := newRig(t)
	for _, c := range []string{"a", "b", "c"} {
		r.add(c, "pod-"+c)
	}
	other := addReq("d", "pod-d")
	other.Network.Name = "storage"
	if _, err := r.do(other); err != nil {
		t.Fatal(err)
	}
	pruned := 0
	r.check.Prune = func(context.Context) error { pruned++; return nil }
	gc := &cniapi.Request{Version: 1, Command: cniapi.GC, Network: cniapi.Network{Name: "contiv"},
		ValidAttachments: []cniapi.AttachmentRef{{ContainerID: "b", IfName: "eth0"}, {ContainerID: "c", IfName: "net1"}}}
	if _, err := r.do(gc); err != nil {
		t.Fatal(err)
	}
	r.consistent()
	var left []string
	for _, a := range r.pm.LocalAttachments() {
		left = append(left, a.ID.String())
	}
	if !slices.Equal(left, []string{"b/eth0", "d/eth0"}) || pruned != 1 {
		t.Errorf("left %v, pruned %d times", left, pruned)
	}
	r.check.Prune = func(context.Context) error { return errors.New("VPP is away") }
	_, err := r.do(gc)
	wantCode(t, err, cniapi.CodeInternal, "prune dataplane: VPP is away")
}

type handlers map[string]http.HandlerFunc

func (h handlers) RegisterHTTPHandler(path string, handler http.HandlerFunc, _ ...string) {
	h[path] = handler
}

func TestRESTAndMetrics(t *testing.T) {
	r := newRig(t)
	r.add("old", "web")
	r.loop.close()
	h, reg := handlers{}, prometheus.NewRegistry()
	loop := newFakeLoop()
	pm, err := newPodManager(Config{StoreDir: r.dir}, Deps{EventLoop: loop, HTTPHandlers: h, Metrics: reg}, system{netns: r.ns.look})
	if err != nil {
		t.Fatal(err)
	}
	r.pm, r.net.pm, r.loop = pm, pm, loop
	r.loop.handlers = append(r.loop.handlers, pm, r.net)
	go loop.run()
	t.Cleanup(loop.close)
	r.resync()
	r.add("new", "web")
	rec := httptest.NewRecorder()
	h[podsPath](rec, httptest.NewRequest(http.MethodGet, podsPath, nil))
	var list []podInfo
	if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].ContainerID != "old" || list[0].Current || !list[1].Current || list[1].Addresses[0].String() != "10.1.0.3/32" {
		t.Errorf("got %s", rec.Body)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
	}
	if !slices.Equal(names, []string{"contiv_cni_add_stage_duration_seconds", "contiv_cni_attachments", "contiv_cni_request_duration_seconds"}) {
		t.Errorf("metrics %v", names)
	}
}

// TestRepeatedAddRepairs checks that an ADD does not report a pod as connected that is no longer connected.
func TestRepeatedAddRepairs(t *testing.T) {
	r := newRig(t)
	first := r.add("c1", "web")
	v := &verifier{err: errors.New("eth0 is gone")}
	repairs := 0
	r.check.Verifier = v
	r.check.Prune = func(context.Context) error { repairs++; return nil }
	_, err := r.do(addReq("c1", "web"))
	wantCode(t, err, cniapi.CodeInternal, "delete its sandbox: eth0 is gone")
	r.check.Prune = func(context.Context) error { repairs++; v.err = nil; return nil }
	for range 2 { // the second time there is nothing to repair
		if again, err := r.do(addReq("c1", "web")); err != nil || fmt.Sprint(again) != fmt.Sprint(first) {
			t.Errorf("%+v, %v; want %+v", again, err, first)
		}
	}
	if repairs != 2 {
		t.Errorf("%d repairs, want one for each ADD that found a fault", repairs)
	}
	r.consistent()
}
