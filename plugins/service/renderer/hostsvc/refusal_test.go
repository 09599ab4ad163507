package hostsvc

import (
	"errors"
	"maps"
	"slices"
	"testing"

	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/internal/problem"
	"contiv.dev/vswitch/plugins/service/processor"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// reported holds the problems of services.
type reported map[svcmodel.ID][]problem.Problem

func (t reported) Set(o *model.Service, list []problem.Problem) {
	t[svcmodel.ID{Namespace: o.GetNamespace(), Name: o.GetName()}] = list
}
func (t reported) Delete(id svcmodel.ID) { delete(t, id) }

// TestBadObject checks that a start-up resync skips an object that cannot be rendered, without harm to the object whose key it would have
// had.
func TestBadObject(t *testing.T) {
	s := &store{values: map[string]pb.Message{}}
	users := reported{}
	p := processor.New(processor.Config{NodeName: "n1", Problems: users}, nil)
	p.RegisterRenderer(New(Deps{Txn: s}))
	object := func(namespace, name, ip string) *model.Service {
		return &model.Service{Namespace: namespace, Name: name, ClusterIps: []string{ip},
			Ports: []*model.ServicePort{{Name: "http", Port: 80}}}
	}
	good := object("default", "web", "10.96.0.1")
	bad := []*model.Service{object("..", "..", "10.96.0.2"), object("default", "../../../x", "10.96.0.3"),
		object("other", "../default/web", "10.96.0.4"), object("", "", "10.96.0.5")}
	err := p.Resync(&processor.Snapshot{Services: slices.Values(append(bad, good)), Slices: slices.Values[[]*model.EndpointSlice](nil)})
	if err != nil {
		t.Fatalf("the start-up resync fails: %v", err)
	}
	if len(s.values) != 1 || len(s.service(t).Ports) != 1 || s.service(t).Ports[0].Frontends[0].Address[3] != 1 {
		t.Errorf("values %v", slices.Collect(maps.Keys(s.values)))
	}
	if len(users) != len(bad) {
		t.Errorf("problems %v", users)
	}
	if _, err := p.UpdateService(bad[0]); err != nil {
		t.Error(err)
	}
	if _, err := p.DeleteService(svcmodel.ID{Namespace: "..", Name: ".."}); err != nil || len(users) != len(bad)-1 {
		t.Errorf("%v, problems %v", err, users)
	}
}

// picky refuses services with certain names.
type picky struct {
	*Renderer
	name string
}

func (r *picky) refuse(s *renderer.ContivService) error {
	if s.ID.Name == r.name {
		return renderer.Refuse(s.ID, errors.New("too odd"))
	}
	return nil
}

func (r *picky) AddService(s *renderer.ContivService) error {
	return errors.Join(r.refuse(s), r.Renderer.AddService(s))
}

func (r *picky) UpdateService(old, s *renderer.ContivService, others []*renderer.ContivService) error {
	return errors.Join(r.refuse(s), r.Renderer.UpdateService(old, s, others))
}

func (r *picky) Resync(ev *renderer.ResyncEventData) error {
	errs := []error{r.Renderer.Resync(ev)}
	for _, s := range ev.Services {
		errs = append(errs, r.refuse(s))
	}
	return errors.Join(errs...)
}

// TestRefusal checks that a service that a renderer refuses is reported to users, is not a failure of the event, and is no problem any more
// when the renderer accepts it.
func TestRefusal(t *testing.T) {
	users := reported{}
	r := &picky{New(Deps{Txn: &store{values: map[string]pb.Message{}}}), "odd"}
	p := processor.New(processor.Config{NodeName: "n1", Problems: users}, nil)
	p.RegisterRenderer(r)
	odd := &model.Service{Namespace: "ns", Name: "odd", ClusterIps: []string{"10.96.0.1"},
		Ports: []*model.ServicePort{{Name: "http", Port: 80}}}
	all := slices.Values([]*model.Service{odd})
	none := slices.Values[[]*model.EndpointSlice](nil)
	id := svcmodel.ID{Namespace: "ns", Name: "odd"}
	refused := func(what string, err error, want bool) {
		t.Helper()
		is := len(users[id]) == 1 && users[id][0].Reason == processor.ReasonRefused
		if err != nil || is != want {
			t.Errorf("%s: %v, problems %v", what, err, users)
		}
	}
	refused("resync", p.Resync(&processor.Snapshot{Services: all, Slices: none}), true)
	changed := pb.CloneOf(odd)
	changed.Ports[0].Port = 81
	_, err := p.UpdateService(changed)
	refused("update", err, true)
	r.name = "other"
	_, err = p.UpdateService(odd)
	refused("taken", err, false)
	r.name = "odd"
	refused("resync again", p.Resync(&processor.Snapshot{Services: all, Slices: none}), true)
	r.name = ""
	refused("and taken", p.Resync(&processor.Snapshot{Services: all, Slices: none}), false)
}
