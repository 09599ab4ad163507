package contivconf

import (
	"strings"
	"testing"
)

// TestCheckVPP: what AF_PACKET cannot do is refused, by name and with what to do; TAPs can.
func TestCheckVPP(t *testing.T) {
	vhost := Env{NodeName: "a", HasVhostNet: func() bool { return true }}
	none := Env{NodeName: "a", HasVhostNet: func() bool { return false }}
	for _, tc := range []struct {
		conf string
		env  Env
		want string
	}{
		{`{"interfaceRxMode":"adaptive"}`, vhost, ""},
		{`{"interfaceRxMode":"adaptive"}`, none, "interfaceRxMode: adaptive is not possible for AF_PACKET interfaces, and pods' interfaces are"},
		{`{"interfaceRxMode":"adaptive","nodeConfig":[{"nodeName":"a","mainVPPInterface":{"interfaceName":"host-eth1"}}]}`, vhost,
			"interfaceRxMode: adaptive is not possible for AF_PACKET interfaces, and the interface host-eth1 of this node is; use default, interrupt or polling"},
		{`{"interfaceRxMode":"adaptive","mainVPPInterface":{"defaultRoute":true}}`, vhost, "the NIC that mainVPPInterface selects is"},
		{`{"interfaceRxMode":"polling","mainVPPInterface":{"defaultRoute":true}}`, none, ""},
		{`{"interfaceRxMode":"adaptive","nodeConfig":[{"nodeName":"b","mainVPPInterface":{"interfaceName":"host-eth1"}}]}`, vhost, ""},
		{`{"tcpChecksumOffloadDisabled":false}`, vhost, ""},
		{`{"tcpChecksumOffloadDisabled":false}`, none, "tcpChecksumOffloadDisabled: is false, but pods by VETH"},
		{`{"tcpChecksumOffloadDisabled":true}`, none, ""},
		{`{}`, none, ""},
	} {
		c, err := New(parse(t, tc.conf), tc.env)
		if err != nil {
			t.Fatal(err)
		}
		err = c.CheckVPP()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.conf, err, tc.want)
		}
	}
}

// TestOffloads: tcpChecksumOffloadDisabled decides what TAPs do, and cannot say the contrary of enableGSO.
func TestOffloads(t *testing.T) {
	vhost := Env{NodeName: "a", HasVhostNet: func() bool { return true }}
	for _, tc := range []struct {
		conf          string
		gso, disabled bool
		want          string
	}{
		{`{}`, true, false, ""},
		{`{"tcpChecksumOffloadDisabled":true}`, false, true, ""},
		{`{"tcpChecksumOffloadDisabled":false}`, true, false, ""},
		{`{"enableGSO":false}`, false, true, ""},
		{`{"enableGSO":false,"tcpChecksumOffloadDisabled":true}`, false, true, ""},
		{`{"enableGSO":true,"tcpChecksumOffloadDisabled":false}`, true, false, ""},
		{`{"enableGSO":true,"tcpChecksumOffloadDisabled":true}`, false, false, "tcpChecksumOffloadDisabled: is true although enableGSO is true"},
		{`{"enableGSO":false,"tcpChecksumOffloadDisabled":false}`, false, false, "tcpChecksumOffloadDisabled: is false although enableGSO is false"},
		{`{"useTAPInterfaces":false}`, true, true, ""},
	} {
		c, err := New(parse(t, tc.conf), vhost)
		if tc.want != "" {
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %s", tc.conf, err, tc.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tc.conf, err)
		} else if i := c.Interface(); i.EnableGSO != tc.gso || i.TCPChecksumOffloadDisabled != tc.disabled {
			t.Errorf("%s: %+v", tc.conf, i)
		}
	}
}
