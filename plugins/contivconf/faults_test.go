package contivconf

import (
	"slices"
	"strings"
	"testing"
)

// fault is a configuration and the text of its error.
type fault struct{ conf, want string }

// TestFaults checks that every error names its option and the fix.
func TestFaults(t *testing.T) {
	for _, tc := range slices.Concat(optionFaults(), networkFaults(), nodeFaults()) {
		_, err := New(parse(t, tc.conf), Env{})
		if err == nil {
			t.Errorf("%s\n  accepted, want %q", tc.conf, tc.want)
		} else if !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s\n  error %q\n  want  %q", tc.conf, err, tc.want)
		}
	}
}

func optionFaults() []fault {
	return []fault{
		// interfaces
		{`{"mtuSize":100}`, "mtuSize: 100 is out of range; use 576 to 9216"},
		{`{"mtuSize":1000,"ipamConfig":{"podSubnetCIDR":"fd10:1::/48"}}`, "mtuSize: 1000 is too small for IPv6"},
		{`{"tapInterfaceVersion":1}`, "tapInterfaceVersion: version 1 does not exist"},
		{`{"tapInterfaceVersion":3}`, "tapInterfaceVersion: there is no version 3; use 2"},
		{`{"tapv2RxRingSize":300}`, "tapv2RxRingSize: 300 is not a size of a ring; use a power of two"},
		{`{"tapv2TxRingSize":300}`, "tapv2TxRingSize: 300 is not"},
		{`{"interfaceRxMode":"fast"}`, `interfaceRxMode: there is no mode "fast"; use default, polling`},
		// routing
		{`{"mainVRFID":1}`, "podVRFID: is 1, the same as mainVRFID"},
		{`{"mainVRFID":4294967295}`, "mainVRFID: 4294967295 is reserved"},
		{`{"podVRFID":4294967295}`, "podVRFID: 4294967295 is reserved"},
		{`{"nodeToNodeTransport":"pigeon"}`, `nodeToNodeTransport: there is no transport "pigeon"; use vxlan or nooverlay`},
		{`{"ipNeighborScanInterval":9}`, "ipNeighborStaleThreshold: 4 min is shorter than ipNeighborScanInterval (9 min)"},
		// not supported yet
		{`{"nodeToNodeTransport":"srv6"}`, "nodeToNodeTransport: srv6 is not supported yet; use vxlan"},
		{`{"useSRv6ForServices":true}`, "useSRv6ForServices: SRv6 is not supported yet"},
		{`{"useSRv6ForServiceFunctionChaining":true}`, "useSRv6ForServiceFunctionChaining: SRv6 is not supported yet"},
		{`{"useDX6ForSrv6NodetoNodeTransport":true}`, "useDX6ForSrv6NodetoNodeTransport: SRv6 is not supported yet"},
		{`{"stealFirstNIC":true}`, "stealFirstNIC: stealing the NIC (STN) is not supported yet"},
		{`{"stealInterface":"eth0"}`, "stealInterface: stealing the NIC (STN) is not supported yet"},
		{`{"stnVersion":1}`, "stnVersion: stealing"},
		{`{"stnSocketFile":"/x"}`, "stnSocketFile: stealing"},
		{`{"crdNodeConfigurationDisabled":false}`, "crdNodeConfigurationDisabled: configuration of nodes by NodeConfig resources is not supported yet"},
		{`{"vmxnet3RxRingSize":512}`, "vmxnet3RxRingSize: the vmxnet3 driver is not supported yet"},
		{`{"vmxnet3TxRingSize":512}`, "vmxnet3TxRingSize: the vmxnet3 driver is not supported yet"},
		{`{"ipamConfig":{"useExternalIPAM":true}}`, "ipamConfig.useExternalIPAM: external IPAM is not supported yet"},
		{`{"ipamConfig":{"srv6":{"sfcPolicyBSIDSubnetCIDR":"8eef::/16"}}}`, "ipamConfig.srv6.sfcPolicyBSIDSubnetCIDR: SRv6 is not supported yet"},
		{`{"ipamConfig":{"srv6":{"sfcIDLengthUsedInSidForServiceFunction":8}}}`, "ipamConfig.srv6.sfcIDLengthUsedInSidForServiceFunction: SRv6"},
	}
}

func networkFaults() []fault {
	return []fault{
		{`{"ipamConfig":{"podSubnetCIDR":"10.1.0.0"}}`, `ipamConfig.podSubnetCIDR: "10.1.0.0" has no prefix length; write it as address/length`},
		{`{"ipamConfig":{"podSubnetCIDR":"banana"}}`, `ipamConfig.podSubnetCIDR: "banana" is not address/length`},
		{`{"ipamConfig":{"podSubnetCIDR":"10.1.2.0/16"}}`, "ipamConfig.podSubnetCIDR: 10.1.2.0/16 is an address inside a network; write the network, 10.1.0.0/16"},
		{`{"ipamConfig":{"podSubnetCIDR":"10.1.0.0/16,10.2.0.0/16"}}`, "has more than one IPv4 element"},
		{`{"ipamConfig":{"podSubnetCIDR":"::ffff:10.1.0.0/112"}}`, "ipamConfig.podSubnetCIDR: "},
		{`{"ipamConfig":{"podSubnetCIDR":"224.0.0.0/8"}}`, "is a multicast or loopback address"},
		{`{"ipamConfig":{"podSubnetCIDR":"0.0.0.0/8"}}`, "is the unspecified address"},
		{`{"ipamConfig":{"podSubnetCIDR":"10.1.0.0/30"}}`, "ipamConfig.podSubnetCIDR: 10.1.0.0/30 is too small; its prefix length must be 29 or less"},
		{`{"ipamConfig":{"podSubnetOneNodePrefixLen":"15"}}`, "ipamConfig.podSubnetOneNodePrefixLen: /15 is larger than the whole podSubnetCIDR 10.1.0.0/16; use 16 to 29"},
		{`{"ipamConfig":{"podSubnetOneNodePrefixLen":"31"}}`, "ipamConfig.podSubnetOneNodePrefixLen: /31 leaves a node too few addresses"},
		{`{"ipamConfig":{"vppHostSubnetOneNodePrefixLen":"31"}}`, "ipamConfig.vppHostSubnetOneNodePrefixLen: /31 leaves"},
		{`{"ipamConfig":{"podSubnetOneNodePrefixLen":"24,64"}}`, "ipamConfig.podSubnetOneNodePrefixLen: has 2 lengths for 1 networks (IPv4)"},
		{`{"ipamConfig":{"podSubnetCIDR":"fd10:1::/48,10.1.0.0/16","podSubnetOneNodePrefixLen":"64"}}`, "has 1 lengths for 2 networks (IPv6,IPv4)"},
		{`{"ipamConfig":{"contivCIDR":"10.128.0.0/14","podSubnetOneNodePrefixLen":"24"}}`, "ipamConfig.podSubnetOneNodePrefixLen: is set although contivCIDR decides it"},
		{`{"ipamConfig":{"contivCIDR":"10.128.0.0/15"}}`, "ipamConfig.contivCIDR: 10.128.0.0/15 is too small to be split; its prefix length must be 14 or less"},
		{`{"ipamConfig":{"contivCIDR":"fd20::/111"}}`, "its prefix length must be 110 or less"},
		{`{"ipamConfig":{"contivCIDR":"10.128.0.0/14","vxlanCIDR":"10.1.0.0/24"}}`, "ipamConfig.vxlanCIDR: 10.1.0.0/24 is set although contivCIDR 10.128.0.0/14 already provides"},
		{`{"ipamConfig":{"vxlanCIDR":"fd00::/112"}}`, "ipamConfig.vxlanCIDR: fd00::/112 is IPv6, but pods have no IPv6 addresses"},
		{`{"ipamConfig":{"defaultGateway":"fd00::1"}}`, "ipamConfig.defaultGateway: fd00::1 is IPv6, but pods have no"},
		{`{"ipamConfig":{"nodeInterconnectCIDR":"192.168.16.0/31"}}`, "ipamConfig.nodeInterconnectCIDR: 192.168.16.0/31 has no room"},
		{`{"ipamConfig":{"podSubnetCIDR":"fe80::/64"}}`, "fe80::/64 has addresses of fe80::/10, which no host can have"},
		{`{"ipamConfig":{"podSubnetCIDR":"169.254.0.0/16"}}`, "169.254.0.0/16 has addresses of 169.254.0.0/16"},
		{`{"ipamConfig":{"podSubnetCIDR":"64.0.0.0/2"}}`, "64.0.0.0/2 has addresses of 127.0.0.0/8"},
		{`{"ipamConfig":{"podSubnetCIDR":"240.0.0.0/8"}}`, "240.0.0.0/8 has addresses of 224.0.0.0/3"},
		{`{"ipamConfig":{"podSubnetCIDR":"0.1.0.0/16"}}`, "0.1.0.0/16 has addresses of 0.0.0.0/8"},
		// overlaps name an option that is set
		{`{"ipamConfig":{"serviceCIDR":"10.0.0.0/8"}}`, "ipamConfig.serviceCIDR: 10.0.0.0/8 overlaps with podSubnetCIDR 10.1.0.0/16 (its default)"},
		{`{"ipamConfig":{"contivCIDR":"10.96.0.0/14"}}`, "ipamConfig.contivCIDR: 10.96.0.0/16 overlaps with serviceCIDR 10.96.0.0/12 (its default)"},
		{`{"ipamConfig":{"podSubnetCIDR":"10.1.0.0/16","vxlanCIDR":"10.1.5.0/24"}}`, "ipamConfig.vxlanCIDR: 10.1.5.0/24 overlaps with podSubnetCIDR 10.1.0.0/16; choose"},
		// gateways
		{`{"ipamConfig":{"defaultGateway":"192.168.17.1"}}`, "ipamConfig.defaultGateway: 192.168.17.1 is not an address that a host of nodeInterconnectCIDR 192.168.16.0/24 can have"},
		{`{"ipamConfig":{"defaultGateway":"192.168.16.255"}}`, "ipamConfig.defaultGateway: 192.168.16.255 is not"},
		{`{"ipamConfig":{"defaultGateway":"192.168.16.0"}}`, "ipamConfig.defaultGateway: 192.168.16.0 is not"},
		{`{"ipamConfig":{"defaultGateway":"router"}}`, `ipamConfig.defaultGateway: "router" is not an IP address`},
		{`{"ipamConfig":{"defaultGateway":"192.168.16.1,192.168.16.2"}}`, "has more than one IPv4 address"},
	}
}

func nodeFaults() []fault {
	return []fault{
		{`{"nodeConfig":[{}]}`, "nodeConfig[0].nodeName: is missing"},
		{`{"nodeConfig":[{"nodeName":"a"},{"nodeName":"a"}]}`, `nodeConfig[1].nodeName: "a" has a section already, nodeConfig[0]`},
		{`{"nodeConfig":[{"nodeName":"a","stealInterface":"eth0"}]}`, "nodeConfig[0].stealInterface: stealing the NIC (STN) is not supported yet"},
		{`{"nodeConfig":[{"nodeName":"a","mainVPPInterface":{"ip":"192.168.16.0/24"}}]}`, "nodeConfig[0].mainVPPInterface.ip: 192.168.16.0/24 is the network's own"},
		{`{"nodeConfig":[{"nodeName":"a","mainVPPInterface":{"ip":"10.1.4.4/24"}}]}`, "nodeConfig[0].mainVPPInterface.ip: 10.1.4.4/24 overlaps with ipamConfig.podSubnetCIDR"},
		{`{"nodeConfig":[{"nodeName":"a","mainVPPInterface":{"ip":"10.9.4.4/24","useDHCP":true}}]}`, "nodeConfig[0].mainVPPInterface.useDHCP: is true although ip is set"},
		{`{"nodeConfig":[{"nodeName":"a","mainVPPInterface":{"interfaceName":"vmxnet3-0/b/0/0"}}]}`, "nodeConfig[0].mainVPPInterface.interfaceName: the vmxnet3 driver is not supported yet"},
		{`{"nodeConfig":[{"nodeName":"a","otherVPPInterfaces":[{}]}]}`, "nodeConfig[0].otherVPPInterfaces[0].interfaceName: is missing"},
		{`{"nodeConfig":[{"nodeName":"a","mainVPPInterface":{"interfaceName":"e"},"otherVPPInterfaces":[{"interfaceName":"e"}]}]}`, `otherVPPInterfaces[0].interfaceName: "e" is listed twice`},
		{`{"nodeConfig":[{"nodeName":"a","mainVPPInterface":{"interfaceName":"eth 0"}}]}`, `mainVPPInterface.interfaceName: "eth 0" is not the name`},
		{`{"nodeConfig":[{"nodeName":"a","mainVPPInterface":{"interfaceName":"e\n"}}]}`, `interfaceName: "e\n" is not the name`},
		{`{"nodeConfig":[{"nodeName":"a","mainVPPInterface":{"ip":"10.9.0.5/24"}},{"nodeName":"b","mainVPPInterface":{"ip":"10.9.0.5/24"}}]}`,
			"nodeConfig[1].mainVPPInterface.ip: 10.9.0.5 is also the address of nodeConfig[0]"},
		{`{"nodeConfig":[{"nodeName":"a","mainVPPInterface":{"ip":"10.9.0.5/24"},"otherVPPInterfaces":[{"interfaceName":"e","ip":"10.9.0.6/25"}]}]}`,
			"nodeConfig[0].otherVPPInterfaces[0].ip: 10.9.0.6/25 is in the network of another interface of this node, 10.9.0.5/24"},
		{`{"nodeConfig":[{"nodeName":"a","otherVPPInterfaces":[{"interfaceName":"e","ip":"192.168.16.77/24"}]}]}`,
			"nodeConfig[0].otherVPPInterfaces[0].ip: 192.168.16.77/24 is in the network of another interface of this node, 192.168.16.0/24"},
		{`{"nodeConfig":[{"nodeName":"a","gateway":"1.1.1.1"}]}`, "nodeConfig[0].gateway: 1.1.1.1 is not an address that a host of the node's network 192.168.16.0/24 can have"},
		{`{"nodeConfig":[{"nodeName":"a","gateway":"10.9.0.5","mainVPPInterface":{"ip":"10.9.0.5/24"}}]}`, "nodeConfig[0].gateway: 10.9.0.5 is the node's own address"},
		{`{"ipamConfig":{"nodeInterconnectDHCP":true},"nodeConfig":[{"nodeName":"a","mainVPPInterface":{"useDHCP":false}}]}`, "nodeConfig[0].mainVPPInterface.useDHCP: is false, but"},
	}
}

// TestGatewayOutOfReach checks that a gateway that is only in the network of another node is a fault on this node.
func TestGatewayOutOfReach(t *testing.T) {
	conf := parse(t, `{"ipamConfig":{"defaultGateway":"10.9.0.1"},"nodeConfig":[{"nodeName":"a","mainVPPInterface":{"ip":"10.9.0.5/24"}}]}`)
	want := "ipamConfig.defaultGateway: 10.9.0.1 is not reachable from node b"
	if _, err := New(conf, Env{NodeName: "b"}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// TestNoFalseAlarm checks that unusual but valid configurations are accepted.
func TestNoFalseAlarm(t *testing.T) {
	for _, conf := range []string{
		`{"stnVersion":2,"stnSocketFile":"/var/run/contiv/stn.sock","stealFirstNIC":false,"crdNodeConfigurationDisabled":true}`,
		`{"mtuSize":0,"tapInterfaceVersion":0,"tapv2RxRingSize":0,"vmxnet3RxRingSize":1024,"interfaceRxMode":""}`,
		`{"ipamConfig":{"srv6":{"sfcPolicyBSIDSubnetCIDR":"8eee::/16","sfcIDLengthUsedInSidForServiceFunction":16}}}`,
		`{"ipamConfig":{"podSubnetCIDR":"","contivCIDR":"","defaultGateway":""}}`,
		// no overlay: no network conflicts with vxlanCIDR
		`{"nodeToNodeTransport":"nooverlay","ipamConfig":{"nodeInterconnectCIDR":"192.168.30.0/24"}}`,
		`{"nodeToNodeTransport":"nooverlay","nodeConfig":[{"nodeName":"a","mainVPPInterface":{"ip":"192.168.30.4/24"}}]}`,
		// the gateway is in the network of a node with its own address
		`{"ipamConfig":{"defaultGateway":"10.9.0.1"},"nodeConfig":[{"nodeName":"a","mainVPPInterface":{"ip":"10.9.0.5/24"}}]}`,
		// with DHCP there is no network to check against
		`{"ipamConfig":{"nodeInterconnectDHCP":true,"defaultGateway":"1.2.3.4","nodeInterconnectCIDR":"192.168.16.0/24"}}`,
		// one slice only
		`{"ipamConfig":{"podSubnetCIDR":"10.1.0.0/24","podSubnetOneNodePrefixLen":"24"}}`,
		// the main interface is in another network
		`{"nodeConfig":[{"nodeName":"a","mainVPPInterface":{"ip":"10.9.0.5/24"},"otherVPPInterfaces":[{"interfaceName":"e","ip":"192.168.16.7/24"}]}]}`,
		`{"nodeConfig":[{"nodeName":"a","mainVPPInterface":{"useDHCP":true},"otherVPPInterfaces":[{"interfaceName":"e","ip":"192.168.16.7/24"}]}]}`,
		// an interface may have a family that pods do not have
		`{"nodeConfig":[{"nodeName":"a","mainVPPInterface":{"ip":"192.168.16.4/24,fd00::5/64"},"gateway":"192.168.16.1,fd00::1"}]}`,
	} {
		if _, err := New(parse(t, conf), Env{NodeName: "a"}); err != nil {
			t.Errorf("%s\n  %v", conf, err)
		}
	}
}

// TestOverlapsAreReportedOnce checks that each pair of overlapping networks is one fault.
func TestOverlapsAreReportedOnce(t *testing.T) {
	_, err := New(parse(t, `{"ipamConfig":{"podSubnetCIDR":"fd00::/16"}}`), Env{})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, other := range []string{"serviceCIDR", "vppHostSubnetCIDR", "nodeInterconnectCIDR", "vxlanCIDR"} {
		if n := strings.Count(err.Error(), "overlaps with "+other); n != 1 {
			t.Errorf("%s is named %d times in:\n%v", other, n, err)
		}
	}
}
