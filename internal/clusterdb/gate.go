package clusterdb

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// gates records which keys that mark a resource as complete (Resource.Complete) exist.
type gates struct {
	keys map[string]bool // all keys of this kind; true: the key exists
	ever map[string]bool // true: the key has existed once
}

func newGates(resources []Resource) gates {
	g := gates{keys: map[string]bool{}, ever: map[string]bool{}}
	for _, r := range resources {
		if r.Complete != "" {
			g.keys[r.Complete] = false
		}
	}
	return g
}

// reset applies a snapshot.
func (g gates) reset(kvs []keyValue) {
	for key := range g.keys {
		g.keys[key] = slices.ContainsFunc(kvs, func(kv keyValue) bool { return kv.key == key })
		g.ever[key] = g.ever[key] || g.keys[key]
	}
}

// change applies changes that arrive together. again is true if a resource is complete again: then the state has to be read again,
// because changes did not count while the resource was incomplete.
func (g gates) change(kvs []keyValue) (again bool) {
	for _, kv := range kvs {
		there, gate := g.keys[kv.key]
		switch {
		case !gate:
		case kv.value == nil:
			g.keys[kv.key] = false
		case !there:
			again = true // the gate opens with the snapshot
		}
	}
	return again
}

// open reports whether the values of the resource count.
func (g gates) open(r *Resource) bool { return r.Complete == "" || g.keys[r.Complete] }

// missing returns the keys that do not exist; known is false if one of them never existed, so that there is no earlier state to use.
func (g gates) missing() (keys []string, known bool) {
	known = true
	for key, there := range g.keys {
		if !there {
			keys = append(keys, key)
			known = known && g.ever[key]
		}
	}
	slices.Sort(keys)
	return keys, known
}

// kept reports whether the value of a key stays as it is because its resource is not complete at the moment.
func (m *mirror) kept(key string) bool {
	if there, gate := m.gates.keys[key]; gate {
		return !there
	}
	r := m.resourceOf(key)
	return r != nil && !m.gates.open(r)
}

// keptNow returns kept as it is at the moment: later changes do not affect the result.
func (m *mirror) keptNow() func(key string) bool {
	now := &mirror{resources: m.resources, gates: gates{keys: maps.Clone(m.gates.keys)}}
	return now.kept
}

// gated reports whether a key belongs to a resource with a Complete key, so that its changes may be delayed.
func (m *mirror) gated(key string) bool {
	if _, gate := m.gates.keys[key]; gate {
		return false
	}
	r := m.resourceOf(key)
	return r != nil && r.Complete != ""
}

// gap is the set of Complete keys that are missing.
type gap struct {
	keys  []string
	known bool
}

// Incomplete reports which part of the state is missing, if any. waiting is true if there is no earlier state, so that no snapshot has
// been pushed yet; otherwise the last known state is in force.
func (w *Watcher) Incomplete() (waiting bool, err error) {
	g := w.gap.Load()
	if g == nil {
		return false, nil
	}
	return !g.known, fmt.Errorf("etcd: the state of the cluster is incomplete: %s%s is missing; %w", KSRPrefix, g.keys[0], errIncomplete)
}

var errIncomplete = errors.New("check that contiv-ksr runs and reaches this etcd")

// reportGap records and logs whether the state is complete. It returns true if the state is incomplete and there is no earlier state to
// use.
func (w *Watcher) reportGap() (waiting bool) {
	keys, known := w.state.gates.missing()
	was := w.gap.Load()
	switch {
	case len(keys) == 0:
		w.gap.Store(nil)
		if was != nil {
			w.Log.Info("etcd has the complete state of the cluster again")
		}
	case was == nil || was.known != known:
		w.gap.Store(&gap{keys: keys, known: known})
		what := "the last known state stays in force"
		if !known {
			what = "there is no earlier state; waiting"
		}
		w.Log.Warn("the state in etcd is not complete; "+what, "missing", KSRPrefix+keys[0],
			"fix", "check that contiv-ksr runs and reaches this etcd")
	}
	return !known
}

// recall loads from the local copy the resources that are not complete in etcd and that this process never had.
func (w *Watcher) recall(kvs []keyValue) {
	if w.Local == nil {
		return
	}
	fresh := newGates(w.Resources)
	fresh.reset(kvs)
	needed := false
	for key, there := range fresh.keys {
		needed = needed || (!there && !w.state.gates.ever[key])
	}
	if !needed {
		return
	}
	values, err := w.Local.Load()
	if err != nil {
		w.Log.Error("the local copy of the cluster state cannot be used", "error", err)
		return
	}
	local := make([]keyValue, 0, len(values))
	for key, value := range values {
		local = append(local, keyValue{key: key, value: value})
	}
	w.state.reset(local)
}
