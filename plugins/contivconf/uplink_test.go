package contivconf

import (
	"strings"
	"testing"
)

// TestUplink checks that the cluster-wide section applies to nodes whose own section names no interface.
func TestUplink(t *testing.T) {
	conf := parse(t, `{"mainVPPInterface":{"namePattern":"host-eth1, enp*s0","network":"10.20.0.0/16,fd20::/64","defaultRoute":true},
		"nodeConfig":[{"nodeName":"named","mainVPPInterface":{"interfaceName":"host-eth7"}},
			{"nodeName":"addressed","mainVPPInterface":{"ip":"10.20.0.5/16"}}]}`)
	for node, want := range map[string]string{
		"other":     "mainVPPInterface {namePattern: eth1,enp*s0, network: 10.20.0.0/16,fd20::/64, defaultRoute: true}",
		"named":     "mainVPPInterface {}",
		"addressed": "mainVPPInterface {namePattern: eth1,enp*s0, network: 10.20.0.0/16,fd20::/64, defaultRoute: true}",
	} {
		c, err := New(conf, Env{NodeName: node})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Node().Uplink.String(); got != want {
			t.Errorf("%s: %s, want %s", node, got, want)
		}
	}
}

func TestUplinkFaults(t *testing.T) {
	for _, tc := range []struct{ conf, want string }{
		{`{"namePattern":"eth["}`, `mainVPPInterface.namePattern: "eth[" is not a pattern of names; write the kernel's name`},
		{`{"namePattern":"eth 0"}`, `mainVPPInterface.namePattern: "eth 0" is not a pattern`},
		{`{"namePattern":"eth0,,eth1"}`, `mainVPPInterface.namePattern: "" is not a pattern`},
		{`{"namePattern":"host-"}`, `mainVPPInterface.namePattern: "host-" is not a pattern`},
		{`{"namePattern":"` + strings.Repeat("e", 64) + `"}`, `is not a pattern of names`},
		{`{"network":"10.20.0.5/16"}`, "mainVPPInterface.network: 10.20.0.5/16 is an address inside a network; write the network, 10.20.0.0/16"},
		{`{"network":"lan"}`, `mainVPPInterface.network: "lan" is not address/length`},
		{`{"network":"10.1.4.0/24"}`, "mainVPPInterface.network: 10.1.4.0/24 overlaps with ipamConfig.podSubnetCIDR 10.1.0.0/16"},
		{`{"network":"0.0.0.0/0"}`, "mainVPPInterface.network: 0.0.0.0 is the unspecified address"},
		{`{"standAlone":true,"defaultRoute":true}`, "mainVPPInterface.standAlone: is true, so that there is no main interface, although defaultRoute is set"},
	} {
		_, err := New(parse(t, `{"mainVPPInterface":`+tc.conf+`}`), Env{})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s\n  error %v\n  want  %s", tc.conf, err, tc.want)
		}
	}
	for _, conf := range []string{`{}`, `{"namePattern":"","network":"","defaultRoute":false}`, `{"standAlone":false}`} {
		c, err := New(parse(t, `{"mainVPPInterface":`+conf+`}`), Env{})
		if err != nil || !c.Node().Uplink.IsZero() {
			t.Errorf("%s: %v", conf, err)
		}
	}
}

// TestMissingSection checks the message for a node without a section, with the section that was probably meant.
func TestMissingSection(t *testing.T) {
	for _, tc := range []struct {
		node, sections, want string
		mistyped             bool
	}{
		{"worker-a", "worker-a", "", false},
		{"worker-1", "wroker-1", "contiv.conf: no section for node worker-1; did you mean it by the section of wroker-1?", true},
		{"worker-1", "Worker-1", "did you mean it by the section of Worker-1?", true},
		{"worker-1.example.com", "worker-1", "did you mean it by the section of worker-1?", true},
		{"worker-1", "worker-1.example.com", "did you mean it by the section of worker-1.example.com?", true},
		{"worker-2", "worker-1,worker-13", "contiv.conf: no section for node worker-2; there are sections for worker-1, worker-13", false},
		{"worker-b", "worker-a", "contiv.conf: no section for node worker-b; there are sections for worker-a", false},
		{"edge", "storage-7", "contiv.conf: no section for node edge; there are sections for storage-7", false},
		{"edge", "a1,a2,a3,a4,a5,a6,a7,a8,a9,a10,a11,a12", "a9, a10 and 2 more", false},
		{"edge", "", "", false},
	} {
		var sections []string
		for _, s := range elements(tc.sections) {
			sections = append(sections, `{"nodeName":"`+s+`"}`)
		}
		c, err := New(parse(t, `{"nodeConfig":[`+strings.Join(sections, ",")+`]}`), Env{NodeName: tc.node})
		if err != nil {
			t.Fatal(err)
		}
		got, mistyped := c.MissingSection()
		if mistyped != tc.mistyped || (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s, sections %s\n  %q %t\n  want %q %t", tc.node, tc.sections, got, mistyped, tc.want, tc.mistyped)
		}
	}
}
