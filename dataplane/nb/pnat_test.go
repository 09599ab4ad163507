package nb

import (
	"testing"

	vpp_pnat "contiv.dev/vswitch/dataplane/nb/vpp/pnat"
)

func TestPnat(t *testing.T) {
	m := &vpp_pnat.Interface{Name: "tap0", Aliases: []*vpp_pnat.Interface_Alias{
		{Ip: "192.0.2.1", Port: 80, Alias: "254.0.0.1"},
		{Ip: "192.0.2.1", Port: 53, Protocol: vpp_pnat.Interface_UDP, Alias: "254.0.0.1"},
	}}
	key, err := Key(m)
	if err != nil || key != "config/vpp/pnat/v1/interface/tap0" {
		t.Errorf("key %q, %v", key, err)
	}
	const two = "pnat interface tap0 TCP 192.0.2.1:80=254.0.0.1 UDP 192.0.2.1:53=254.0.0.1"
	if text := Describe(m); text != two {
		t.Errorf("%q", text)
	}
	m.Aliases = append(m.Aliases, m.Aliases...)
	if text := Describe(m); text != two+" TCP 192.0.2.1:80=254.0.0.1 and 1 more" {
		t.Errorf("%q", text)
	}
	if back, err := New(key); err != nil || back.ProtoReflect().Type() != m.ProtoReflect().Type() {
		t.Errorf("%s: %T, %v", key, back, err)
	}
	if key, err := Key(&vpp_pnat.Interface{}); err == nil {
		t.Errorf("no name, and the key %q", key)
	}
}
