package controller

import (
	"errors"
	"testing"
	"time"

	"contiv.dev/vswitch/plugins/controller/api"
)

// TestRemovalHelps checks that an object that makes the start-up resync fail, and that is then removed, does not prevent the start of the
// node. Changes that arrived meanwhile are not lost, and a queued snapshot keeps its position among older and newer changes.
func TestRemovalHelps(t *testing.T) {
	has := map[string]bool{}
	h := &hook{name: "h", resync: func(_ api.Event, kube api.KubeStateData, _ int, _ api.ResyncOperations) error {
		clear(has)
		for key := range kube["item"] {
			has[key] = true
		}
		if has["bad"] {
			return errors.New("a bad object")
		}
		return nil
	}}
	s := simOf(t, h)
	s.push(dbResync(map[string]string{"a": "1", "bad": "1"}))
	s.push(&api.KubeStateChange{Resource: "item", Key: "b", NewValue: str("2")})
	s.push(&api.KubeStateChange{Resource: "item", Key: "bad", PrevValue: str("1")})
	if s.c.ready() {
		t.Error("ready with a start-up resync that has failed")
	}
	s.advance(time.Minute)
	if ready := s.c.ready(); !ready || !has["a"] || !has["b"] || has["bad"] {
		t.Errorf("ready: %t, the handler has %v", ready, has)
	}
	if n := s.c.queue.length(); n != 0 {
		t.Errorf("%d events wait", n)
	}
}

// TestFoldStopsAtSnapshots checks that changes behind a queued snapshot, which are newer than the snapshot, are not folded.
func TestFoldStopsAtSnapshots(t *testing.T) {
	q := newQueue(10, func(api.Event) bool { return true })
	first, second := &api.KubeStateChange{Key: "1"}, &api.KubeStateChange{Key: "2"}
	ping := newPing("p", false)
	for _, ev := range []api.Event{first, ping, dbResync(nil), second} {
		if err := q.push(ev); err != nil {
			t.Fatal(err)
		}
	}
	taken := q.takeChanges()
	if len(taken) != 1 || taken[0].ev != api.Event(first) || q.length() != 3 {
		t.Errorf("%d taken, %d left", len(taken), q.length())
	}
}
