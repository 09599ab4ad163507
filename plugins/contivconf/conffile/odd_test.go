package conffile

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"contiv.dev/vswitch/plugins/contivconf"
)

// TestOddConfigurations checks that any input results in a configuration, or in an error that names the option, and never in a panic. An
// accepted configuration can be compared with any node.
func TestOddConfigurations(t *testing.T) {
	many := make([]string, 5000)
	for i := range many {
		many[i] = fmt.Sprintf("- {nodeName: n%d, mainVPPInterface: {ip: '10.%d.%d.%d/8'}}", i, 200+i/65536, i/256%256, i%256)
	}
	for _, tc := range []struct{ conf, want string }{ // want: the option; "" if the configuration is accepted
		{"mainVPPInterface:", ""},
		{"mainVPPInterface: []", "mainVPPInterface"},
		{"mainVPPInterface: eth1", "mainVPPInterface"},
		{"mainVPPInterface: {interfaceName: eth1}", "mainVPPInterface.interfaceName"},
		{"mainVPPInterface: {namePattern: [eth0, eth1]}", "mainVPPInterface.namePattern"},
		{"mainVPPInterface: {namePattern: '*'}", ""},
		{"mainVPPInterface: {namePattern: 'eth['}", "mainVPPInterface.namePattern"},
		{"mainVPPInterface: {namePattern: 'eth\\'}", "mainVPPInterface.namePattern"},
		{"mainVPPInterface: {namePattern: ','}", "mainVPPInterface.namePattern"},
		{"mainVPPInterface: {namePattern: 'сеть0'}", ""}, // the kernel accepts such names
		{"mainVPPInterface: {namePattern: \"e\\u0000\"}", "mainVPPInterface.namePattern"},
		{"mainVPPInterface: {namePattern: '" + strings.Repeat("x", 1<<20) + "'}", "mainVPPInterface.namePattern"},
		{"mainVPPInterface: {network: 10.20.0.0/33}", "mainVPPInterface.network"},
		{"mainVPPInterface: {network: 10.20.0.1/24}", "mainVPPInterface.network"},
		{"mainVPPInterface: {network: 10.20.0.1/32}", ""},
		{"mainVPPInterface: {network: '::/0'}", "mainVPPInterface.network"},
		{"mainVPPInterface: {network: 'fe80::/64'}", "mainVPPInterface.network"},
		{"mainVPPInterface: {network: '::ffff:10.0.0.0/104'}", "mainVPPInterface.network"},
		{"mainVPPInterface: {network: '10.20.0.0/16,10.20.0.0/16'}", ""},
		{"mainVPPInterface: {network: '10.96.1.0/24'}", "mainVPPInterface.network"},
		{"mainVPPInterface: {defaultRoute: maybe}", "mainVPPInterface.defaultRoute"},
		{"mainVPPInterface: {defaultRoute: true}\nmainVPPInterface: {standAlone: true}", "mainVPPInterface"},
		{"mainVPPInterface: {standAlone: true, network: 10.20.0.0/16}", "mainVPPInterface.standAlone"},
		{"UseTAPInterfaces: True\nuseTAPInterfaces: True", "useTAPInterfaces"},
		{"ipamConfig: {podSubnetCIDR: 0.0.0.0/0}", "ipamConfig.podSubnetCIDR"},
		{"ipamConfig: {podSubnetCIDR: 10.1.0.0/32}", "ipamConfig.podSubnetCIDR"},
		{"ipamConfig: {podSubnetCIDR: '10.1.0.0/16,'}", "ipamConfig.podSubnetCIDR"},
		{"ipamConfig: {podSubnetCIDR: '10.1.0.0/16,10.1.0.0/16'}", "ipamConfig.podSubnetCIDR"},
		{"ipamConfig: {podSubnetCIDR: '１０.1.0.0/16'}", "ipamConfig.podSubnetCIDR"},
		{"ipamConfig: {podSubnetCIDR: 'fd10::/8'}", "ipamConfig.podSubnetCIDR"},
		{"ipamConfig: {podSubnetCIDR: 'fd10:1::/48', podSubnetOneNodePrefixLen: 128}", "ipamConfig.podSubnetOneNodePrefixLen"},
		{"ipamConfig: {podSubnetCIDR: 'fd10:1::/48'}", ""},
		{"ipamConfig: {podSubnetOneNodePrefixLen: '-1'}", "ipamConfig.podSubnetOneNodePrefixLen"},
		{"ipamConfig: {contivCIDR: 'fd10::/48,10.128.0.0/14'}", ""},
		{"ipamConfig: {contivCIDR: 10.128.0.1/14}", "ipamConfig.contivCIDR"},
		{"ipamConfig: {nodeInterconnectCIDR: 192.168.16.0/32}", "ipamConfig.nodeInterconnectCIDR"},
		{"nodeConfig:\n" + strings.Join(many, "\n"), "nodeConfig[0].mainVPPInterface.ip"}, // each overlaps with the pods' network
		{"nodeConfig: [{nodeName: '\u200b'}]", ""},
		{"nodeConfig: [{nodeName: ''}]", "nodeConfig[0].nodeName"},
		{"nodeConfig: [{nodeName: a, mainVPPInterface: {interfaceName: 'host-'}}]", ""},
		{"interfaceRxMode: Adaptive", "interfaceRxMode"},
		{"mtuSize: 1e3", "mtuSize"},
		{"mtuSize: 0x5aa", ""},
		{"tcpChecksumOffloadDisabled: true\nenableGSO: true", ""}, // VPP rejects it, it does not matter on Linux
		{"tapv2RxRingSize: 65536", "tapv2RxRingSize"},
	} {
		c, err := Load([]byte(tc.conf), contivconf.Env{NodeName: "worker-1"})
		if tc.want == "" {
			if err != nil {
				t.Errorf("%.80s\n  %.300v", tc.conf, err)
			} else {
				compare(c)
			}
			continue
		}
		var fault *contivconf.FieldError
		if !errors.As(err, &fault) || fault.Field != tc.want || len(fault.Problem) < 15 {
			t.Errorf("%.80s\n  %.300v\n  want a fault of %s", tc.conf, err, tc.want)
		}
	}
}

// compare calls all methods that compare a configuration with a node.
func compare(c *contivconf.Config) {
	var host []contivconf.HostNetwork
	for _, text := range []string{"0.0.0.0/0", "10.1.2.3/32", "::/0", "::1/128", "fd10:1::1/128", "255.255.255.255/32", "192.168.16.1/24"} {
		host = append(host, contivconf.HostNetwork{Interface: "eth0", Address: netip.MustParsePrefix(text)}, contivconf.HostNetwork{})
	}
	_, _ = c.CheckHost(host), c.CheckVPP()
	c.InterconnectOf(host, "eth1")
	c.MissingSection()
	_ = c.String()
}
