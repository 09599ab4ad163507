package clusterdb

import (
	"errors"
	"fmt"
	"slices"
)

// gates has those of the keys that say that a resource is complete (Resource.Complete) are there.
type gates struct {
	keys map[string]bool // the keys that there can be; true: it is there
	ever map[string]bool // it has been there once
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

// reset takes a snapshot.
func (g gates) reset(kvs []keyValue) {
	for key := range g.keys {
		g.keys[key] = slices.ContainsFunc(kvs, func(kv keyValue) bool { return kv.key == key })
		g.ever[key] = g.ever[key] || g.keys[key]
	}
}

// change takes changes that come together. It is true if a resource is complete again: then the state has to be read again, since changes
// did not count while it was not.
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

// open is true while the values of the resource count.
func (g gates) open(r *Resource) bool { return r.Complete == "" || g.keys[r.Complete] }

// missing is the keys that are not there; known is false if one of them never was, so that there is nothing to go by.
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

// kept is true for keys whose values stay what they are because their resource is not complete at the moment.
func (m *mirror) kept(key string) bool {
	if there, gate := m.gates.keys[key]; gate {
		return !there
	}
	r := m.resourceOf(key)
	return r != nil && !m.gates.open(r)
}

// gated is true for keys of which the state could do without for a while.
func (m *mirror) gated(key string) bool {
	if _, gate := m.gates.keys[key]; gate {
		return false
	}
	r := m.resourceOf(key)
	return r != nil && r.Complete != ""
}

// gap is what is missing.
type gap struct {
	keys  []string
	known bool
}

// Incomplete reports what is missing of the state, if anything is. waiting is true if there is nothing else to go by, so that no snapshot
// has been pushed yet; otherwise what was known last is in force.
func (w *Watcher) Incomplete() (waiting bool, err error) {
	g := w.gap.Load()
	if g == nil {
		return false, nil
	}
	return !g.known, fmt.Errorf("etcd: %s%s is missing, with which the state of the cluster would be complete: %w", KSRPrefix,
		g.keys[0], errIncomplete)
}

var errIncomplete = errors.New("check that contiv-ksr runs and reaches this etcd")

// reportGap notes and logs whether the state is complete. It is true when nothing can be determined.
func (w *Watcher) reportGap() (waiting bool) {
	keys, known := w.state.gates.missing()
	was := w.gap.Load()
	switch {
	case len(keys) == 0:
		w.gap.Store(nil)
		if was != nil {
			w.Log.Info("etcd has the complete state again")
		}
	case was == nil || was.known != known:
		w.gap.Store(&gap{keys: keys, known: known})
		what := "what was known last stays in force"
		if !known {
			what = "there is no earlier state to go by; waiting"
		}
		w.Log.Warn("the state in etcd is not complete; "+what, "missing", KSRPrefix+keys[0],
			"advice", "check that contiv-ksr runs and reaches this etcd")
	}
	return !known
}

// recall takes from the local copy what etcd does not have (any more) in full and this process never had.
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
