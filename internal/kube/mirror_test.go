package kube

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/controller/api"
)

// follower receives events, and checks that they are consistent.
type follower struct {
	t       *testing.T
	state   map[string]proto.Message
	resyncs int
}

func (f *follower) take(ev api.Event) {
	f.t.Helper()
	switch ev := ev.(type) {
	case *api.DBResync:
		f.resyncs++
		f.state = map[string]proto.Message{}
		for _, kvs := range ev.KubeState {
			maps.Copy(f.state, kvs)
		}
	case *api.KubeStateChange:
		if !equal(f.state[ev.Key], ev.PrevValue) {
			f.t.Errorf("%s was %v, told %v", ev.Key, ev.PrevValue, f.state[ev.Key])
		}
		if equal(ev.PrevValue, ev.NewValue) {
			f.t.Errorf("%s: no change", ev.Key)
		}
		if ev.NewValue == nil {
			delete(f.state, ev.Key)
		} else {
			f.state[ev.Key] = ev.NewValue
		}
	}
}

func same(a, b map[string]proto.Message) bool { return maps.EqualFunc(a, b, equal) }

// TestMirrorProperty checks that, after any events in any order and at any speed, the follower has received exactly the current state; and
// that a copy that is saved at random times has the current state in the end.
func TestMirrorProperty(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 7))
		kinds := []string{model.PodKeyword, model.NamespaceKeyword}
		m := newMirror(kinds, []int{3, 1000}[r.IntN(2)])
		m.saved = true
		f := &follower{t: t}
		truth, saved := map[string]proto.Message{}, map[string]proto.Message{}
		value := func(keyword string) (string, proto.Message) {
			name, version := fmt.Sprint(r.IntN(5)), fmt.Sprint(r.IntN(3))
			if keyword == model.PodKeyword {
				return model.Key(keyword, "ns", name), &model.Pod{Name: name, Uid: version}
			}
			return model.Key(keyword, "", name), &model.Namespace{Name: name, Labels: map[string]string{"v": version}}
		}
		complete := map[string]bool{}
		list := func(keyword string) {
			values := map[string]proto.Message{}
			for range r.IntN(6) {
				key, v := value(keyword)
				values[key] = v
			}
			maps.DeleteFunc(truth, func(key string, _ proto.Message) bool { return model.KeywordOf(key) == keyword })
			maps.Copy(truth, values)
			m.replace(keyword, values)
			complete[keyword] = true
		}
		for range r.IntN(60) {
			keyword := kinds[r.IntN(2)]
			switch n := r.IntN(20); {
			case n < 10:
				if !complete[keyword] {
					continue
				}
				key, v := value(keyword)
				if r.IntN(3) == 0 {
					v = nil
					delete(truth, key)
				} else {
					truth[key] = v
				}
				m.set(keyword, key, v)
			case n < 12:
				list(keyword)
			case n < 17:
				if ev := m.next(); ev != nil {
					f.take(ev)
				}
			case n == 17:
				base := map[string]proto.Message{}
				for range r.IntN(5) {
					key, v := value(keyword)
					base[key] = v
				}
				if ev := m.local(base); ev != nil {
					f.take(ev)
				}
			case n == 18:
				m.requestResync()
			default:
				save(saved, m.takeUnsaved())
			}
		}
		for _, keyword := range kinds {
			if !complete[keyword] {
				list(keyword)
			}
		}
		for ev := m.next(); ev != nil; ev = m.next() {
			f.take(ev)
		}
		save(saved, m.takeUnsaved())
		if !same(f.state, truth) {
			t.Fatalf("seed %d: told %v, is %v", seed, f.state, truth)
		}
		if !same(saved, truth) {
			t.Fatalf("seed %d: saved %v, is %v", seed, saved, truth)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func save(into, values map[string]proto.Message) {
	for key, v := range values {
		if v == nil {
			delete(into, key)
		} else {
			into[key] = v
		}
	}
}

// TestMirrorFlapping checks that an object that is repeatedly added and deleted while events are not taken costs no memory.
func TestMirrorFlapping(t *testing.T) {
	m := newMirror([]string{model.PodKeyword}, 10)
	m.replace(model.PodKeyword, nil)
	m.next()
	for range 10000 {
		m.set(model.PodKeyword, "k8s/pod/a/namespace/b", &model.Pod{Name: "a"})
		m.set(model.PodKeyword, "k8s/pod/a/namespace/b", nil)
	}
	if ev := m.next(); ev != nil {
		t.Errorf("event %v", ev)
	}
	if n := cap(m.order); n > 100 || len(m.unsaved) > 0 {
		t.Errorf("the order has room for %d keys, %d are unsaved", n, len(m.unsaved))
	}
}
