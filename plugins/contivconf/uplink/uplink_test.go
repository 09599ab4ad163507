package uplink

import (
	"net/netip"
	"strings"
	"testing"

	"contiv.dev/vswitch/plugins/contivconf"
)

func prefixes(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range list {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// host returns a management NIC with the default route, two NICs in the nodes' network, a bond with a member, and a NIC that is down.
func host() []NIC {
	return []NIC{
		{Name: "eth0", Up: true, DefaultRoute: true, Addresses: prefixes("192.0.2.9/24", "2001:db8::9/64")},
		{Name: "eth1", Up: true, Addresses: prefixes("10.20.0.4/16", "fd20::4/64")},
		{Name: "eth2", Up: true},
		{Name: "bond0", Up: true, Addresses: prefixes("10.30.0.4/24")},
		{Name: "enp9s0", Up: true, Part: true},
		{Name: "spare0"},
	}
}

func TestSelect(t *testing.T) {
	name := func(patterns ...string) contivconf.Uplink { return contivconf.Uplink{NamePatterns: patterns} }
	for what, tc := range map[string]struct {
		wanted Wanted
		want   string // a name, or "!" and a part of the error
	}{
		"default route":           {Wanted{Uplink: contivconf.Uplink{DefaultRoute: true}}, "eth0"},
		"name":                    {Wanted{Uplink: name("eth1")}, "eth1"},
		"pattern":                 {Wanted{Uplink: name("bond?")}, "bond0"},
		"second pattern":          {Wanted{Uplink: name("wan*", "bond*")}, "bond0"},
		"network":                 {Wanted{Uplink: contivconf.Uplink{Networks: prefixes("10.20.0.0/16")}}, "eth1"},
		"IPv6 network":            {Wanted{Uplink: contivconf.Uplink{Networks: prefixes("fd20::/64")}}, "eth1"},
		"network of another rack": {Wanted{Uplink: contivconf.Uplink{Networks: prefixes("10.21.0.0/16", "10.30.0.0/16")}}, "bond0"},
		"both must hold":          {Wanted{Uplink: contivconf.Uplink{NamePatterns: []string{"eth*"}, DefaultRoute: true}}, "eth0"},
		"both do not hold":        {Wanted{Uplink: contivconf.Uplink{NamePatterns: []string{"bond*"}, DefaultRoute: true}}, "!no NIC of this node matches"},
		"several": {Wanted{Uplink: name("eth*")}, "!several NICs of this node match mainVPPInterface {namePattern: eth*}: " +
			"eth0 (192.0.2.9/24, 2001:db8::9/64, default route), eth1 (10.20.0.4/16, fd20::4/64), eth2; make the condition more specific"},
		"one of several has another role": {Wanted{Uplink: name("eth[12]"), Others: []string{"eth1"}}, "eth2"},
		"it was one of several before":    {Wanted{Uplink: name("eth*"), Before: "eth1"}, "eth1"},
		"what it was has gone":            {Wanted{Uplink: name("bond*"), Before: "bond7"}, "bond0"},
		"what it was does not fit":        {Wanted{Uplink: name("bond*"), Before: "eth0"}, "bond0"},
		"part of a bond":                  {Wanted{Uplink: name("enp9s0")}, "!no NIC of this node matches"},
		"down":                            {Wanted{Uplink: name("spare0")}, "spare0"},
		"up is better than down":          {Wanted{Uplink: name("spare0", "eth1")}, "eth1"},
		"missing":                         {Wanted{Uplink: name("ens3")}, "!no NIC of this node matches mainVPPInterface {namePattern: ens3}; it has bond0 ("},
	} {
		got, err := Select(tc.wanted, host())
		if why, fails := strings.CutPrefix(tc.want, "!"); fails {
			if err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %q, %v; want an error with %q", what, got.Name, err, why)
			}
		} else if err != nil || got.Name != tc.want {
			t.Errorf("%s: %q, %v; want %s", what, got.Name, err, tc.want)
		}
	}
	if _, err := Select(Wanted{Uplink: name("x")}, nil); err == nil || !strings.Contains(err.Error(), "it has none") {
		t.Errorf("a host without NICs: %v", err)
	}
}
