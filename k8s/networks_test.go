package k8s

import (
	"strings"
	"testing"

	"contiv.dev/vswitch/plugins/controller/conffile"
)

// TestNetworksOverlap checks that the chart rejects IPv4 networks that overlap each other or contain addresses that nodes reach
// without contiv, and names both. It accepts the networks that the agent accepts.
func TestNetworksOverlap(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"contivConf: {ipamConfig: {serviceCIDR: 10.0.0.0/8}}":                                                           "serviceCIDR 10.0.0.0/8",
		"contivConf: {ipamConfig: {podSubnetCIDR: 10.97.0.0/16}}":                                                       "podSubnetCIDR 10.97.0.0/16",
		"contivConf: {ipamConfig: {podSubnetCIDR: 'fd10:1::/48, 192.168.16.0/22', podSubnetOneNodePrefixLen: '64,26'}}": "podSubnetCIDR 192.168.16.0/22",
		"contivConf: {ipamConfig: {vxlanCIDR: 172.30.9.0/24}}":                                                          "vxlanCIDR 172.30.9.0/24",
		"contivConf: {ipamConfig: {podSubnetCIDR: 0.0.0.0/0}}":                                                          "podSubnetCIDR 0.0.0.0/0",
		"kubernetes: {server: 'https://10.1.2.3:6443'}":                                                                 "podSubnetCIDR 10.1.0.0/16 contains https://10.1.2.3:6443",
		"etcd: {mode: external, external: {endpoints: ['https://172.30.0.1:2379'], tlsSecret: x}}":                      "vppHostSubnetCIDR 172.30.0.0/16 contains https://172.30.0.1:2379",
		// valid networks
		"contivConf: {ipamConfig: {podSubnetCIDR: 10.2.0.0/16}}":                                                                   "",
		"contivConf: {ipamConfig: {podSubnetCIDR: 'fd10:1::/48', podSubnetOneNodePrefixLen: 64, serviceCIDR: 'fd00:10:96::/112'}}": "",
		"contivConf: {nodeToNodeTransport: nooverlay, ipamConfig: {nodeInterconnectCIDR: 192.168.30.0/24}}":                        "",
		"contivConf: {ipamConfig: {nodeInterconnectDHCP: true, podSubnetCIDR: 192.168.16.0/24, podSubnetOneNodePrefixLen: 28}}":    "",
		"contivConf: {ipamConfig: {podSubnetCIDR: '', serviceCIDR: ''}}":                                                           "",
		"kubernetes: {server: 'https://192.0.2.1:6443'}":                                                                           "",
		"kubernetes: {server: 'https://api.example.com:6443'}":                                                                     "",
		"contivConf: {ipamConfig: {podSubnetCIDR: 255.255.255.0/24, podSubnetOneNodePrefixLen: 26}}":                               "", // the agent rejects it
	} {
		_, err := render(t, renderRequest{Values: values})
		if (err == nil) != (want == "") || err != nil && !(strings.Contains(err.Error(), want) && strings.Contains(err.Error(), "choose")) {
			t.Errorf("%s\n  %v\n  want %q", values, err, want)
		}
	}
}

// TestSeedsSpellings checks that the chart also accepts the spellings of contiv's documentation.
func TestSeedsSpellings(t *testing.T) {
	t.Parallel()
	manifest := rendered(t, "contivConf: {UseTAPInterfaces: true, TAPInterfaceVersion: 2}")
	if !strings.Contains(manifest, "UseTAPInterfaces: true") || !strings.Contains(manifest, "name: contiv-agent-cfg\n") {
		t.Error("contiv's spelling, or its ConfigMap, is not in the manifest")
	}
}

// TestControllerConf checks that the agent reads the options that the chart has for controller.conf, and receives the path of the
// file.
func TestControllerConf(t *testing.T) {
	t.Parallel()
	if strings.Contains(rendered(t, ""), "controller-config") {
		t.Error("a file that is not there is named")
	}
	manifest := rendered(t, "controllerConf: {delayRetry: 2s, eventHistoryAgeLimit: 60, enableRetry: true, maxRetryAttempts: 0}")
	text, _ := at(object(t, manifest, "ConfigMap", "contiv-agent-cfg"), "data", "controller.conf").(string)
	if c, err := conffile.Load([]byte(text)); err != nil || c.MaxRetryAttempts != 0 {
		t.Errorf("%v in\n%s", err, text)
	}
	if strings.Count(manifest, "--controller-config=/etc/contiv/controller.conf") != 2 {
		t.Error("not both agents have the file")
	}
	for _, bad := range []string{"controllerConf: {delayRetri: 2s}", "controllerConf: {enableRetry: perhaps}", "controllerConf: {maxRetryAttempts: -1}"} {
		if _, err := render(t, renderRequest{Values: bad}); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// TestUplinkNotes checks that an installation of VPP without a NIC prints a note.
func TestUplinkNotes(t *testing.T) {
	t.Parallel()
	for values, told := range map[string]bool{
		"": true, "dataplane: vpp": true, "dataplane: linux": false,
		"{dataplane: vpp, contivConf: {mainVPPInterface: {defaultRoute: true}}}": false,
		"{dataplane: vpp, contivConf: {nodeConfig: [{nodeName: worker-7}]}}":     true,
	} {
		notes, err := render(t, renderRequest{Values: values, Notes: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(notes, "set contivConf.mainVPPInterface"); got != told {
			t.Errorf("%s: told %t:\n%s", values, got, notes)
		}
		if strings.Contains(values, "worker-7") && !strings.Contains(notes, "(there are sections for worker-7).") {
			t.Errorf("%s:\n%s", values, notes)
		}
	}
}
