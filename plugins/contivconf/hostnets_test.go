package contivconf

import (
	"net/netip"
	"strings"
	"testing"
)

// TestCheckHost checks that a network of the configuration that overlaps with a network of the node is rejected, with the names of both.
func TestCheckHost(t *testing.T) {
	for _, tc := range []struct{ conf, nic, want string }{
		{`{}`, "10.1.7.9/24", "ipamConfig.podSubnetCIDR: 10.1.0.0/16 (its default) overlaps with 10.1.7.0/24, the network of this node's " +
			"interface eth0 (address 10.1.7.9)"},
		{`{"ipamConfig":{"podSubnetCIDR":"192.168.0.0/20"}}`, "192.168.4.2/24", "ipamConfig.podSubnetCIDR: 192.168.0.0/20 overlaps with 192.168.4.0/24"},
		// the node's network is the larger one
		{`{}`, "10.9.9.9/8", "ipamConfig.podSubnetCIDR: 10.1.0.0/16 (its default) overlaps with 10.0.0.0/8"},
		{`{}`, "10.9.9.9/8", "ipamConfig.serviceCIDR: 10.96.0.0/12 (its default) overlaps with 10.0.0.0/8"},
		{`{}`, "172.30.1.1/24", "ipamConfig.vppHostSubnetCIDR: 172.30.0.0/16 (its default) overlaps with 172.30.1.0/24"},
		{`{}`, "192.168.30.44/24", "ipamConfig.vxlanCIDR: 192.168.30.0/24 (its default) overlaps with 192.168.30.0/24"},
		{`{"ipamConfig":{"contivCIDR":"10.128.0.0/14"}}`, "10.129.3.3/24", "ipamConfig.contivCIDR: 10.129.0.0/16 overlaps with 10.129.3.0/24"},
		// an address without a network is inside, too
		{`{}`, "10.1.0.5/32", "ipamConfig.podSubnetCIDR: 10.1.0.0/16 (its default) overlaps with 10.1.0.5/32"},
		{`{"ipamConfig":{"podSubnetCIDR":"fd10:1::/48"}}`, "fd10:1:0:5::9/64", "ipamConfig.podSubnetCIDR: fd10:1::/48 overlaps with fd10:1:0:5::/64"},
		{`{"ipamConfig":{"podSubnetCIDR":"10.1.0.0/16,fd10:1::/48"}}`, "fd00:10:96::7/112", "ipamConfig.serviceCIDR: fd00:10:96::/112 (its default)"},
		// no conflict
		{`{}`, "192.168.16.3/24", ""}, // nodeInterconnectCIDR: the uplink is in it
		{`{}`, "192.168.1.3/24", ""},
		{`{"nodeToNodeTransport":"nooverlay"}`, "192.168.30.44/24", ""}, // vxlanCIDR is not used
		{`{}`, "fd10:1::1/64", ""},
		{`{"ipamConfig":{"podSubnetCIDR":"fd10:1::/48"}}`, "10.1.0.5/24", ""},
		{`{"ipamConfig":{"contivCIDR":"10.128.0.0/14"}}`, "10.1.0.5/24", ""},
	} {
		c, err := New(parse(t, tc.conf), Env{NodeName: "a"})
		if err != nil {
			t.Fatalf("%s: %v", tc.conf, err)
		}
		err = c.CheckHost([]HostNetwork{{Interface: "eth0", Address: netip.MustParsePrefix(tc.nic)}})
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s, %s: refused: %v", tc.conf, tc.nic, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s, %s\n  error %v\n  want  %s", tc.conf, tc.nic, err, tc.want)
		}
	}
}

// TestCheckHostDummies: kube-proxy in IPVS mode and node-local DNS hold addresses of services on dummy interfaces, but never addresses of
// pods.
func TestCheckHostDummies(t *testing.T) {
	c := Default(Env{NodeName: "a"})
	dummy := func(text string) []HostNetwork {
		return []HostNetwork{{Interface: "kube-ipvs0", Address: netip.MustParsePrefix(text), Dummy: true}}
	}
	if err := c.CheckHost(dummy("10.96.0.10/32")); err != nil {
		t.Errorf("a service's address: %v", err)
	}
	for _, text := range []string{"10.96.0.10/24", "10.1.0.1/32"} {
		if c.CheckHost(dummy(text)) == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

// TestInterconnectOf checks that nodes' addresses in the network of a NIC that does not belong to VPP are reported.
func TestInterconnectOf(t *testing.T) {
	host := []HostNetwork{
		{Interface: "lan0", Address: netip.MustParsePrefix("10.9.0.4/24")},
		{Interface: "eth0", Address: netip.MustParsePrefix("192.168.16.77/24")},
	}
	c := Default(Env{NodeName: "a"})
	if p, h, found := c.InterconnectOf(host, "lan0"); !found || p.String() != "192.168.16.0/24" || h.Interface != "eth0" {
		t.Errorf("%s, %+v, %t", p, h, found)
	}
	if _, h, found := c.InterconnectOf(host, "eth0"); found {
		t.Errorf("the uplink itself is told: %+v", h)
	}
	own, err := New(parse(t, `{"nodeConfig":[{"nodeName":"a","mainVPPInterface":{"ip":"10.9.0.5/24"}}]}`), Env{NodeName: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, h, found := own.InterconnectOf(host, ""); found {
		t.Errorf("a node with an address of its own: %+v", h)
	}
}
