package nb

import (
	"testing"

	"google.golang.org/protobuf/proto"

	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
)

func TestContiv(t *testing.T) {
	balance := &vpp_contiv.Frontend_Target{Action: vpp_contiv.Frontend_Target_BALANCE, Service: 7}
	for _, c := range []struct {
		m         proto.Message
		key, text string
	}{
		{&vpp_contiv.Config{}, "config", "plugin's settings"},
		{&vpp_contiv.Endpoint{Interface: "tap0", Role: vpp_contiv.Endpoint_POD, Name: "default/web", Addresses: []string{"10.1.0.2", "fd00::2"}},
			"endpoint/tap0", "endpoint tap0 POD default/web 10.1.0.2 fd00::2"},
		{&vpp_contiv.Network{Prefix: "10.1.2.3/16", Class: vpp_contiv.Network_POD}, "network/10.1.0.0/16", "network 10.1.2.3/16 POD"},
		{&vpp_contiv.Network{Prefix: "FD00::/16"}, "network/fd00::/16", "network FD00::/16 UNKNOWN"},
		{&vpp_contiv.SourceNAT{Name: "services", Ipv4Address: "192.0.2.1", Ipv6Address: "fd00::1"}, "source-nat/0",
			"source NAT 0 services 192.0.2.1 fd00::1"},
		{&vpp_contiv.Service{Id: 255, Name: "default/web", Backends: []*vpp_contiv.Service_Backend{{}, {}}}, "service/ff",
			"service default/web, 2 backends"},
		{&vpp_contiv.Frontend{Ip: "10.96.0.1", Port: 80, Protocol: vpp_contiv.Frontend_TCP, Name: "default/web", InCluster: balance,
			Outside: &vpp_contiv.Frontend_Target{Action: vpp_contiv.Frontend_Target_DROP}}, "frontend/ip/10.96.0.1/proto/TCP/port/80",
			"frontend 10.96.0.1 port 80 TCP of default/web: BALANCE in the cluster, DROP outside"},
		{&vpp_contiv.Frontend{Ip: "FD00::1"}, "frontend/ip/fd00::1/proto/ANY/port/0",
			"frontend FD00::1 port 0 ANY of : UNKNOWN in the cluster, UNKNOWN outside"},
		{&vpp_contiv.RangeSet{Id: 1 << 63, Prefixes: []string{"10.0.0.0/8", "fd00::/8"}}, "range-set/8000000000000000",
			"range set 8000000000000000, 2 prefixes"},
		{&vpp_contiv.IPSet{Id: 255, Name: "pods of default", Kind: vpp_contiv.IPSet_PORTS}, "ip-set/ff", "set ff of ports: pods of default"},
		{&vpp_contiv.IPSetMember{Set: 255, Prefix: "10.1.2.3/16"}, "ip-set-member/ff/net/10.1.0.0/16", "member 10.1.2.3/16 of set ff"},
		{&vpp_contiv.IPSetMember{Set: 255, Prefix: "FD00::1/128", Protocol: 6, Port: 80}, "ip-set-member/ff/net/fd00::1/128/proto/6/port/80",
			"member FD00::1/128 of set ff, protocol 6 port 80"},
		{&vpp_contiv.Policy{Id: 254, Name: "default/web", Ingress: []*vpp_contiv.Policy_Rule{{}}}, "policy/fe",
			"policy default/web, ingress 1 rule, egress 0 rules"},
		{&vpp_contiv.EndpointPolicy{Interface: "tap0", Name: "default/web"}, "endpoint-policy/tap0", "policy of tap0 default/web"},
	} {
		key, err := Key(c.m)
		if err != nil || key != "config/vpp/contiv/v1/"+c.key {
			t.Errorf("%s: key %q, %v", c.text, key, err)
		}
		if text := Describe(c.m); text != c.text {
			t.Errorf("%q, want %q", text, c.text)
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
