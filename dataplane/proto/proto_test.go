package proto

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// TestFields compares every message and enum with testdata/fields.golden, copied from felix's model: a changed number
// would silently give a peer's messages another meaning. Lines hold fields by number, so the order in the file does not
// matter.
func TestFields(t *testing.T) {
	raw, err := os.ReadFile("testdata/fields.golden")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, members, ok := strings.Cut(line, ":")
		if _, twice := want[name]; !ok || twice {
			t.Fatalf("bad golden line %q", line)
		}
		want[name] = normal(strings.TrimSpace(members))
	}
	got := map[string]string{}
	collectEnums(got, File_felixbackend_proto.Enums())
	collectMessages(got, File_felixbackend_proto.Messages())
	for name, members := range want {
		if g, ok := got[name]; !ok || g != members {
			t.Errorf("%s\n  is   %s\n  want %s", name, g, members)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is not in the golden file", name)
		}
	}
}

func normal(members string) string {
	list := strings.Split(members, ", ")
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func collectMessages(into map[string]string, messages protoreflect.MessageDescriptors) {
	for i := range messages.Len() {
		m := messages.Get(i)
		if m.IsMapEntry() {
			continue
		}
		var members []string
		for j := range m.Fields().Len() {
			members = append(members, fieldText(m.Fields().Get(j)))
		}
		into["message "+string(m.FullName())] = normal(strings.Join(members, ", "))
		collectEnums(into, m.Enums())
		collectMessages(into, m.Messages())
	}
}

func collectEnums(into map[string]string, enums protoreflect.EnumDescriptors) {
	for i := range enums.Len() {
		e := enums.Get(i)
		var members []string
		for j := range e.Values().Len() {
			v := e.Values().Get(j)
			members = append(members, string(v.Name())+"="+strconv.Itoa(int(v.Number())))
		}
		into["enum "+string(e.FullName())] = normal(strings.Join(members, ", "))
	}
}

// fieldText returns a field in the notation of the golden file.
func fieldText(f protoreflect.FieldDescriptor) string {
	s := string(f.Name()) + ":"
	if f.IsList() {
		s += "[]"
	}
	switch {
	case f.IsMap():
		s += "map<" + f.MapKey().Kind().String() + "," + f.MapValue().Kind().String() + ">"
	case f.Kind() == protoreflect.MessageKind:
		s += string(f.Message().Name())
	case f.Kind() == protoreflect.EnumKind:
		s += string(f.Enum().Name())
	default:
		s += f.Kind().String()
	}
	s += "=" + strconv.Itoa(int(f.Number()))
	if f.ContainingOneof() != nil {
		s += "?"
	}
	return s
}

// TestWire compares whole messages with bytes written down from the definition of the wire format.
func TestWire(t *testing.T) {
	tests := []struct {
		name string
		msg  proto.Message
		want []byte
	}{
		{"in sync", &ToDataplane{SequenceNumber: 7, Payload: &ToDataplane_InSync{InSync: &InSync{}}},
			[]byte{0x78, 0x07, 0x0a, 0x00}},
		{"set", &ToDataplane{Payload: &ToDataplane_IpsetUpdate{IpsetUpdate: &IPSetUpdate{
			Id: "s", Members: []string{"::1"}, Type: IPSetUpdate_NET,
		}}}, []byte{0x12, 0x0a, 0x0a, 0x01, 's', 0x12, 0x03, ':', ':', '1', 0x18, 0x02}},
		{"icmp type 0 is present", &Rule{Icmp: &Rule_IcmpType{IcmpType: 0}}, []byte{0x40, 0x00}},
		{"status", &FromDataplane{Payload: &FromDataplane_WorkloadEndpointStatusRemove{
			WorkloadEndpointStatusRemove: &WorkloadEndpointStatusRemove{Id: &WorkloadEndpointID{WorkloadId: "w"}},
		}}, []byte{0x3a, 0x05, 0x0a, 0x03, 0x1a, 0x01, 'w'}},
	}
	for _, tt := range tests {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(tt.msg)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data, tt.want) {
			t.Errorf("%s: %x, want %x", tt.name, data, tt.want)
		}
		back := tt.msg.ProtoReflect().New().Interface()
		if err := proto.Unmarshal(tt.want, back); err != nil || !proto.Equal(back, tt.msg) {
			t.Errorf("%s: read back %v (%v)", tt.name, back, err)
		}
	}
}

// TestRouteKinds checks that a route means the same whether it comes from a peer that sends a kind or from one that sends
// a set.
func TestRouteKinds(t *testing.T) {
	pairs := map[RouteType]RouteUpdate_TypeMask{
		RouteType_CIDR_INFO:       RouteUpdate_TYPES_NONE,
		RouteType_REMOTE_WORKLOAD: RouteUpdate_TYPES_REMOTE_WORKLOAD,
		RouteType_REMOTE_HOST:     RouteUpdate_TYPES_REMOTE_HOST,
		RouteType_LOCAL_WORKLOAD:  RouteUpdate_TYPES_LOCAL_WORKLOAD,
		RouteType_LOCAL_HOST:      RouteUpdate_TYPES_LOCAL_HOST,
		RouteType_REMOTE_TUNNEL:   RouteUpdate_TYPES_REMOTE_TUNNEL,
		RouteType_LOCAL_TUNNEL:    RouteUpdate_TYPES_LOCAL_TUNNEL,
		99:                        RouteUpdate_TYPES_NONE,
	}
	for kind, mask := range pairs {
		if got := (&RouteUpdate{Type: kind}).Kinds(); got != mask {
			t.Errorf("type %v means %v, want %v", kind, got, mask)
		}
		if got := (&RouteUpdate{Types: mask}).Kinds(); got != mask {
			t.Errorf("types %v means %v", mask, got)
		}
	}
	both := RouteUpdate_TYPES_REMOTE_WORKLOAD | RouteUpdate_TYPES_REMOTE_TUNNEL
	r := &RouteUpdate{Type: RouteType_LOCAL_HOST, Types: both}
	if r.Kinds() != both || !r.Is(RouteUpdate_TYPES_REMOTE_TUNNEL) || r.Is(RouteUpdate_TYPES_LOCAL_HOST) {
		t.Errorf("a set must win over the kind: %v", r.Kinds())
	}
	var none *RouteUpdate
	if none.Kinds() != RouteUpdate_TYPES_NONE {
		t.Error("no route has kinds")
	}
}
