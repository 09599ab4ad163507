package nb

import (
	"testing"

	"google.golang.org/protobuf/proto"

	vpp_cnat "contiv.dev/vswitch/dataplane/nb/vpp/cnat"
)

func TestCnat(t *testing.T) {
	backend := []*vpp_cnat.Translation_Backend{{Ip: "fd00::2", Port: 8080}}
	for _, tt := range []struct {
		m         proto.Message
		key, text string
	}{
		{&vpp_cnat.Translation{Vip: "fd00::1", Port: 80, Backends: backend},
			"config/vpp/cnat/v1/translation/vip/fd00::1/proto/TCP/port/80", "translation of fd00::1 port 80 to 1 backend"},
		{&vpp_cnat.Translation{Vip: "10.0.0.1", Port: 53, Protocol: vpp_cnat.Translation_UDP, Sticky: true},
			"config/vpp/cnat/v1/translation/vip/10.0.0.1/proto/UDP/port/53",
			"UDP translation of 10.0.0.1 port 53 to 0 backends, sticky"},
		{&vpp_cnat.Interface{Name: "tap0", Role: vpp_cnat.Interface_POD},
			"config/vpp/cnat/v1/interface/tap0", "cnat interface tap0 POD"},
		{&vpp_cnat.SourceNAT{Ipv6Address: "fd00::9"}, "config/vpp/cnat/v1/source-nat", "cnat source NAT fd00::9"},
	} {
		key, err := Key(tt.m)
		if err != nil || key != tt.key {
			t.Errorf("key of %v: %q, %v, want %q", tt.m, key, err, tt.key)
			continue
		}
		if text := Describe(tt.m); text != tt.text {
			t.Errorf("%q, want %q", text, tt.text)
		}
		back, err := New(key)
		if err != nil || back.ProtoReflect().Type() != tt.m.ProtoReflect().Type() {
			t.Errorf("%s: %T, %v", key, back, err)
		}
	}
	for _, m := range []proto.Message{&vpp_cnat.Translation{Port: 80}, &vpp_cnat.Interface{}} {
		if key, err := Key(m); err == nil {
			t.Errorf("%v has the key %q", m, key)
		}
	}
}
