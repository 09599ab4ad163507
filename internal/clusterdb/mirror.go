package clusterdb

import (
	"log/slog"
	"strings"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/plugins/controller/api"
)

// mirror is the decoded state as it was pushed last; it supplies previous values and drops changes that change nothing.
type mirror struct {
	resources []Resource
	log       *slog.Logger
	values    map[string]mirrored
	gates     gates
}

type mirrored struct {
	value proto.Message
	rev   int64
}

func newMirror(resources []Resource, log *slog.Logger) *mirror {
	return &mirror{resources: resources, log: log, values: map[string]mirrored{}, gates: newGates(resources)}
}

// resourceOf returns the resource of a key; nil if the key belongs to none.
func (m *mirror) resourceOf(key string) *Resource {
	for i := range m.resources {
		if strings.HasPrefix(key, m.resources[i].KeyPrefix) {
			return &m.resources[i]
		}
	}
	return nil
}

// decode decodes a value. A value that cannot be decoded counts as absent.
func (m *mirror) decode(r *Resource, kv keyValue) proto.Message {
	value, err := r.decode(kv.value)
	if err != nil {
		m.log.Error("a value of the cluster state cannot be read and is ignored", "key", kv.key, "error", err)
		return nil
	}
	return value
}

// decode decodes a stored value.
func (r *Resource) decode(data []byte) (proto.Message, error) {
	if r.Decode != nil {
		return r.Decode(data)
	}
	value := r.New()
	return value, decode(data, value)
}

// reset replaces the contents of the mirror with the given values, and returns them by resource. All resources are in the
// result, so that "none" differs from "not known". For resources that are not complete in kvs the mirror keeps its values.
func (m *mirror) reset(kvs []keyValue) api.KubeStateData {
	before := m.values
	m.values = make(map[string]mirrored, len(kvs))
	m.gates.reset(kvs)
	out := make(api.KubeStateData, len(m.resources))
	for _, r := range m.resources {
		out[r.Keyword] = api.KeyValuePairs{}
	}
	for _, kv := range kvs {
		r := m.resourceOf(kv.key)
		if r == nil || !m.gates.open(r) {
			continue
		}
		if value := m.decode(r, kv); value != nil {
			m.values[kv.key] = mirrored{value, kv.rev}
			out[r.Keyword][kv.key] = value
		}
	}
	for key, kept := range before {
		if r := m.resourceOf(key); !m.gates.open(r) {
			m.values[key] = kept
			out[r.Keyword][key] = kept.value
		}
	}
	return out
}

// apply applies a change and returns the event for it; nil when the key belongs to no resource or the value is not new.
func (m *mirror) apply(kv keyValue) *api.KubeStateChange {
	r := m.resourceOf(kv.key)
	prev := m.values[kv.key]
	if r == nil || kv.rev <= prev.rev || !m.gates.open(r) {
		return nil
	}
	var next proto.Message
	if kv.value != nil {
		next = m.decode(r, kv)
	}
	m.values[kv.key] = mirrored{next, kv.rev}
	if next == nil {
		delete(m.values, kv.key)
	}
	if (prev.value == nil && next == nil) || (prev.value != nil && next != nil && proto.Equal(prev.value, next)) {
		return nil
	}
	return &api.KubeStateChange{
		Resource: r.Keyword, Key: kv.key, PrevValue: prev.value, NewValue: next, PrevRev: prev.rev, Rev: kv.rev,
	}
}
