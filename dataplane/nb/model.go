package nb

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Key returns the key of a configured object. It fails for a message that is not one, and for an object whose
// name is empty or leads out of its kind ("..").
func Key(m proto.Message) (string, error) {
	kind, known := byType[reflect.TypeOf(m)]
	if !known {
		return "", fmt.Errorf("nb: %s is not a configured object", kindOf(m))
	}
	key := kind.key(m)
	if !kind.has(key) {
		return "", fmt.Errorf("nb: %s has no usable name: its key would be %q", kindOf(m), key)
	}
	return key, nil
}

// New returns an empty message of the kind that key belongs to.
func New(key string) (proto.Message, error) {
	for _, m := range models {
		if m.has(key) {
			return m.empty(), nil
		}
	}
	return nil, fmt.Errorf("nb: key %q is of no known kind", key)
}

// MarshalJSON returns the JSON of m in the format of vpp-agent's tools: the field names of the .proto files,
// enum values by name, zero values left out.
func MarshalJSON(m proto.Message) ([]byte, error) {
	if m == nil {
		return nil, errors.New("nb: no message to encode")
	}
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("nb: encode %s: %w", kindOf(m), err)
	}
	// protojson varies its white space between builds on purpose. The stored bytes in etcd must not change
	// with the build.
	var out bytes.Buffer
	out.Grow(len(raw))
	if err := json.Compact(&out, raw); err != nil {
		return nil, fmt.Errorf("nb: encode %s: %w", kindOf(m), err)
	}
	return out.Bytes(), nil
}

// UnmarshalJSON decodes JSON into m and replaces the content of m. A field that m does not have is an error
// that names the field: a setting that is silently ignored is worse than one that is rejected.
func UnmarshalJSON(data []byte, m proto.Message) error {
	if m == nil {
		return errors.New("nb: no message to decode into")
	}
	if err := protojson.Unmarshal(data, m); err != nil {
		return fmt.Errorf("nb: decode %s: %w", kindOf(m), err)
	}
	return nil
}

// kindOf returns the full protobuf name of m's type, for use in an error.
func kindOf(m proto.Message) string {
	if m == nil {
		return "<nil>"
	}
	return string(m.ProtoReflect().Descriptor().FullName())
}
