package scheduler

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
)

// kind is a Descriptor[V] with its type erased, once, into closures.
type kind struct {
	name    string
	prefix  string
	rank    int
	level   int  // index of the rank among the registered ranks, ascending
	pointer bool // values are pointers: the same pointer is the same value
	implied bool
	last    bool

	calls descriptorCalls

	nodes []*node // all nodes of the kind in the graph
	stale bool    // the state of all values is unknown until a dump succeeds
	tried uint32  // the last run in which a dump was tried and failed
	dumpE error   // the error of that dump
}

// descriptorCalls holds the functions of a kind; optional ones may be nil.
type descriptorCalls struct {
	validate   func(key string, v any) error // checks the type too, never nil
	equal      func(key string, desired, applied any) bool
	deps       func(key string, v any, add func(dep string))
	refs       func(key string, v any, add func(ref string))
	create     func(op *Op, key string, v any)
	update     func(op *Op, key string, applied, desired any)
	canUpdate  func(key string, applied, desired any) bool
	remove     func(op *Op, key string, v any)
	derive     func(key string, v any, put func(kind, itemKey string, item any))
	deriveDiff func(key string, from, to any, put func(kind, itemKey string, item any), del func(itemKey string))
	dump       func(op *DumpOp, emit func(key string, v any))
	retriable  func(err error) bool
	parent     func(key string, v any) string
	leftover   func(key string, v any) bool
}

// same reports whether two values of the kind are the same pointer, without comparing their contents.
func (k *kind) same(a, b any) bool { return k.pointer && a == b }

// label returns the name under which a failed dump of the kind is reported to operators.
func (k *kind) label() string {
	if k.prefix != "" {
		return k.prefix
	}
	return k.name
}

// Register adds a descriptor. All descriptors must be registered before Start.
func Register[V any](s *Scheduler, k Descriptor[V]) error {
	typ := reflect.TypeFor[V]()
	switch {
	case k.Name == "":
		return errors.New("a kind needs a name")
	case k.Equal == nil || k.Create == nil || k.Delete == nil:
		return fmt.Errorf("kind %s: Equal, Create and Delete are required", k.Name)
	case k.CanUpdate != nil && k.Update == nil:
		return fmt.Errorf("kind %s: CanUpdate without Update", k.Name)
	case k.DeriveDiff != nil && k.Derive == nil:
		return fmt.Errorf("kind %s: DeriveDiff without Derive", k.Name)
	case k.Prefix != "" && (k.ImpliedByParent || k.Parent != nil):
		return fmt.Errorf("kind %s: only derived kinds, which have no prefix, have parents", k.Name)
	}
	e := &kind{
		name: k.Name, prefix: k.Prefix, rank: k.Rank, implied: k.ImpliedByParent, last: k.DeleteLast,
		pointer: typ.Kind() == reflect.Pointer,
		calls:   erase(k, typ),
	}
	return s.register(e)
}

// erase wraps the functions of a kind in functions of type any. validate checks the type of a value before any other function receives the
// value.
func erase[V any](k Descriptor[V], typ reflect.Type) descriptorCalls {
	var zero V
	nilable := typ.Kind() == reflect.Pointer
	c := descriptorCalls{
		validate: func(key string, v any) error {
			tv, ok := v.(V)
			if !ok {
				return fmt.Errorf("value is %T, kind %s takes %s", v, k.Name, typ)
			}
			if nilable && v == any(zero) {
				return errors.New("value is a nil pointer")
			}
			if k.Validate == nil {
				return nil
			}
			return k.Validate(key, tv)
		},
		equal:     func(key string, desired, applied any) bool { return k.Equal(key, desired.(V), applied.(V)) },
		create:    func(op *Op, key string, v any) { k.Create(op, key, v.(V)) },
		remove:    func(op *Op, key string, v any) { k.Delete(op, key, v.(V)) },
		retriable: k.Retriable,
	}
	if k.Retriable == nil {
		c.retriable = IsRetriable
	}
	eraseOptional(k, &c)
	return c
}

func eraseOptional[V any](k Descriptor[V], c *descriptorCalls) {
	if k.Deps != nil {
		c.deps = func(key string, v any, add func(string)) { k.Deps(key, v.(V), add) }
	}
	if k.Refs != nil {
		c.refs = func(key string, v any, add func(string)) { k.Refs(key, v.(V), add) }
	}
	if k.Update != nil {
		c.update = func(op *Op, key string, applied, desired any) { k.Update(op, key, applied.(V), desired.(V)) }
	}
	if k.CanUpdate != nil {
		c.canUpdate = func(key string, applied, desired any) bool { return k.CanUpdate(key, applied.(V), desired.(V)) }
	}
	if k.Derive != nil {
		c.derive = func(key string, v any, put func(kind, itemKey string, item any)) { k.Derive(key, v.(V), put) }
	}
	if k.DeriveDiff != nil {
		c.deriveDiff = func(key string, from, to any, put func(kind, itemKey string, item any), del func(string)) {
			k.DeriveDiff(key, from.(V), to.(V), put, del)
		}
	}
	if k.Dump != nil {
		c.dump = func(op *DumpOp, emit func(key string, v any)) {
			k.Dump(op, func(key string, v V) { emit(key, v) })
		}
	}
	if k.Leftover != nil {
		c.leftover = func(key string, v any) bool { return k.Leftover(key, v.(V)) }
	}
	if k.Parent != nil {
		c.parent = func(key string, v any) string { return k.Parent(key, v.(V)) }
	}
}

// registry looks up kinds by name and by key.
type registry struct {
	kinds  []*kind // ascending rank, then order of registration
	byName map[string]*kind
	levels int

	prefixes []prefix // sorted
}

// prefix is a northbound prefix; parent is the index of the longest other prefix that it begins with, or -1.
type prefix struct {
	text   string
	kind   *kind
	parent int
}

func (r *registry) add(k *kind) error {
	if r.byName[k.name] != nil {
		return fmt.Errorf("kind %s is registered twice", k.name)
	}
	for _, o := range r.kinds {
		if k.prefix != "" && o.prefix == k.prefix {
			return fmt.Errorf("kinds %s and %s have the same prefix %s", o.name, k.name, k.prefix)
		}
	}
	r.byName[k.name] = k
	r.kinds = append(r.kinds, k)
	return nil
}

// freeze prepares the look-ups, after all kinds have been added.
func (r *registry) freeze() {
	slices.SortStableFunc(r.kinds, func(a, b *kind) int { return a.rank - b.rank })
	for i, k := range r.kinds {
		if i > 0 && k.rank != r.kinds[i-1].rank {
			r.levels++
		}
		k.level = r.levels
	}
	r.levels++
	for _, k := range r.kinds {
		if k.prefix != "" {
			r.prefixes = append(r.prefixes, prefix{text: k.prefix, kind: k, parent: -1})
		}
	}
	slices.SortFunc(r.prefixes, func(a, b prefix) int { return strings.Compare(a.text, b.text) })
	for i := range r.prefixes {
		for j := i - 1; j >= 0; j-- {
			if strings.HasPrefix(r.prefixes[i].text, r.prefixes[j].text) {
				r.prefixes[i].parent = j
				break
			}
		}
	}
}

// kindOf returns the kind with the longest prefix of key. Each registered prefix of key is also a prefix of the greatest registered text that
// is not greater than key, so the search starts there and follows the parents.
func (r *registry) kindOf(key string) *kind {
	i := sort.Search(len(r.prefixes), func(i int) bool { return r.prefixes[i].text > key }) - 1
	for ; i >= 0; i = r.prefixes[i].parent {
		if strings.HasPrefix(key, r.prefixes[i].text) {
			return r.prefixes[i].kind
		}
	}
	return nil
}
