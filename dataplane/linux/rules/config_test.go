package rules_test

import (
	"net/netip"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
)

func TestDefaultsAreValid(t *testing.T) {
	c := rules.Config{}.WithDefaults()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	var in, out []string
	for _, p := range c.FailsafeInboundHostPorts {
		in = append(in, p.Protocol+portText(p.Port))
	}
	for _, p := range c.FailsafeOutboundHostPorts {
		out = append(out, p.Protocol+portText(p.Port))
	}
	if got, want := strings.Join(in, " "), "tcp22 udp68 tcp179 tcp2379 tcp2380 tcp6666 tcp6667"; got != want {
		t.Errorf("failsafe in %s, want %s", got, want)
	}
	if got, want := strings.Join(out, " "), "udp53 udp67 tcp179 tcp2379 tcp2380 tcp6666 tcp6667"; got != want {
		t.Errorf("failsafe out %s, want %s", got, want)
	}
}

func portText(p uint16) string {
	var digits []byte
	for ; p > 0; p /= 10 {
		digits = append([]byte{byte('0' + p%10)}, digits...)
	}
	return string(digits)
}

func TestValidateNamesTheField(t *testing.T) {
	for field, spoil := range map[string]func(*rules.Config){
		"WorkloadIfacePrefixes":       func(c *rules.Config) { c.WorkloadIfacePrefixes = []string{"cali", ""} },
		"IptablesMarkAccept":          func(c *rules.Config) { c.IptablesMarkAccept = 0 },
		"IptablesMarkPass":            func(c *rules.Config) { c.IptablesMarkPass = c.IptablesMarkAccept },
		"IptablesMarkScratch0":        func(c *rules.Config) { c.IptablesMarkScratch0 = 3 },
		"IptablesMarkScratch1":        func(c *rules.Config) { c.IptablesMarkScratch1 = 0 },
		"IptablesMarkEndpoint":        func(c *rules.Config) { c.KubeIPVSSupportEnabled, c.IptablesMarkEndpoint = true, 0 },
		"IptablesMarkNonCaliEndpoint": func(c *rules.Config) { c.KubeIPVSSupportEnabled, c.IptablesMarkNonCaliEndpoint = true, 1 },
		"KubeNodePortRanges[0]":       func(c *rules.Config) { c.KubeNodePortRanges = []table.PortRange{{First: 2, Last: 1}} },
		"OpenStackMetadataIP":         func(c *rules.Config) { c.OpenStackMetadataIP = netip.IPv6Loopback() },
		"VXLANPort":                   func(c *rules.Config) { c.VXLANPort = 65536 },
		"VXLANVNI":                    func(c *rules.Config) { c.VXLANVNI = 1 << 24 },
		"VXLANDevice":                 func(c *rules.Config) { c.VXLANDevice = "cali-vxlan" },
		"VXLANMTU":                    func(c *rules.Config) { c.VXLANMTU = 100 },
		"IPIPTunnelAddress":           func(c *rules.Config) { c.IPIPTunnelAddress = netip.IPv6Loopback() },
		"IptablesLogPrefix":           func(c *rules.Config) { c.IptablesLogPrefix = strings.Repeat("x", 28) },
		"EndpointToHostAction":        func(c *rules.Config) { c.EndpointToHostAction = "drop" },
		"IptablesFilterAllowAction":   func(c *rules.Config) { c.IptablesFilterAllowAction = "DROP" },
		"IptablesMangleAllowAction":   func(c *rules.Config) { c.IptablesMangleAllowAction = "DROP" },
		"FailsafeInboundHostPorts[0]": func(c *rules.Config) {
			c.FailsafeInboundHostPorts = []rules.ProtoPort{{Protocol: "icmp",
				Port: 1}}
		},
		"FailsafeOutboundHostPorts[0]": func(c *rules.Config) {
			c.FailsafeOutboundHostPorts = []rules.ProtoPort{{Protocol: "tcp", Port: 1, Net: "x"}}
		},
		"NATPortRange":                       func(c *rules.Config) { c.NATPortRange = table.PortRange{First: 9, Last: 8} },
		"IptablesNATOutgoingInterfaceFilter": func(c *rules.Config) { c.IptablesNATOutgoingInterfaceFilter = "a b" },
		"Backend":                            func(c *rules.Config) { c.Backend = "ebpf" },
		"RouteProtocol":                      func(c *rules.Config) { c.RouteProtocol = 3 },
	} {
		c := rules.Config{}.WithDefaults()
		spoil(&c)
		err := c.Validate()
		if err == nil || !strings.Contains(err.Error(), "RulesConfig."+field+":") {
			t.Errorf("%s: %v, want an error that names the field", field, err)
		}
		if _, err := rules.NewRenderer(c); err == nil && field != "IptablesMarkAccept" {
			t.Errorf("%s: NewRenderer took it", field)
		}
	}
}

func TestValidateReportsAll(t *testing.T) {
	c := rules.Config{VXLANPort: -1, Backend: "x"}.WithDefaults()
	err := c.Validate()
	if err == nil || !strings.Contains(err.Error(), "VXLANPort") || !strings.Contains(err.Error(), "Backend") {
		t.Errorf("%v, want both faults", err)
	}
}

func TestChainNames(t *testing.T) {
	for name, want := range map[string]string{
		"default.allow": "cali-pi-default.allow",
		"ns/policy":     "cali-pi-ns/policy",
	} {
		if got := rules.PolicyChainName(rules.PolicyInboundPfx, "", name); got != want {
			t.Errorf("policy %q: %s, want %s", name, got, want)
		}
	}
	seen := map[string]string{}
	for _, tier := range []string{"", "a", "a/b"} {
		for _, name := range []string{"b/c", "c", "_c", "a b", "a;b", strings.Repeat("x", 20), strings.Repeat("x", 21),
			strings.Repeat("x", 300), "Ünïcode", ""} {
			chain := rules.PolicyChainName(rules.PolicyOutboundPfx, tier, name)
			if len(chain) > 28 {
				t.Errorf("%q/%q: %s is longer than 28 characters", tier, name, chain)
			}
			for _, c := range chain {
				if c <= ' ' || c > '~' || strings.ContainsRune(`"'\;{}!`, c) {
					t.Errorf("%q/%q: %s has %q", tier, name, chain, c)
				}
			}
			if before, taken := seen[chain]; taken {
				t.Errorf("%q/%q and %s share %s", tier, name, before, chain)
			}
			seen[chain] = tier + "/" + name
		}
	}
	if a, b := rules.PolicyChainName(rules.PolicyInboundPfx, "", "x"), rules.PolicyChainName(rules.PolicyInboundPfx,
		"default", "x"); a != b {
		t.Errorf("no tier is %s, tier default is %s; want the same", a, b)
	}
	for _, prefix := range []string{rules.HostToEndpointForwardPfx, rules.WorkloadFromEndpointPfx} {
		for _, iface := range []string{"cali0123456789a", rules.AllInterfaces, "eth0.100", "weird@ifc"} {
			if chain := rules.IfaceChain(prefix, iface); len(chain) > 28 || !strings.HasPrefix(chain, prefix) {
				t.Errorf("%s of %q: %s", prefix, iface, chain)
			}
		}
	}
}
