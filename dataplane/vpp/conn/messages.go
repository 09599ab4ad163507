package conn

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"

	"go.fd.io/govpp/api"
)

// msgType is the connection's data about one type of message that VPP may send.
type msgType struct {
	name   string
	typ    reflect.Type // the struct
	kind   api.MessageType
	retval int  // index of the field Retval, or -1
	last   bool // control_ping_reply: ends a dump
}

// coder is implemented by all generated messages.
type coder interface {
	Size() int
	Marshal([]byte) ([]byte, error)
	Unmarshal([]byte) error
}

// registry holds the messages of all linked binapi packages, by name_crc.
type registry map[string]*msgType

func newRegistry() registry {
	reg := registry{}
	for _, messages := range api.GetRegisteredMessages() {
		for key, m := range messages {
			reg[key] = newMsgType(m)
		}
	}
	return reg
}

func newMsgType(m api.Message) *msgType {
	t := &msgType{
		name: m.GetMessageName(), typ: reflect.TypeOf(m).Elem(), kind: m.GetMessageType(), retval: -1,
		last: m.GetMessageName() == "control_ping_reply",
	}
	if f, ok := t.typ.FieldByName("Retval"); ok && f.Type.Kind() == reflect.Int32 && len(f.Index) == 1 {
		t.retval = f.Index[0]
	}
	return t
}

// header returns the length of the fields before those that binapi declares: the message's number, and depending on its kind the
// client's index and the request's context.
func header(kind api.MessageType) int {
	switch kind {
	case api.RequestMessage:
		return 10
	case api.ReplyMessage, api.EventMessage:
		return 6
	default:
		return 2
	}
}

// context returns the context of the request that a message answers; false if the message is not an answer.
func (t *msgType) context(data []byte) (uint32, bool) {
	switch {
	case t.kind == api.RequestMessage && len(data) >= 10:
		return binary.BigEndian.Uint32(data[6:]), true
	case t.kind == api.ReplyMessage && len(data) >= 6:
		return binary.BigEndian.Uint32(data[2:]), true
	}
	return 0, false
}

// decode decodes a message. The generated code copies the data that it keeps, and panics on a short message.
func (t *msgType) decode(data []byte) (m api.Message, err error) {
	defer func() {
		if r := recover(); r != nil {
			m, err = nil, fmt.Errorf("%w: %s: %v", errDecode, t.name, r)
		}
	}()
	m = reflect.New(t.typ).Interface().(api.Message)
	c, ok := m.(coder)
	if !ok {
		return nil, fmt.Errorf("%w: %s is not a generated message", errDecode, t.name)
	}
	if err := c.Unmarshal(data[header(t.kind):]); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errDecode, t.name, err)
	}
	return m, nil
}

// refusal returns VPP's return value in a reply.
func (t *msgType) refusal(m api.Message) int32 {
	if t.retval < 0 {
		return 0
	}
	return int32(reflect.ValueOf(m).Elem().Field(t.retval).Int())
}

const frameHeader = 16

// appendFrame appends a request to b in the format of the socket.
func appendFrame(b []byte, id uint16, client, context uint32, req api.Message) (out []byte, err error) {
	c, ok := req.(coder)
	if !ok {
		return b, fmt.Errorf("%w: %T is not a generated message", errEncode, req)
	}
	defer func() {
		if r := recover(); r != nil {
			out, err = b, fmt.Errorf("%w: %v", errEncode, r)
		}
	}()
	kind := req.GetMessageType()
	size := header(kind) + c.Size()
	start, total := len(b), frameHeader+size
	out = grow(b, total)
	frame := out[start:]
	clear(frame)
	binary.BigEndian.PutUint32(frame[8:], uint32(size))
	msg := frame[frameHeader:]
	binary.BigEndian.PutUint16(msg, id)
	if kind == api.RequestMessage {
		binary.BigEndian.PutUint32(msg[2:], client)
		binary.BigEndian.PutUint32(msg[6:], context)
	}
	if _, err := c.Marshal(msg[header(kind):]); err != nil {
		return b, fmt.Errorf("%w: %w", errEncode, err)
	}
	return out, nil
}

func grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b[:len(b)+n]
	}
	bigger := make([]byte, len(b)+n, 2*cap(b)+n)
	copy(bigger, b)
	return bigger
}

// mutating reports whether a request, by its name, may change VPP. The words of a name describe its effect; the exceptions are
// listed.
func mutating(name string) bool {
	switch name {
	case "control_ping", "api_versions", "classify_table_ids", "classify_table_info", "classify_table_by_interface",
		"feature_is_enabled", "ip_route_lookup", "ip_route_lookup_v2", "pnat_flow_lookup",
		"sockclnt_create", "sockclnt_delete":
		return false
	}
	for word := range strings.SplitSeq(name, "_") {
		switch word {
		case "dump", "get", "show", "want":
			return false
		}
	}
	return true
}

// rawFrame makes a frame from a message that govpp has encoded.
func rawFrame(data []byte, client, context uint32) ([]byte, error) {
	if len(data) < 10 {
		return nil, fmt.Errorf("%w: request of %d bytes", errEncode, len(data))
	}
	frame := make([]byte, frameHeader+len(data))
	binary.BigEndian.PutUint32(frame[8:], uint32(len(data)))
	msg := frame[frameHeader:]
	copy(msg, data)
	binary.BigEndian.PutUint32(msg[2:], client)
	binary.BigEndian.PutUint32(msg[6:], context)
	return frame, nil
}
