package nodesync

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/internal/kube/model"
	controller "contiv.dev/vswitch/plugins/controller/api"
)

func kubeNodes(names ...string) controller.KubeStateData {
	kvs := controller.KeyValuePairs{}
	for _, name := range names {
		kvs[model.Key(model.NodeKeyword, "", name)] = &model.Node{Name: name}
	}
	return controller.KubeStateData{model.NodeKeyword: kvs}
}

func nodeGone(name string) *controller.KubeStateChange {
	return &controller.KubeStateChange{
		Resource: model.NodeKeyword, Key: model.Key(model.NodeKeyword, "", name), PrevValue: &model.Node{Name: name},
	}
}

func nodeThere(name string) *controller.KubeStateChange {
	return &controller.KubeStateChange{
		Resource: model.NodeKeyword, Key: model.Key(model.NodeKeyword, "", name), NewValue: &model.Node{Name: name},
	}
}

// releasedBy runs the job while happen runs, for an hour, and returns the names of the nodes that it released.
func releasedBy(t *testing.T, d *departures, fail int, happen func()) (names []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = d.run(ctx, func(_ context.Context, name string) error {
			if fail--; fail >= 0 {
				return errors.New("the database is away")
			}
			names = append(names, name)
			return nil
		}, slog.New(slog.DiscardHandler))
	}()
	happen()
	time.Sleep(time.Hour)
	cancel()
	<-ended
	return names
}

func TestDepartures(t *testing.T) {
	claimed := Nodes{"me": {}, "a": {}, "b": {}}
	cases := map[string]struct {
		happen func(d *departures)
		fail   int
		want   int
	}{
		"all are there": {happen: func(d *departures) { d.load(kubeNodes("me", "a", "b"), claimed) }},
		"one is gone at start": {
			happen: func(d *departures) { d.load(kubeNodes("me", "a"), claimed) }, want: 1,
		},
		"Kubernetes knows nothing":           {happen: func(d *departures) { d.load(kubeNodes(), claimed) }},
		"Kubernetes does not know this node": {happen: func(d *departures) { d.load(kubeNodes("x"), claimed) }},
		"one leaves while the database is away": {happen: func(d *departures) {
			d.load(kubeNodes("me", "a", "b"), claimed)
			d.update(nodeGone("b"), claimed)
		}, fail: 3, want: 1},
		"one is created again": {happen: func(d *departures) {
			d.load(kubeNodes("me", "a", "b"), claimed)
			d.update(nodeGone("b"), claimed)
			time.Sleep(9 * time.Minute)
			d.update(nodeThere("b"), claimed)
		}},
		"this node leaves": {happen: func(d *departures) {
			d.load(kubeNodes("me", "a", "b"), claimed)
			d.update(nodeGone("b"), claimed)
			d.update(nodeGone("me"), claimed)
		}},
		"released by another agent": {happen: func(d *departures) {
			d.load(kubeNodes("me", "a"), claimed)
			time.Sleep(time.Minute)
			d.updateDue("b", false)
		}},
		"the other database was restored": {happen: func(d *departures) {
			d.load(kubeNodes("me", "a"), claimed)
			d.load(kubeNodes("me", "a"), Nodes{"me": {}, "a": {}})
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDepartures("me", 10*time.Minute)
				if got := releasedBy(t, d, c.fail, func() { c.happen(d) }); len(got) != c.want || c.want == 1 && got[0] != "b" {
					t.Errorf("released %v", got)
				}
			})
		})
	}
}

// TestDeparturesUnknown checks that an agent with an outdated view of Kubernetes, because it cannot reach the API server or has started
// from its copy on the disk, releases nothing: nodes that have joined since would lose their IDs while they run.
func TestDeparturesUnknown(t *testing.T) {
	claimed := Nodes{"me": {}, "new": {}}
	cases := map[string]struct {
		away time.Duration // from the start
		want int
	}{
		"all the time": {away: 2 * time.Hour}, "until it is due": {away: 10 * time.Minute, want: 1},
		"and comes back": {away: 30 * time.Minute},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				d := newDepartures("me", 10*time.Minute)
				d.current = func() error {
					if time.Since(start) < c.away {
						return errors.New("the API server does not respond")
					}
					return nil
				}
				got := releasedBy(t, d, 0, func() {
					d.load(kubeNodes("me"), claimed)
					if name == "and comes back" {
						time.Sleep(c.away + time.Second) // the change is reported a moment later
						d.update(nodeThere("new"), claimed)
					}
				})
				if len(got) != c.want {
					t.Errorf("released %v", got)
				}
			})
		})
	}
}
