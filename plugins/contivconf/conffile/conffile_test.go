package conffile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"contiv.dev/vswitch/plugins/contivconf"
)

const example = "../testdata/contiv.conf"

func TestExample(t *testing.T) {
	c, err := LoadFile(example, contivconf.Env{NodeName: "node-1"})
	if err != nil {
		t.Fatal(err)
	}
	node := c.Node()
	if node.NatExternalTraffic || len(node.OtherVPPInterfaces) != 2 || len(node.MainVPPInterface.IPs) != 2 {
		t.Errorf("node-1: %+v", node)
	}
	if got := len(c.IPAM().Families()); got != 2 {
		t.Errorf("%d families, want 2", got)
	}
}

// TestEffectiveConfigurationIsAFile checks that the JSON of the effective configuration is a contiv.conf with the same meaning.
func TestEffectiveConfigurationIsAFile(t *testing.T) {
	for _, conf := range []string{
		"", "ipamConfig: {contivCIDR: 10.128.0.0/14}", "ipamConfig: {podSubnetCIDR: 'fd10:1::/48'}",
		"{useTAPInterfaces: true, ipamConfig: {nodeInterconnectDHCP: true}}",
	} {
		checkRoundTrip(t, []byte(conf), "node-9")
	}
	data, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"node-1", "node-2", "node-3"} {
		checkRoundTrip(t, data, node)
	}
}

func checkRoundTrip(t *testing.T, data []byte, node string) {
	t.Helper()
	first, err := Load(data, contivconf.Env{NodeName: node})
	if err != nil {
		t.Fatal(err)
	}
	second, err := Load([]byte(first.String()), contivconf.Env{NodeName: node})
	if err != nil {
		t.Fatalf("the effective configuration is not valid: %v\n%s", err, first)
	}
	if first.String() != second.String() {
		t.Errorf("not the same again:\n%s\n%s", first, second)
	}
}

func TestSyntaxFaults(t *testing.T) {
	for _, tc := range []struct{ conf, want string }{
		{"mtuSise: 1500", "mtuSise: unknown option; did you mean mtuSize? (line 1)"},
		{"\nusetapinterfaces: true", "usetapinterfaces: unknown option; did you mean useTAPInterfaces? (line 2)"},
		{"ipamConfig:\n  podSubnet: 10.1.0.0/16", "ipamConfig.podSubnet: unknown option; did you mean podSubnetCIDR? (line 2)"},
		{"podSubnetCIDR: 10.1.0.0/16", "podSubnetCIDR: unknown option; did you mean podSubnetCIDR in section ipamConfig? (line 1)"},
		{"ipamConfig: {mtuSize: 1}", "ipamConfig.mtuSize: unknown option; did you mean mtuSize at the top level? (line 1)"},
		{"nodeConfig: [{nodename: a}]", "nodeConfig[0].nodename: unknown option; did you mean nodeName? (line 1)"},
		{"nodeConfig: [{zzzzzzzz: a}]", "nodeConfig[0].zzzzzzzz: unknown option; the options here are gateway, mainVPPInterface"},
		{"mtuSize: 1\nmtuSize: 2", "mtuSize: is set twice, first in line 1; remove one of the two (line 2)"},
		{"mtuSize: big", `mtuSize: "big" is not a number from 0 to 4294967295 (line 1)`},
		{"mtuSize: -1", `mtuSize: "-1" is not a number`},
		{"ipNeighborScanInterval: 256", `ipNeighborScanInterval: "256" is not a number from 0 to 255`},
		{"enableGSO: maybe", `enableGSO: "maybe" is not a truth value; write true or false (line 1)`},
		{"enableGSO: [true]", "enableGSO: is a list; it must be a single value"},
		{"ipamConfig: 5", `ipamConfig: is the value "5"; it must be a section of options`},
		{"nodeConfig: {nodeName: a}", "nodeConfig: is a section; it must be a list of sections"},
		{"nodeConfig: [a]", `nodeConfig[0]: is the value "a"; it must be a section`},
		{"ipamConfig: {podSubnetOneNodePrefixLen: x}", `ipamConfig.podSubnetOneNodePrefixLen: "x" is not a prefix length`},
		{"[]", "contiv.conf: is a list; it must be a section of options"},
		{"a: [", "not YAML"},
		{"mtuSize: 1400\n---\npodVRFID: 3", "there is a second document (line 2)"},
		{"mtuSize: 1400\n---\na: [", "not YAML"},
		{strings.Repeat("#", maxSize+1), "the limit is"},
	} {
		_, err := Load([]byte(tc.conf), contivconf.Env{})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.60s\n  error %v\n  want  %s", tc.conf, err, tc.want)
		}
	}
}

// TestOtherSpellings checks the spellings in contiv's documentation of ipnet.
func TestOtherSpellings(t *testing.T) {
	c, err := Load([]byte("UseTAPInterfaces: True\nTAPInterfaceVersion: 2\n"), contivconf.Env{})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Interface(); !got.UseTAPInterfaces || got.TAPInterfaceVersion != 2 {
		t.Errorf("%+v", got)
	}
	_, err = Load([]byte("useTAPInterfaces: true\nUseTAPInterfaces: false"), contivconf.Env{})
	if want := "UseTAPInterfaces: is set twice, first in line 1"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestFormAndMeaningTogether(t *testing.T) {
	_, err := Load([]byte("mtuSise: 1\nipamConfig: {vxlanCIDR: x}"), contivconf.Env{})
	if err == nil || !strings.Contains(err.Error(), "mtuSise: ") || !strings.Contains(err.Error(), "ipamConfig.vxlanCIDR: ") {
		t.Errorf("error %v, want both faults", err)
	}
}

func TestYAMLForms(t *testing.T) {
	for _, conf := range []string{
		"", "---\n", "# nothing", "mtuSize:", "ipamConfig:", "nodeConfig:",
		"useTAPInterfaces: True", "useTAPInterfaces: yes", `{"mtuSize": 1400}`,
		"ipamConfig: {podSubnetOneNodePrefixLen: 25}", `ipamConfig: {podSubnetOneNodePrefixLen: "25"}`,
		`ipamConfig: {podSubnetOneNodePrefixLen: ""}`,
		"nodeConfig:\n- nodeName: a\n  mainVPPInterface: &i {interfaceName: e}\n- nodeName: b\n  mainVPPInterface: *i",
	} {
		if _, err := Load([]byte(conf), contivconf.Env{}); err != nil {
			t.Errorf("%q: %v", conf, err)
		}
	}
}

func TestLoadFileNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "contiv.conf")
	if _, err := LoadFile(path, contivconf.Env{}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("absent: %v", err)
	}
	if err := os.WriteFile(path, []byte("x: 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadFile(path, contivconf.Env{}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("faulty: %v", err)
	}
}

// FuzzLoad checks that reading any file results in a valid configuration or in an error.
func FuzzLoad(f *testing.F) {
	data, err := os.ReadFile(example)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	for _, s := range []string{
		"", "a: &a [*a]", "ipamConfig: {contivCIDR: '10.128.0.0/14,fd00::/64'}", "nodeConfig: [{nodeName: a, gateway: 1.2.3.4}]",
		"ipamConfig: {podSubnetCIDR: 'fd10::/127', podSubnetOneNodePrefixLen: '128'}", "<<: {mtuSize: 1}", "? [a]\n: b",
		"ipamConfig: &x {podSubnetCIDR: *x}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Load(data, contivconf.Env{NodeName: "node-1"})
		if (c == nil) == (err == nil) {
			t.Fatalf("configuration %v and error %v", c, err)
		}
		if c == nil {
			return
		}
		ipam := c.IPAM()
		if len(ipam.Families()) == 0 {
			t.Fatal("no families")
		}
		for _, v := range ipam.Families() {
			fam, ok := ipam.Family(v)
			if !ok || !fam.PodSubnetCIDR.IsValid() || fam.PodSubnetOneNodePrefixLen < fam.PodSubnetCIDR.Bits() {
				t.Fatalf("%s: %+v", v, fam)
			}
		}
		if _, err := Load([]byte(c.String()), contivconf.Env{NodeName: "node-1"}); err != nil {
			t.Fatalf("the effective configuration is not valid: %v\n%s", err, c)
		}
	})
}

// TestOnlyFilesAreRead checks that the reader does not wait for files without an end.
func TestOnlyFilesAreRead(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "contiv.conf")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, "/dev/zero", t.TempDir()} {
		if _, err := LoadFile(path, contivconf.Env{}); err == nil || !strings.Contains(err.Error(), path+" is not a file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
