package kubeapi

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// protobufType is the content type of Kubernetes' protobuf.
const protobufType = "application/vnd.kubernetes.protobuf"

// protobufMagic is the prefix of every object (but not of every frame of a watch).
const protobufMagic = "k8s\x00"

// item is a stored object. It never changes.
type item struct {
	key   string
	obj   Object
	gvk   schema.GroupVersionKind
	proto []byte // encoding of the object alone
}

func encode(k kind, obj Object) (*item, error) {
	obj.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	var data []byte
	if p, is := obj.(protobufObject); is {
		var err error
		if data, err = p.Marshal(); err != nil {
			return nil, fmt.Errorf("encode %s %s: %w", k.resource, keyOf(obj), err)
		}
	}
	return &item{key: keyOf(obj), obj: obj, gvk: k.GroupVersionKind, proto: data}, nil
}

// wrap returns the wire form of a message: magic, type and message (the fields of runtime.Unknown).
func wrap(apiVersion, kind string, msg []byte) []byte {
	var meta []byte
	meta = protowire.AppendTag(meta, 1, protowire.BytesType)
	meta = protowire.AppendString(meta, apiVersion)
	meta = protowire.AppendTag(meta, 2, protowire.BytesType)
	meta = protowire.AppendString(meta, kind)
	out := make([]byte, 0, len(protobufMagic)+len(meta)+len(msg)+24)
	out = append(out, protobufMagic...)
	out = protowire.AppendTag(out, 1, protowire.BytesType)
	out = protowire.AppendBytes(out, meta)
	out = protowire.AppendTag(out, 2, protowire.BytesType)
	return protowire.AppendBytes(out, msg)
}

// codec encodes answers in one of the two encodings.
type codec interface {
	contentType(watch bool) string
	object(w io.Writer, it *item) error
	status(w io.Writer, st *metav1.Status) error
	list(w io.Writer, k kind, meta metav1.ListMeta, items []*item) error
	event(w io.Writer, event string, it *item) error
	statusEvent(w io.Writer, st *metav1.Status) error
}

type protobufCodec struct{}

func (protobufCodec) contentType(watch bool) string {
	if watch {
		return protobufType + ";stream=watch"
	}
	return protobufType
}

func (protobufCodec) object(w io.Writer, it *item) error {
	_, err := w.Write(wrap(it.gvk.GroupVersion().String(), it.gvk.Kind, it.proto))
	return err
}

func (protobufCodec) status(w io.Writer, st *metav1.Status) error {
	data, err := st.Marshal()
	if err != nil {
		return err
	}
	_, err = w.Write(wrap("v1", "Status", data))
	return err
}

// list writes a list. The format is the same for all kinds: metadata is field 1, items are field 2.
func (protobufCodec) list(w io.Writer, k kind, meta metav1.ListMeta, items []*item) error {
	head, err := meta.Marshal()
	if err != nil {
		return err
	}
	size := len(head) + 16
	for _, it := range items {
		size += len(it.proto) + 8
	}
	msg := make([]byte, 0, size)
	msg = protowire.AppendTag(msg, 1, protowire.BytesType)
	msg = protowire.AppendBytes(msg, head)
	for _, it := range items {
		msg = protowire.AppendTag(msg, 2, protowire.BytesType)
		msg = protowire.AppendBytes(msg, it.proto)
	}
	_, err = w.Write(wrap(k.GroupVersion().String(), k.Kind+"List", msg))
	return err
}

func (c protobufCodec) event(w io.Writer, event string, it *item) error {
	return c.frame(w, event, wrap(it.gvk.GroupVersion().String(), it.gvk.Kind, it.proto))
}

func (c protobufCodec) statusEvent(w io.Writer, st *metav1.Status) error {
	data, err := st.Marshal()
	if err != nil {
		return err
	}
	return c.frame(w, "ERROR", wrap("v1", "Status", data))
}

// frame writes the length of a metav1.WatchEvent and then the event.
func (protobufCodec) frame(w io.Writer, event string, raw []byte) error {
	data, err := (&metav1.WatchEvent{Type: event, Object: runtime.RawExtension{Raw: raw}}).Marshal()
	if err != nil {
		return err
	}
	if _, err := w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(data)))); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

type jsonCodec struct{}

func (jsonCodec) contentType(bool) string { return "application/json" }

func (jsonCodec) object(w io.Writer, it *item) error { return json.NewEncoder(w).Encode(it.obj) }

func (jsonCodec) status(w io.Writer, st *metav1.Status) error { return json.NewEncoder(w).Encode(st) }

func (jsonCodec) list(w io.Writer, k kind, meta metav1.ListMeta, items []*item) error {
	objs := make([]Object, len(items))
	for i, it := range items {
		objs[i] = it.obj
	}
	return json.NewEncoder(w).Encode(map[string]any{
		"kind": k.Kind + "List", "apiVersion": k.GroupVersion().String(), "metadata": meta, "items": objs,
	})
}

func (jsonCodec) event(w io.Writer, event string, it *item) error {
	return json.NewEncoder(w).Encode(map[string]any{"type": event, "object": it.obj})
}

func (jsonCodec) statusEvent(w io.Writer, st *metav1.Status) error {
	return json.NewEncoder(w).Encode(map[string]any{"type": "ERROR", "object": st})
}
