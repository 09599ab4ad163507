package nb

import (
	"testing"

	"google.golang.org/protobuf/proto"

	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
)

func TestContiv(t *testing.T) {
	balance := &vpp_contiv.Frontend_Target{Action: vpp_contiv.Frontend_Target_BALANCE, Service: 7}
	for _, c := range []struct {
		m   proto.Message
		key string
	}{
		{&vpp_contiv.Config{}, "config"},
		{&vpp_contiv.Endpoint{Interface: "tap0", Role: vpp_contiv.Endpoint_POD, Name: "default/web", Addresses: []string{"10.1.0.2", "fd00::2"}},
			"endpoint/tap0"},
		{&vpp_contiv.Network{Prefix: "10.1.2.3/16", Class: vpp_contiv.Network_POD}, "network/10.1.0.0/16"},
		{&vpp_contiv.Network{Prefix: "FD00::/16"}, "network/fd00::/16"},
		{&vpp_contiv.SourceNAT{Name: "services", Ipv4Address: "192.0.2.1", Ipv6Address: "fd00::1"}, "source-nat/0"},
		{&vpp_contiv.Service{Id: 255, Name: "default/web", Backends: []*vpp_contiv.Service_Backend{{}, {}}}, "service/ff"},
		{&vpp_contiv.Frontend{Ip: "10.96.0.1", Port: 80, Protocol: vpp_contiv.Frontend_TCP, Name: "default/web", InCluster: balance,
			Outside: &vpp_contiv.Frontend_Target{Action: vpp_contiv.Frontend_Target_DROP}}, "frontend/ip/10.96.0.1/proto/TCP/port/80"},
		{&vpp_contiv.Frontend{Ip: "FD00::1"}, "frontend/ip/fd00::1/proto/ANY/port/0"},
		{&vpp_contiv.RangeSet{Id: 1 << 63, Prefixes: []string{"10.0.0.0/8", "fd00::/8"}}, "range-set/8000000000000000"},
		{&vpp_contiv.IPSet{Id: 255, Name: "pods of default", Kind: vpp_contiv.IPSet_PORTS}, "ip-set/ff"},
		{&vpp_contiv.IPSetMember{Set: 255, Prefix: "10.1.2.3/16"}, "ip-set-member/ff/net/10.1.0.0/16"},
		{&vpp_contiv.IPSetMember{Set: 255, Prefix: "FD00::1/128", Protocol: 6, Port: 80}, "ip-set-member/ff/net/fd00::1/128/proto/6/port/80"},
		{&vpp_contiv.Policy{Id: 254, Name: "default/web", Ingress: []*vpp_contiv.Policy_Rule{{}}}, "policy/fe"},
		{&vpp_contiv.EndpointPolicy{Interface: "tap0", Name: "default/web"}, "endpoint-policy/tap0"},
	} {
		key, err := Key(c.m)
		if err != nil || key != "config/vpp/contiv/v1/"+c.key {
			t.Errorf("key %q, %v, want %q", key, err, c.key)
		}
		if back, err := New(key); err != nil || back.ProtoReflect().Type() != c.m.ProtoReflect().Type() {
			t.Errorf("%s: %T, %v", key, back, err)
		}
	}
	for _, m := range []proto.Message{&vpp_contiv.Endpoint{}, &vpp_contiv.Network{}, &vpp_contiv.Frontend{}, &vpp_contiv.EndpointPolicy{}} {
		if key, err := Key(m); err == nil {
			t.Errorf("%T without a name, and the key %q", m, key)
		}
	}
}
