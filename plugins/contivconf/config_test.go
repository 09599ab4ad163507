package contivconf

import (
	"encoding/json"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

// parse parses a File from JSON; lengths are written as strings.
func parse(t *testing.T, text string) File {
	t.Helper()
	var f File
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatalf("test input: %v", err)
	}
	return f
}

func mustNew(t *testing.T, text, node string) *Config {
	t.Helper()
	c, err := New(parse(t, text), Env{NodeName: node})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return c
}

func prefixes(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func TestDefaults(t *testing.T) {
	c := Default(Env{NodeName: "n", HasVhostNet: func() bool { return true }})
	if got, want := c.Interface(), (InterfaceConfig{
		MTUSize: 1450, MTUIsDefault: true, UseTAPInterfaces: true, TAPInterfaceVersion: 2, TAPv2RxRingSize: 256, TAPv2TxRingSize: 1024,
		Vmxnet3RxRingSize: 1024, Vmxnet3TxRingSize: 1024, InterfaceRxMode: RxModeDefault,
		EnableGSO: true, GSOIsDefault: true, ChecksumsAreDefault: true,
	}); got != want {
		t.Errorf("Interface = %+v, want %+v", got, want)
	}
	if got, want := c.Routing(), (RoutingConfig{PodVRFID: 1, VxlanVNI: 10, NodeToNodeTransport: TransportVXLAN}); got != want {
		t.Errorf("Routing = %+v, want %+v", got, want)
	}
	if got, want := c.NeighborScan(), (NeighborScanConfig{true, 1, 4}); got != want {
		t.Errorf("NeighborScan = %+v, want %+v", got, want)
	}
	if got, want := c.IPAM(), (IPAMConfig{
		ServiceCIDR:   prefixes("10.96.0.0/12"),
		PodSubnetCIDR: prefixes("10.1.0.0/16"), PodSubnetOneNodePrefixLen: []int{24},
		VPPHostSubnetCIDR: prefixes("172.30.0.0/16"), VPPHostSubnetOneNodePrefixLen: []int{24},
		NodeInterconnectCIDR: prefixes("192.168.16.0/24"), VxlanCIDR: prefixes("192.168.30.0/24"),
	}); !reflect.DeepEqual(got, want) {
		t.Errorf("IPAM = %+v, want %+v", got, want)
	}
	if got, want := c.Node(), (NodeConfig{NodeName: "n", NatExternalTraffic: true}); !reflect.DeepEqual(got, want) {
		t.Errorf("Node = %+v, want %+v", got, want)
	}
}

func TestUseTAPInterfaces(t *testing.T) {
	yes, no := func() bool { return true }, func() bool { return false }
	for _, tc := range []struct {
		conf  string
		probe func() bool
		want  bool
	}{
		{`{}`, yes, true}, {`{}`, no, false}, {`{}`, nil, false},
		{`{"useTAPInterfaces":true}`, no, true}, {`{"useTAPInterfaces":false}`, yes, false},
	} {
		c, err := New(parse(t, tc.conf), Env{HasVhostNet: tc.probe})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Interface().UseTAPInterfaces; got != tc.want {
			t.Errorf("%s: UseTAPInterfaces = %v, want %v", tc.conf, got, tc.want)
		}
	}
}

func TestContivCIDR(t *testing.T) {
	// the example of contiv's documentation
	c := mustNew(t, `{"ipamConfig":{"contivCIDR":"10.128.0.0/14"}}`, "").IPAM()
	want := IPAMConfig{
		ContivCIDR: prefixes("10.128.0.0/14"), ServiceCIDR: prefixes("10.96.0.0/12"),
		PodSubnetCIDR: prefixes("10.128.0.0/16"), PodSubnetOneNodePrefixLen: []int{25},
		VPPHostSubnetCIDR: prefixes("10.129.0.0/16"), VPPHostSubnetOneNodePrefixLen: []int{25},
		NodeInterconnectCIDR: prefixes("10.130.0.0/23"), VxlanCIDR: prefixes("10.130.2.0/23"),
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}

	c = mustNew(t, `{"ipamConfig":{"contivCIDR":"fd20::/64,10.128.0.0/14","nodeInterconnectCIDR":"192.168.1.0/24"}}`, "").IPAM()
	if got, want := c.ContivCIDR, prefixes("10.128.0.0/14", "fd20::/64"); !reflect.DeepEqual(got, want) {
		t.Errorf("ContivCIDR = %v, want %v", got, want)
	}
	v6, ok := c.Family(IPv6)
	if wantV6 := (FamilyIPAM{
		Version: IPv6, ServiceCIDR: netip.MustParsePrefix("fd00:10:96::/112"),
		PodSubnetCIDR: netip.MustParsePrefix("fd20::/112"), PodSubnetOneNodePrefixLen: 121,
		VPPHostSubnetCIDR: netip.MustParsePrefix("fd20::1:0/112"), VPPHostSubnetOneNodePrefixLen: 121,
		NodeInterconnectCIDR: netip.MustParsePrefix("fd20::2:0/119"), VxlanCIDR: netip.MustParsePrefix("fd20::2:200/119"),
	}); !ok || v6 != wantV6 {
		t.Errorf("IPv6 = %+v, want %+v", v6, wantV6)
	}
	if got, want := c.NodeInterconnectCIDR, prefixes("192.168.1.0/24", "fd20::2:0/119"); !reflect.DeepEqual(got, want) {
		t.Errorf("NodeInterconnectCIDR = %v, want %v", got, want)
	}
	if got := mustNew(t, `{"ipamConfig":{"contivCIDR":"10.128.0.0/14","nodeInterconnectDHCP":true}}`, "").IPAM(); got.NodeInterconnectCIDR != nil {
		t.Errorf("with DHCP NodeInterconnectCIDR = %v, want none", got.NodeInterconnectCIDR)
	}
}

func TestDualStack(t *testing.T) {
	c := mustNew(t, `{"ipamConfig":{"podSubnetCIDR":"fd10:1::/48, 10.1.0.0/16","podSubnetOneNodePrefixLen":"64,25"}}`, "").IPAM()
	if got, want := c.Families(), []IPVersion{IPv4, IPv6}; !reflect.DeepEqual(got, want) {
		t.Fatalf("Families = %v, want %v", got, want)
	}
	if got, want := c.PodSubnetCIDR, prefixes("10.1.0.0/16", "fd10:1::/48"); !reflect.DeepEqual(got, want) {
		t.Errorf("PodSubnetCIDR = %v, want %v", got, want)
	}
	if got, want := c.PodSubnetOneNodePrefixLen, []int{25, 64}; !reflect.DeepEqual(got, want) {
		t.Errorf("PodSubnetOneNodePrefixLen = %v, want %v", got, want)
	}
	if got, want := c.VPPHostSubnetCIDR, prefixes("172.30.0.0/16", "fd00:172:30::/48"); !reflect.DeepEqual(got, want) {
		t.Errorf("VPPHostSubnetCIDR = %v, want %v", got, want)
	}
	only6 := mustNew(t, `{"ipamConfig":{"podSubnetCIDR":"fd10:1::/48"}}`, "").IPAM()
	if got, want := only6.Families(), []IPVersion{IPv6}; !reflect.DeepEqual(got, want) {
		t.Errorf("Families = %v, want %v", got, want)
	}
	if _, ok := only6.Family(IPv4); ok {
		t.Error("Family(IPv4) of an IPv6 cluster is ok")
	}
	mixed := mustNew(t, `{"ipamConfig":{"contivCIDR":"10.128.0.0/14","podSubnetCIDR":"fd10:1::/48","podSubnetOneNodePrefixLen":"60"}}`, "").IPAM()
	if got, want := mixed.PodSubnetOneNodePrefixLen, []int{25, 60}; !reflect.DeepEqual(got, want) {
		t.Errorf("mixed PodSubnetOneNodePrefixLen = %v, want %v", got, want)
	}
}

const nodesConf = `{"natExternalTraffic":true,
 "ipamConfig":{"defaultGateway":"192.168.16.100"},
 "nodeConfig":[
  {"nodeName":"a","natExternalTraffic":false,"gateway":"10.9.0.1",
   "mainVPPInterface":{"interfaceName":"eth0","ip":"10.9.0.5/24"},
   "otherVPPInterfaces":[{"interfaceName":"eth1","ip":"10.8.0.5/24"},{"interfaceName":"eth2","useDHCP":true}]},
  {"nodeName":"b","mainVPPInterface":{"useDHCP":true}}]}`

func TestNodeSections(t *testing.T) {
	if got, want := mustNew(t, nodesConf, "a").Node(), (NodeConfig{
		NodeName:         "a",
		MainVPPInterface: VPPInterface{InterfaceName: "eth0", IPs: prefixes("10.9.0.5/24")},
		OtherVPPInterfaces: []VPPInterface{
			{InterfaceName: "eth1", IPs: prefixes("10.8.0.5/24")}, {InterfaceName: "eth2", UseDHCP: true},
		},
		Gateways: []netip.Addr{netip.MustParseAddr("10.9.0.1")},
	}); !reflect.DeepEqual(got, want) {
		t.Errorf("a: %+v, want %+v", got, want)
	}
	gw := []netip.Addr{netip.MustParseAddr("192.168.16.100")}
	if got, want := mustNew(t, nodesConf, "b").Node(), (NodeConfig{
		NodeName: "b", MainVPPInterface: VPPInterface{UseDHCP: true}, Gateways: gw, NatExternalTraffic: true,
	}); !reflect.DeepEqual(got, want) {
		t.Errorf("b: %+v, want %+v", got, want)
	}
	c := mustNew(t, nodesConf, "c").Node()
	if want := (NodeConfig{NodeName: "c", Gateways: gw, NatExternalTraffic: true}); !reflect.DeepEqual(c, want) {
		t.Errorf("c: %+v, want %+v", c, want)
	}
	if a, ok := c.Gateway(IPv4); !ok || a != gw[0] {
		t.Errorf("Gateway(IPv4) = %v, %v", a, ok)
	}
	if _, ok := c.Gateway(IPv6); ok {
		t.Error("Gateway(IPv6) is ok")
	}
	// a static address has precedence over the cluster-wide DHCP
	dhcp := mustNew(t, `{"ipamConfig":{"nodeInterconnectDHCP":true},"nodeConfig":[{"nodeName":"a",
	  "mainVPPInterface":{"ip":"10.9.0.5/24"}}]}`, "a").Node()
	if dhcp.MainVPPInterface.UseDHCP {
		t.Error("UseDHCP although the node has a static address")
	}
	if !mustNew(t, `{"ipamConfig":{"nodeInterconnectDHCP":true}}`, "a").Node().MainVPPInterface.UseDHCP {
		t.Error("nodeInterconnectDHCP has no effect on a node without a section")
	}
}

// TestGettersGiveCopies checks that a caller cannot change the configuration through the result of a getter.
func TestGettersGiveCopies(t *testing.T) {
	c := mustNew(t, nodesConf, "a")
	before := c.String()
	i, n := c.IPAM(), c.Node()
	i.PodSubnetCIDR[0], i.PodSubnetOneNodePrefixLen[0], i.DefaultGateway[0] = netip.Prefix{}, 1, netip.Addr{}
	n.MainVPPInterface.IPs[0], n.OtherVPPInterfaces[0].IPs[0], n.Gateways[0] = netip.Prefix{}, netip.Prefix{}, netip.Addr{}
	if c.String() != before {
		t.Error("changing what getters returned changed the configuration")
	}
}

func TestJSONOfIPAM(t *testing.T) {
	text, err := json.Marshal(mustNew(t, `{"ipamConfig":{"contivCIDR":"10.128.0.0/14"}}`, "").IPAM())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"serviceCIDR":"10.96.0.0/12","nodeInterconnectDHCP":false,"podSubnetCIDR":"10.128.0.0/16",` +
		`"podSubnetOneNodePrefixLen":25,"vppHostSubnetCIDR":"10.129.0.0/16","vppHostSubnetOneNodePrefixLen":25,` +
		`"nodeInterconnectCIDR":"10.130.0.0/23","vxlanCIDR":"10.130.2.0/23"}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

// TestAllFaultsAtOnce checks that there is one error per fault, each a FieldError.
func TestAllFaultsAtOnce(t *testing.T) {
	_, err := New(parse(t, `{"mtuSize":100,"podVRFID":0,"stealFirstNIC":true,"ipamConfig":{"vxlanCIDR":"x","defaultGateway":"1.2.3.4"},
	  "nodeConfig":[{}]}`), Env{})
	var fields []string
	for line := range strings.Lines(err.Error()) {
		field, _, _ := strings.Cut(line, ": ")
		fields = append(fields, field)
	}
	want := []string{"mtuSize", "podVRFID", "stealFirstNIC", "ipamConfig.vxlanCIDR", "nodeConfig[0].nodeName",
		"nodeConfig[0].gateway", "ipamConfig.defaultGateway"}
	if !reflect.DeepEqual(fields, want) {
		t.Errorf("faulty fields %q, want %q:\n%v", fields, want, err)
	}
	var fe *FieldError
	if !errors.As(err, &fe) || fe.Field != "mtuSize" {
		t.Errorf("errors.As gave %v", fe)
	}
}

func TestVersions(t *testing.T) {
	if VersionOf(netip.MustParseAddr("::ffff:1.2.3.4")) != IPv4 || VersionOf(netip.MustParseAddr("::1")) != IPv6 {
		t.Error("VersionOf")
	}
	if IPv4.String() != "IPv4" || IPv6.String() != "IPv6" {
		t.Error("String")
	}
}
