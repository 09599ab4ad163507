package kube

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/kube/model"
)

// Decoder decodes stored messages, and shares the parts that are equal in many of them. It may be used
// concurrently.
type Decoder struct{ in interner }

// Decode decodes a message of a resource.
func (d *Decoder) Decode(keyword string, data []byte) (proto.Message, error) {
	return decode(keyword, data, &d.in)
}

func decode(keyword string, data []byte, in *interner) (proto.Message, error) {
	value := model.New(keyword)
	if value == nil {
		return nil, fmt.Errorf("%q is not a known Kubernetes resource", keyword)
	}
	if err := proto.Unmarshal(data, value); err != nil {
		return nil, fmt.Errorf("stored %s: %w", keyword, err)
	}
	if slice, ok := value.(*model.EndpointSlice); ok {
		in.slice(slice)
	}
	return value, nil
}

// Encode returns the stored form of a message: the same bytes for equal messages.
func Encode(value proto.Message) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(value)
}
