package kubeapi

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// historyLimit is the number of changes of a resource that are kept for watches.
const historyLimit = 50_000

// table holds the objects of a resource.
type table struct {
	kind    kind
	objects map[string]*item
	history []change
	compact int64         // changes up to this revision have been discarded
	changed chan struct{} // closed and replaced when something changes
	requests
	absent bool // the resource does not exist
}

// requests counts the requests of clients for a resource.
type requests struct {
	Lists, Watches int
	Query          string // of the last request
}

// change is a change of one object; now is nil if the object was deleted, before if it is new.
type change struct {
	rv          int64
	now, before *item
}

func sameType(a, b Object) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }

func keyOf(obj Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

// Put creates or replaces objects. They are copied.
func (s *Server) Put(objs ...Object) error {
	for _, obj := range objs {
		copied, ok := obj.DeepCopyObject().(Object)
		if !ok {
			return fmt.Errorf("%T cannot be served", obj)
		}
		if err := s.put(copied); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) put(obj Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.tableOf(obj)
	if !ok {
		return fmt.Errorf("%T is not served: add it to kinds", obj)
	}
	before := t.objects[keyOf(obj)]
	s.rv++
	obj.SetResourceVersion(strconv.FormatInt(s.rv, 10))
	if obj.GetUID() == "" {
		obj.SetUID(types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", s.rv>>32, s.rv)))
		if before != nil {
			obj.SetUID(before.obj.GetUID())
		}
	}
	now, err := encode(t.kind, obj)
	if err != nil {
		return err
	}
	t.objects[now.key] = now
	t.record(change{s.rv, now, before})
	return nil
}

// Delete deletes objects; objects that do not exist cause no error.
func (s *Server) Delete(objs ...Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, obj := range objs {
		t, ok := s.tableOf(obj)
		if !ok {
			return fmt.Errorf("%T is not served", obj)
		}
		before := t.objects[keyOf(obj)]
		if before == nil {
			continue
		}
		delete(t.objects, before.key)
		s.rv++
		// Watches receive the last state with the revision of the deletion.
		gone := before.obj.DeepCopyObject().(Object)
		gone.SetResourceVersion(strconv.FormatInt(s.rv, 10))
		last, err := encode(t.kind, gone)
		if err != nil {
			return err
		}
		t.record(change{s.rv, nil, last})
	}
	return nil
}

// record adds a change and wakes the watches.
func (t *table) record(c change) {
	t.history = append(t.history, c)
	if len(t.history) > historyLimit {
		drop := len(t.history) / 2
		t.compact = t.history[drop-1].rv
		t.history = slices.Clone(t.history[drop:]) // cloned, because watches may refer to a part of the old slice
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

// since returns the changes after a revision; ok is false if they have been discarded.
func (t *table) since(rv int64) (changes []change, ok bool) {
	if rv < t.compact {
		return nil, false
	}
	i, _ := slices.BinarySearchFunc(t.history, rv+1, func(c change, rv int64) int { return int(c.rv - rv) })
	return t.history[i:], true
}

// after returns up to limit (0: all) selected objects whose keys come after key, in order; more reports whether some
// remain.
func (t *table) after(key string, limit int, sel selection) (items []*item, more bool) {
	for k, it := range t.objects {
		if k > key && sel.has(it) {
			items = append(items, it)
		}
	}
	slices.SortFunc(items, func(a, b *item) int { return strings.Compare(a.key, b.key) })
	if limit > 0 && len(items) > limit {
		return items[:limit], true
	}
	return items, false
}

// Objects returns the objects of a resource by key (namespace/name). The caller must not change them.
func (s *Server) Objects(resource string) map[string]Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]Object{}
	if t := s.tables[resource]; t != nil {
		for key, it := range t.objects {
			out[key] = it.obj
		}
	}
	return out
}
