package nodesync

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"contiv.dev/vswitch/internal/kube/model"
	controller "contiv.dev/vswitch/plugins/controller/api"
)

// lookouts is the number of checks, during the time in which a node may be missing, whether the agent still receives data from Kubernetes.
const lookouts = 10

// departures tracks the nodes that have an ID and are not nodes of Kubernetes. A Node object may be deleted for a short time and created
// again; if it stays missing, the node is permanently deleted, and its ID is released. Every agent would do that. Each agent adds a random
// delay, so that usually one agent releases the ID and the others find it released. An agent that does not receive data from Kubernetes
// releases nothing.
type departures struct {
	after time.Duration // 0: nothing is released
	own   string
	now   func() time.Time
	// current returns the reason why the view of Kubernetes may be outdated, or nil.
	current func() error

	// used by the event loop only
	kube map[string]bool // nodes of Kubernetes; valid only if it contains this node

	mu   sync.Mutex
	due  map[string]time.Time // guarded by mu; by node name
	wake chan struct{}
}

func newDepartures(own string, after time.Duration) *departures {
	return &departures{
		own: own, after: after, now: time.Now, current: func() error { return nil },
		kube: map[string]bool{}, due: map[string]time.Time{}, wake: make(chan struct{}, 1),
	}
}

// known reports whether the nodes of Kubernetes are known: a view that lacks this node is incomplete.
func (d *departures) known() bool { return d.after > 0 && d.kube[d.own] }

// load replaces the nodes by those of a snapshot.
func (d *departures) load(data controller.KubeStateData, nodes Nodes) {
	clear(d.kube)
	for _, node := range model.Values[*model.Node](data, model.NodeKeyword) {
		d.kube[node.GetName()] = true
	}
	d.updateAll(nodes)
}

// update applies a change of a Node object.
func (d *departures) update(ev *controller.KubeStateChange, nodes Nodes) {
	prev, next := model.Change[*model.Node](ev)
	name := prev.GetName()
	if next != nil {
		name = next.GetName()
		d.kube[name] = true
	} else {
		delete(d.kube, name)
	}
	if name == d.own {
		d.updateAll(nodes)
		return
	}
	d.updateDue(name, nodes[name] != nil)
}

func (d *departures) updateAll(nodes Nodes) {
	d.mu.Lock()
	for name := range d.due {
		if nodes[name] == nil {
			delete(d.due, name)
		}
	}
	d.mu.Unlock()
	for name := range nodes {
		d.updateDue(name, true)
	}
}

// updateDue updates the due time of one node; claimed reports whether it has an ID.
func (d *departures) updateDue(name string, claimed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.known() || !claimed || d.kube[name] || name == d.own {
		delete(d.due, name)
		return
	}
	if _, waits := d.due[name]; !waits {
		d.due[name] = d.later()
		d.signal()
	}
}

// later returns the due time of a node that is missing from now on.
func (d *departures) later() time.Time { return d.now().Add(d.after + rand.N(d.after/4+1)) }

// postpone restarts the waiting times: a node that seems to be missing may have joined unnoticed.
func (d *departures) postpone() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.due {
		d.due[name] = d.later()
	}
}

func (d *departures) signal() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// first returns a node that is due, or else the time until the next one is due; 0 if no node waits.
func (d *departures) first() (name string, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	for n, due := range d.due {
		left := due.Sub(now)
		if left <= 0 {
			return n, 0
		}
		if wait == 0 || left < wait {
			wait = left
		}
	}
	return "", wait
}

// run releases the IDs of nodes that are due, until ctx ends.
func (d *departures) run(ctx context.Context, release func(context.Context, string) error, log *slog.Logger) error {
	for {
		if err := d.current(); err != nil {
			d.postpone()
		}
		name, wait := d.first()
		if name != "" {
			log.Info("this node is not in Kubernetes any more: its ID is released", "node", name)
			err := release(ctx, name)
			if err != nil && !errors.Is(err, errNoSuchNode) {
				log.Warn("release failed; retrying", "node", name, "error", err)
			}
			d.done(name, err)
			continue
		}
		var timer <-chan time.Time
		if wait > 0 {
			timer = time.After(min(wait, max(d.after/lookouts, minBackoff)))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer:
		case <-d.wake:
		}
	}
}

// done removes the node, or postpones it after a failure. The change of the record arrives as an event.
func (d *departures) done(name string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, waits := d.due[name]; !waits {
		return
	}
	if err == nil || errors.Is(err, errNoSuchNode) {
		delete(d.due, name)
		return
	}
	d.due[name] = d.now().Add(max(d.after/10, minBackoff))
}
