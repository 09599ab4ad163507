package nb

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	linux_interfaces "contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	linux_l3 "contiv.dev/vswitch/dataplane/nb/linux/l3"
	linux_namespace "contiv.dev/vswitch/dataplane/nb/linux/namespace"
	vpp_acl "contiv.dev/vswitch/dataplane/nb/vpp/acl"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l2 "contiv.dev/vswitch/dataplane/nb/vpp/l2"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
)

// TestFields compares every message and enum with testdata/fields.golden, which
// was copied from vpp-agent's model: a changed number would silently give old
// configuration another meaning.
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
		name, members, ok := strings.Cut(line, ": ")
		if _, twice := want[name]; !ok || twice {
			t.Fatalf("bad golden line %q", line)
		}
		want[name] = members
	}
	got := map[string]string{}
	for _, file := range []protoreflect.FileDescriptor{
		vpp_interfaces.File_ligato_vpp_interfaces_interface_proto,
		vpp_interfaces.File_ligato_vpp_interfaces_state_proto,
		vpp_l2.File_ligato_vpp_l2_bridge_domain_proto,
		vpp_l2.File_ligato_vpp_l2_fib_proto,
		vpp_l2.File_ligato_vpp_l2_xconnect_proto,
		vpp_l3.File_ligato_vpp_l3_route_proto,
		vpp_l3.File_ligato_vpp_l3_arp_proto,
		vpp_l3.File_ligato_vpp_l3_vrf_proto,
		vpp_l3.File_ligato_vpp_l3_l3_proto,
		vpp_nat.File_ligato_vpp_nat_nat_proto,
		vpp_acl.File_ligato_vpp_acl_acl_proto,
		linux_interfaces.File_ligato_linux_interfaces_interface_proto,
		linux_l3.File_ligato_linux_l3_route_proto,
		linux_l3.File_ligato_linux_l3_arp_proto,
		linux_namespace.File_ligato_linux_namespace_namespace_proto,
	} {
		collectEnums(got, file.Enums())
		collectMessages(got, file.Messages())
	}
	for name, members := range want {
		if got[name] != members {
			t.Errorf("%s\n  is   %s\n  want %s", name, got[name], members)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is not in the golden file", name)
		}
	}
}

func collectMessages(into map[string]string, messages protoreflect.MessageDescriptors) {
	for i := range messages.Len() {
		m := messages.Get(i)
		var members []string
		for j := range m.Fields().Len() {
			members = append(members, fieldText(m.Fields().Get(j)))
		}
		into["message "+string(m.FullName())] = strings.Join(members, ", ")
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
		into["enum "+string(e.FullName())] = strings.Join(members, ", ")
	}
}

// fieldText returns a field in the notation of the golden file.
func fieldText(f protoreflect.FieldDescriptor) string {
	s := string(f.Name()) + ":"
	if f.IsList() {
		s += "[]"
	}
	switch f.Kind() {
	case protoreflect.MessageKind:
		s += string(f.Message().Name())
	case protoreflect.EnumKind:
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

func TestJSON(t *testing.T) {
	tests := []struct {
		m    proto.Message
		want string
	}{
		{&vpp_interfaces.Interface{
			Name: "vxlan1", Type: vpp_interfaces.Interface_VXLAN_TUNNEL, Enabled: true, IpAddresses: []string{"10.1.1.1/24"},
			Link: &vpp_interfaces.Interface_Vxlan{Vxlan: &vpp_interfaces.VxlanLink{SrcAddress: "10.0.0.1", DstAddress: "10.0.0.2", Vni: 10}},
		}, `{"name":"vxlan1","type":"VXLAN_TUNNEL","enabled":true,"ip_addresses":["10.1.1.1/24"],` +
			`"vxlan":{"src_address":"10.0.0.1","dst_address":"10.0.0.2","vni":10}}`},
		{&linux_interfaces.Interface{
			Name: "pod", Type: linux_interfaces.Interface_TAP_TO_VPP,
			Namespace: &linux_namespace.NetNamespace{Type: linux_namespace.NetNamespace_FD, Reference: "/proc/1/ns/net"},
			Link:      &linux_interfaces.Interface_Tap{Tap: &linux_interfaces.TapLink{VppTapIfName: "tap0"}},
		}, `{"name":"pod","type":"TAP_TO_VPP","namespace":{"type":"FD","reference":"/proc/1/ns/net"},"tap":{"vpp_tap_if_name":"tap0"}}`},
		{&vpp_nat.DNat44{Label: "svc", StMappings: []*vpp_nat.DNat44_StaticMapping{{
			ExternalIp: "10.96.0.1", ExternalPort: 443, TwiceNat: vpp_nat.DNat44_StaticMapping_SELF,
			LocalIps: []*vpp_nat.DNat44_StaticMapping_LocalIP{{LocalIp: "10.1.1.2", LocalPort: 6443, Probability: 1}},
		}}}, `{"label":"svc","st_mappings":[{"external_ip":"10.96.0.1","external_port":443,` +
			`"local_ips":[{"local_ip":"10.1.1.2","local_port":6443,"probability":1}],"twice_nat":"SELF"}]}`},
		{&vpp_acl.ACL{Name: "a b", Rules: []*vpp_acl.ACL_Rule{{
			Action: vpp_acl.ACL_Rule_REFLECT, IpRule: &vpp_acl.ACL_Rule_IpRule{Ip: &vpp_acl.ACL_Rule_IpRule_Ip{}},
		}}}, `{"name":"a b","rules":[{"action":"REFLECT","ip_rule":{"ip":{}}}]}`},
		{&vpp_l3.ProxyARP{}, `{}`},
	}
	for _, tt := range tests {
		data, err := MarshalJSON(tt.m)
		if err != nil {
			t.Errorf("MarshalJSON(%v): %v", tt.m, err)
			continue
		}
		if string(data) != tt.want {
			t.Errorf("MarshalJSON(%v)\n  is   %s\n  want %s", tt.m, data, tt.want)
		}
		key, err := Key(tt.m)
		if err != nil {
			t.Fatal(err)
		}
		back, err := New(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := UnmarshalJSON(data, back); err != nil {
			t.Errorf("UnmarshalJSON(%s): %v", data, err)
		} else if !proto.Equal(back, tt.m) {
			t.Errorf("%s came back as %v, want %v", data, back, tt.m)
		}
	}
}

func TestUnmarshalJSONErrors(t *testing.T) {
	tests := []struct {
		data string
		m    proto.Message
		want string // must be part of the error
	}{
		{`{"name":"a","color":"red"}`, new(vpp_interfaces.Interface), `"color"`},
		{`{"name":"a","bond":{"id":1}}`, new(vpp_interfaces.Interface), `"bond"`}, // reserved
		{`{"rules":[{"ip_rule":{"sctp":{}}}]}`, new(vpp_acl.ACL), `"sctp"`},
		{`{"type":"WORMHOLE"}`, new(vpp_interfaces.Interface), "WORMHOLE"},
		{`{"tap":{},"memif":{}}`, new(vpp_interfaces.Interface), "oneof"},
		{`{"name":`, new(vpp_interfaces.Interface), "ligato.vpp.interfaces.Interface"},
		{`{}`, nil, "no message"},
	}
	for _, tt := range tests {
		err := UnmarshalJSON([]byte(tt.data), tt.m)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("UnmarshalJSON(%s) = %v, want an error with %q", tt.data, err, tt.want)
		}
	}
	if _, err := MarshalJSON(nil); err == nil {
		t.Error("MarshalJSON(nil): want an error")
	}
	if _, err := MarshalJSON(&vpp_acl.ACL{Name: "\xff"}); err == nil || !strings.Contains(err.Error(), "ligato.vpp.acl.ACL") {
		t.Errorf("MarshalJSON of bad UTF-8: %v, want an error that names the kind", err)
	}
}
