package controller

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/txn"
)

// external holds, by source, the configuration that does not come from plugins. It is merged over the plugins' configuration, source by
// source in the order of their names, so the outcome does not depend on the order of arrival.
type external map[string]map[string]proto.Message

// change applies an ExternalConfigChange.
func (x external) change(ev *ExternalConfigChange) {
	kvs := x[ev.Source]
	if kvs == nil {
		kvs = map[string]proto.Message{}
		x[ev.Source] = kvs
	}
	for key, value := range ev.UpdatedKVs {
		if value == nil {
			delete(kvs, key)
			continue
		}
		kvs[key] = value
	}
	if len(kvs) == 0 {
		delete(x, ev.Source)
	}
}

// resync applies an ExternalConfigResync.
func (x external) resync(ev *ExternalConfigResync) {
	delete(x, ev.Source)
	if kvs := cloneKVs(ev.KVs); len(kvs) > 0 {
		x[ev.Source] = kvs
	}
}

// keys returns all keys with external configuration, sorted.
func (x external) keys() []string {
	all := map[string]struct{}{}
	for _, kvs := range x {
		for key := range kvs {
			all[key] = struct{}{}
		}
	}
	return sortedKeys(all)
}

// merge returns the value to configure under key. internal is the plugins' value and may be nil. A value that cannot be merged because it
// is of another type is left out and reported.
func (x external) merge(key string, internal proto.Message) (proto.Message, error) {
	merged, cloned := internal, false
	var errs []error
	for _, source := range sortedKeys(x) {
		value := x[source][key]
		switch {
		case value == nil:
		case merged == nil:
			merged = value
		case merged.ProtoReflect().Descriptor() != value.ProtoReflect().Descriptor():
			errs = append(errs, fmt.Errorf("source %s: %s: a %s cannot be merged over a %s", source, key,
				value.ProtoReflect().Descriptor().FullName(), merged.ProtoReflect().Descriptor().FullName()))
		default:
			if !cloned {
				merged, cloned = proto.Clone(merged), true
			}
			proto.Merge(merged, value)
		}
	}
	return merged, errors.Join(errs...)
}

// values returns the list for the dataplane: the transaction's values, merged with external configuration, and the extra (sorted) keys
// whose external configuration may have changed. current returns the plugins' values of keys that are not in the transaction.
func (x external) values(tx *transaction, extra []string, current func(string) proto.Message) ([]txn.KV, error) {
	out := make([]txn.KV, 0, len(tx.order)+len(extra))
	var errs []error
	add := func(key string, internal proto.Message) {
		value, err := x.merge(key, internal)
		if err != nil {
			errs = append(errs, err)
		}
		if value != nil || !tx.resync {
			out = append(out, txn.KV{Key: key, Value: value})
		}
	}
	for _, key := range tx.order {
		add(key, tx.values[key].value)
	}
	for _, key := range extra {
		if !tx.touched(key) {
			add(key, current(key))
		}
	}
	return out, errors.Join(errs...)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
