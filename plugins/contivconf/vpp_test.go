package contivconf

import (
	"strings"
	"testing"
)

// TestCheckVPP checks that options that AF_PACKET does not support are rejected, with their name and the fix, and accepted with TAPs.
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
		{`{"tcpChecksumOffloadDisabled":false}`, vhost, ""}, // with GSO, which is the default for TAPs
		{`{"tcpChecksumOffloadDisabled":false}`, none, "tcpChecksumOffloadDisabled: is false"},
		{`{"tcpChecksumOffloadDisabled":true}`, none, ""},
		{`{"tcpChecksumOffloadDisabled":false,"enableGSO":false}`, vhost, "tcpChecksumOffloadDisabled: is false, but VPP 25.10 does not fill in"},
		{`{"enableGSO":true}`, vhost, ""},
		{`{"enableGSO":true,"tcpChecksumOffloadDisabled":true}`, vhost, "enableGSO: is true, but so is tcpChecksumOffloadDisabled"},
		{`{"enableGSO":true,"tcpChecksumOffloadDisabled":false}`, vhost, ""},
		{`{"enableGSO":true}`, none, "enableGSO: is true, but only TAP interfaces can have it"},
		{`{"enableGSO":false}`, vhost, ""},
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
