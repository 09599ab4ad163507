package kube

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/controller/api"
)

// sink collects events.
type sink struct {
	events []api.Event
	err    error
}

func (s *sink) PushEvent(ev api.Event) error {
	if s.err == nil {
		s.events = append(s.events, ev)
	}
	return s.err
}

func podChange(name string, prev, next proto.Message) *api.KubeStateChange {
	return &api.KubeStateChange{Resource: "pod", Key: name, PrevValue: prev, NewValue: next}
}

func resync(local bool, resource string, kvs api.KeyValuePairs) *api.DBResync {
	return &api.DBResync{Local: local, KubeState: api.KubeStateData{resource: kvs}}
}

func TestJoin(t *testing.T) {
	s := &sink{}
	j := NewJoin(s)
	etcd, kube := j.NewPart(true), j.NewPart(false)
	push := func(p *Part, ev api.Event) {
		t.Helper()
		if err := p.PushEvent(ev); err != nil {
			t.Fatal(err)
		}
	}
	id, pod, pod2 := &model.Node{Name: "1"}, &model.Pod{Name: "a"}, &model.Pod{Name: "a", Uid: "2"}
	ids := api.KeyValuePairs{"1": id}
	push(kube, resync(true, "pod", api.KeyValuePairs{"a": pod}))
	push(kube, podChange("a", pod, pod2)) // not pushed: the first snapshot is still missing
	push(kube, podChange("b", nil, pod))
	push(kube, podChange("b", pod, nil))
	if len(s.events) != 0 {
		t.Fatalf("pushed before all parts are there: %v", s.events)
	}
	push(etcd, resync(false, "ids", ids))
	first := s.events[0].(*api.DBResync)
	if first.Local || first.KubeState["ids"]["1"] != id || first.KubeState["pod"]["a"] != pod2 ||
		len(first.KubeState["pod"]) != 1 {
		t.Errorf("first %v", first.KubeState)
	}
	delete(ids, "1") // both sides own their values
	delete(first.KubeState["pod"], "a")

	push(kube, podChange("b", nil, pod))
	s.err = api.ErrQueueFull
	if err := kube.PushEvent(podChange("c", nil, pod)); !errors.Is(err, api.ErrQueueFull) {
		t.Error(err)
	}
	if err := kube.PushEvent(resync(false, "pod", nil)); !errors.Is(err, api.ErrQueueFull) {
		t.Error(err)
	}
	s.err = nil
	push(etcd, resync(true, "ids", api.KeyValuePairs{"1": id, "2": id}))
	last := s.events[len(s.events)-1].(*api.DBResync)
	if !last.Local || len(last.KubeState["ids"]) != 2 || len(last.KubeState["pod"]) != 2 || last.KubeState["pod"]["c"] != nil {
		t.Errorf("last %v", last)
	}
	if len(s.events) != 3 {
		t.Errorf("%d events", len(s.events))
	}
}
