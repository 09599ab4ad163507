package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/servicelabel"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/controller"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync"
	"contiv.dev/vswitch/plugins/podmanager"
	"contiv.dev/vswitch/plugins/service"
	"contiv.dev/vswitch/plugins/service/processor"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/rendertest"
	"contiv.dev/vswitch/test/testbed/kubeapi"
	"contiv.dev/vswitch/test/testbed/poll"
)

// noNode is a node without pods and addresses.
type noNode struct{}

func (noNode) PodInterface(podmanager.AttachmentID) (name string, exists bool) { return }
func (noNode) NodeAddresses() []netip.Addr                                     { return nil }
func (noNode) GetHostIPs() []net.IP                                            { return nil }
func (noNode) GetHostInterconnectIfName() string                               { return "tap" }
func (noNode) GetVxlanBVIIfName() string                                       { return "" }
func (noNode) GetAllNodes() nodesync.Nodes                                     { return nil }
func (noNode) LocalAttachments() []*podmanager.Attachment                      { return nil }

// applyNothing is a dataplane without effect.
type applyNothing struct{}

func (applyNothing) Commit(_ context.Context, t *txn.Txn) (*txn.Record, error) {
	return &txn.Record{Kind: t.Kind}, nil
}
func (applyNothing) Plan(context.Context, *txn.Txn) ([]txn.Op, error) { return nil, nil }

// syncedRecorder may be read while the event loop runs.
type syncedRecorder struct {
	sync.Mutex
	*rendertest.Recorder
}

func (r *syncedRecorder) locked(f func() error) error {
	r.Lock()
	defer r.Unlock()
	return f()
}

func (r *syncedRecorder) AddService(s *renderer.ContivService) error {
	return r.locked(func() error { return r.Recorder.AddService(s) })
}

func (r *syncedRecorder) UpdateService(old, now *renderer.ContivService, others []*renderer.ContivService) error {
	return r.locked(func() error { return r.Recorder.UpdateService(old, now, others) })
}

func (r *syncedRecorder) DeleteService(s *renderer.ContivService, others []*renderer.ContivService) error {
	return r.locked(func() error { return r.Recorder.DeleteService(s, others) })
}

func (r *syncedRecorder) Resync(ev *renderer.ResyncEventData) error {
	return r.locked(func() error { return r.Recorder.Resync(ev) })
}

func (r *syncedRecorder) text() string {
	r.Lock()
	defer r.Unlock()
	return r.Recorder.String()
}

// agentParts is the path from the API server to a renderer, through the real event loop.
type agentParts struct {
	renderer *syncedRecorder
	source   *Source
	errs     chan error
}

func newAgentParts(t *testing.T, f *fakeAPI) *agentParts {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	jobs := lifecycle.NewGroup(context.Background(), log)
	parts := &agentParts{renderer: &syncedRecorder{Recorder: rendertest.New(t)}, errs: make(chan error, 100)}
	cfg := controller.DefaultConfig()
	cfg.EnableVerification, cfg.EventQueueSize = true, 4
	loop, err := controller.New(cfg, controller.Deps{
		Log: log, Applier: applyNothing{}, Jobs: jobs, OnVerificationError: func(err error) { parts.errs <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	plugin := service.New(service.Deps{
		ServiceLabel: servicelabel.Label("n1"), ContivConf: contivconf.Default(contivconf.Env{NodeName: "n1"}),
		IPNet: noNode{}, NodeSync: noNode{}, PodManager: noNode{},
	})
	plugin.RegisterRenderer(parts.renderer)
	join := NewJoin(loop)
	etcd, kube := join.NewPart(true), join.NewPart(false)
	if parts.source, err = NewSource(Deps{Client: f.client(), Events: kube, Log: log, ResyncAbove: 10}); err != nil {
		t.Fatal(err)
	}
	if err := loop.Start(plugin); err != nil {
		t.Fatal(err)
	}
	parts.source.Start(jobs)
	if err := etcd.PushEvent(&api.DBResync{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(loop.Close(), jobs.Stop(time.Minute), plugin.Close()); err != nil {
			t.Error(err)
		}
	})
	return parts
}

// randomObject returns a service or a slice of a small set.
func randomObject(r *rand.Rand) kubeapi.Object {
	name := fmt.Sprint("s", r.IntN(6))
	if r.IntN(3) == 0 {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
			Spec: corev1.ServiceSpec{
				ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{{Name: "http", Port: int32(80 + r.IntN(3))}},
			},
		}
	}
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("e", r.IntN(10)), Namespace: "ns", Labels: map[string]string{discoveryv1.LabelServiceName: name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To(int32(8080))}},
	}
	for _, host := range r.Perm(5)[:r.IntN(4)] {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{fmt.Sprint("10.1.0.", host)},
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(r.IntN(3) > 0)},
		})
	}
	return s
}

// expected returns the input of a renderer after one resync of the server's state.
func expected(t *testing.T, f *fakeAPI) string {
	r := rendertest.New(t)
	p := processor.New(processor.Config{NodeName: "n1"}, nil)
	p.RegisterRenderer(r)
	services, slicesOf := map[string]*model.Service{}, map[string]*model.EndpointSlice{}
	in := &interner{}
	for key, obj := range f.Objects("services") {
		services[key] = convertService(obj.(*corev1.Service))
	}
	for key, obj := range f.Objects("endpointslices") {
		slicesOf[key] = in.convertSlice(obj.(*discoveryv1.EndpointSlice))
	}
	err := p.Resync(&processor.Snapshot{
		Services: maps.Values(services), Slices: maps.Values(slicesOf),
		NodeInterfaces: processor.NodeInterfaces{Frontends: []string{"tap"}, Backends: []string{"tap"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.String()
}

// TestFromServerToRenderer changes objects, breaks watches, discards history and stops the server, with a tiny event
// queue; in the end renderers have the same state as after one resync, and verification has found no difference.
func TestFromServerToRenderer(t *testing.T) {
	f := newFakeAPI(t)
	rnd := rand.New(rand.NewPCG(3, 4))
	parts := newAgentParts(t, f)
	for round := range 6 {
		for range 60 {
			obj := randomObject(rnd)
			if rnd.IntN(4) == 0 {
				f.remove(obj)
			} else {
				f.put(obj)
			}
			switch rnd.IntN(40) {
			case 0:
				f.BreakWatches()
			case 1:
				f.Compact()
				f.BreakWatches()
			}
		}
		if round%3 == 2 {
			f.Fail(http.StatusServiceUnavailable)
			f.BreakWatches()
			f.put(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("away", round), Namespace: "ns"},
				Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.9"}})
			f.Fail(0)
		}
		want := expected(t, f)
		poll.Succeeds(t, fmt.Sprint("round ", round), 10*time.Second, func() error {
			if got := parts.renderer.text(); got != want {
				return fmt.Errorf("renderer has\n%swant\n%s", got, want)
			}
			return nil
		})
	}
	select {
	case err := <-parts.errs:
		t.Errorf("verification: %v", err)
	default:
	}
}
