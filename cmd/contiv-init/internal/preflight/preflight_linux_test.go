package preflight

import (
	"bytes"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/cmd/internal/vppsup"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/contivconf/conffile"
	"contiv.dev/vswitch/plugins/contivconf/uplink"
)

// capable returns a node that lacks nothing for VPP with DPDK.
func capable() (Facts, Wants) {
	return Facts{
			Arch: "amd64", CPUFlags: map[string]bool{"sse4_2": true}, MemAvailable: 8 << 30, HugepageBytes: 1 << 30,
			Links: map[string]Link{"eth0": {Up: true}, "eth1": {}, "lo": {Up: true, Virtual: true}},
			PCI:   map[string]PCIDevice{"0000:00:08.0": {Driver: "virtio-pci"}}, VFIO: true, IOMMU: true,
		}, Wants{
			VPP: true, NICs: []vppsup.NIC{{Name: "GigabitEthernet0/8/0", Driver: vppsup.DPDK, PCI: "0000:00:08.0"}},
			Settings: vppsup.Settings{HeapMB: 512, Buffers: 65536}, Hugepages: vppsup.HugepagesAuto, HugepageLimit: -1, VXLAN: true,
			Ports: []Port{{9999, "REST", "agent.restPort"}}, Conflist: "10-contiv.conflist",
		}
}

// TestCheck: each thing that may be missing is found, is an error or a warning as it should be, and has a fix.
func TestCheck(t *testing.T) {
	afPacket := []vppsup.NIC{{Name: "host-eth1", Driver: vppsup.AFPacket, Linux: "eth1"}}
	for name, tc := range map[string]struct {
		change func(*Facts, *Wants)
		want   string // "" for nothing; "!" before a warning
	}{
		"nothing":                 {func(*Facts, *Wants) {}, ""},
		"policies":                {func(f *Facts, _ *Wants) { f.Policies = true }, "!NetworkPolicy: the cluster has NetworkPolicy objects"},
		"policies on Linux":       {func(f *Facts, w *Wants) { f.Policies, w.VPP = true, false }, ""},
		"old processor":           {func(f *Facts, _ *Wants) { f.CPUFlags = map[string]bool{"fpu": true} }, "CPU: "},
		"arm has no SSE":          {func(f *Facts, _ *Wants) { f.Arch, f.CPUFlags = "arm64", map[string]bool{"fp": true} }, ""},
		"little memory":           {func(f *Facts, _ *Wants) { f.MemAvailable = 100 << 20 }, "memory: VPP needs 512 MB"},
		"no hugepages with DPDK":  {func(f *Facts, _ *Wants) { f.HugepageBytes = 0 }, "hugepages: 0 MB of 2 MB"},
		"no hugepages, AF_PACKET": {func(f *Facts, w *Wants) { f.HugepageBytes, w.NICs = 0, nil }, "!hugepages: 0 MB"},
		"no hugepages, asked for": {func(f *Facts, w *Wants) { f.HugepageBytes, w.NICs, w.Hugepages = 0, nil, "on" },
			"hugepages: 0 MB"},
		"no hugepages, not asked":       {func(f *Facts, w *Wants) { f.HugepageBytes, w.NICs, w.Hugepages = 0, nil, "off" }, ""},
		"VPP's container may take none": {func(_ *Facts, w *Wants) { w.HugepageLimit = 0 }, "hugepages: 0 MB of 2 MB"},
		"VPP's container may take all":  {func(_ *Facts, w *Wants) { w.HugepageLimit = 256 << 20 }, ""},
		"VPP runs and has them":         {func(f *Facts, _ *Wants) { f.HugepageBytes, f.VPPRunning = 0, true }, ""},
		"no such PCI device": {func(f *Facts, _ *Wants) { f.PCI = nil },
			"NIC: GigabitEthernet0/8/0: there is no PCI device 0000:00:08.0"},
		"NIC in use by the kernel": {func(f *Facts, _ *Wants) { f.PCI["0000:00:08.0"] = PCIDevice{"e1000", "eth3", true} },
			"in use by the kernel as eth3"},
		"NIC is VPP's already": {func(f *Facts, _ *Wants) {
			f.PCI["0000:00:08.0"], f.VFIO = PCIDevice{Driver: "vfio-pci"}, false
		}, ""},
		"no vfio-pci":             {func(f *Facts, _ *Wants) { f.VFIO = false }, "modprobe vfio-pci"},
		"no IOMMU":                {func(f *Facts, _ *Wants) { f.IOMMU = false }, "intel_iommu=on"},
		"kernel's NIC is missing": {func(f *Facts, w *Wants) { w.NICs = afPacket; delete(f.Links, "eth1") }, "there are eth0"},
		"kernel's NIC is down":    {func(_ *Facts, w *Wants) { w.NICs = afPacket }, "!NIC: host-eth1: eth1 is down"},
		"NIC on Linux is missing": {func(_ *Facts, w *Wants) { w.VPP, w.LinuxNIC = false, "eth9" }, "no interface eth9"},
		"REST port is taken": {func(f *Facts, _ *Wants) { f.TCP = map[int]bool{9999: true} },
			"port: TCP port 9999, for REST"},
		"REST port is the agent's": {func(f *Facts, _ *Wants) { f.TCP, f.AgentRunning = map[int]bool{9999: true}, true }, ""},
		"VXLAN port is taken": {func(f *Facts, w *Wants) { f.UDP, w.VPP = map[int]bool{4789: true}, false },
			"UDP port 4789"},
		"VXLAN port is the tunnel's": {func(f *Facts, w *Wants) {
			f.UDP, w.VPP, f.Links[vxlanLink] = map[int]bool{4789: true}, false, Link{Up: true, Virtual: true}
		}, ""},
		"VXLAN port, but no VXLAN": {func(f *Facts, w *Wants) { f.UDP, w.VPP, w.VXLAN = map[int]bool{4789: true}, false, false },
			""},
		"another plugin is first": {func(f *Facts, _ *Wants) { f.Conflists = []string{"05-other.conf", "87-x.conflist"} },
			"!CNI: 05-other.conf comes before"},
		"kernel lacks for Linux": {func(f *Facts, w *Wants) { w.VPP = false; f.Features = lacking(ForLinux, false) },
			"kernel: no thing (no)"},
		"kernel lacks, not for VPP": {func(f *Facts, _ *Wants) { f.Features = lacking(ForLinux, false) }, ""},
		"kernel lacks VXLAN": {func(f *Facts, w *Wants) { w.VPP = false; f.Features = lacking(ForVXLAN, false) },
			"kernel: no thing"},
		"kernel could do better": {func(f *Facts, _ *Wants) { f.Features = lacking(ForVPP, true) }, "!kernel: no thing"},
	} {
		f, w := capable()
		tc.change(&f, &w)
		found := Check(f, w)
		text := ""
		for _, x := range found {
			if !x.Error {
				text += "!"
			}
			text += x.String()
			if x.Fix == "" {
				t.Errorf("%s: nothing to do about %s", name, x)
			}
		}
		if (tc.want == "") != (len(found) == 0) || !strings.Contains(text,
			tc.want) || Failed(found) != (tc.want != "" && tc.want[0] != '!') {
			t.Errorf("%s: found %q, want %q", name, text, tc.want)
		}
	}
}

func lacking(f For, optional bool) []Feature {
	return []Feature{{Name: "thing", For: f, Optional: optional, Err: "no", Fix: "do"}, {Name: "other", For: f}}
}

// TestErrorsFirst: errors come before warnings, and the text fits into an Event.
func TestErrorsFirst(t *testing.T) {
	f, w := capable()
	f.Conflists, f.TCP = []string{strings.Repeat("0", 2000)}, map[int]bool{9999: true}
	found := Check(f, w)
	if len(found) != 2 || !found[0].Error || found[1].Error {
		t.Errorf("%v", found)
	}
	if s := Summary(found); len(s) > 1024 || !strings.HasPrefix(s, "port: ") {
		t.Errorf("%d bytes: %s", len(s), s)
	}
	var b bytes.Buffer
	Print(&b, found)
	if !strings.HasPrefix(b.String(), "MISSING  port") || !strings.Contains(b.String(), "fix: find the process") {
		t.Error(b.String())
	}
}

// TestGather: a node's /proc and /sys are read as they are, and an empty root directory is accepted.
func TestGather(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"proc/cpuinfo":                "processor : 0\nflags\t\t: fpu sse4_2\n",
		"proc/meminfo":                "MemTotal: 9 kB\nMemAvailable:    2048 kB\n",
		"proc/net/tcp":                "sl local rem st\n0: 0100007F:270F 00000000:0000 0A 0:0 0:0 0 0 0 77\n1: 0100007F:1F90 00000000:0000 01 0:0 0:0 0 0 0 78\n",
		"proc/net/udp":                "sl\n0: 00000000:12B5 00000000:0000 07 0:0 0:0 0 0 0 0\n1: 00000000:0035 00000000:0000 07 0:0 0:0 0 0 0 9\n",
		"sys/class/net/eth0/flags":    "0x1003\n",
		"sys/class/net/eth0/device/x": "",
		"sys/bus/pci/devices/0000:00:08.0/virtio3/net/eth3/flags": "0x1002",
		"sys/bus/pci/drivers/vfio-pci/x":                          "",
		"sys/kernel/iommu_groups/0/x":                             "",
		"sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": "10\n",
		"net.d/10-x.conflist":                                     "{}", "net.d/readme": "",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f := Gather(Places{Root: root, CNIConfDir: filepath.Join(root, "net.d"), AgentSocket: filepath.Join(root, "none")})
	switch {
	case !f.CPUFlags["sse4_2"], f.MemAvailable != 2<<20, f.HugepageBytes != 20<<20, !f.VFIO, !f.IOMMU, f.AgentRunning:
	case !f.TCP[9999], f.TCP[8080], !f.UDP[53], f.UDP[4789]:
	case f.Links["eth0"] != Link{Up: true}, f.PCI["0000:00:08.0"] != PCIDevice{NetDev: "eth3"}:
	case len(f.Conflists) != 1:
	default:
		Check(Gather(Places{Root: t.TempDir()}), Wants{VPP: true})
		return
	}
	t.Errorf("%+v", f)
}

// TestProbe: this machine's kernel has the features that our other tests use, and the trials leave nothing behind.
func TestProbe(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("trials of the kernel's features need root")
	}
	features, err := Probe(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range features {
		if f.Err != "" && !f.Optional {
			t.Errorf("%s: %s", f.Name, f.Err)
		}
	}
	for _, name := range []string{"pf0", "pf1", "pf2"} {
		if exists("/sys/class/net/" + name) {
			t.Errorf("the trials left %s behind", name)
		}
	}
}

// TestCheckConfig: settings of contiv.conf that do not fit the node are found before the agent starts.
func TestCheckConfig(t *testing.T) {
	nics := []uplink.NIC{
		{Name: "eth0", Up: true, DefaultRoute: true, MTU: 1500, Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.9/24")}},
		{Name: "eth1", Up: true, MTU: 1500}, {Name: "eth2", MTU: 400},
	}
	lan := func(text string) []contivconf.HostNetwork {
		return []contivconf.HostNetwork{{Interface: "eth0", Address: netip.MustParsePrefix(text)}}
	}
	for name, tc := range map[string]struct {
		vpp      bool
		conf     string
		networks []contivconf.HostNetwork
		want     string // "" for nothing; "!" before a warning
	}{
		"Linux needs nothing":    {false, "", lan("192.0.2.9/24"), ""},
		"pods cover the LAN":     {false, "", lan("10.1.0.9/24"), "networks: ipamConfig.podSubnetCIDR: 10.1.0.0/16 (its default) overlaps with 10.1.0.0/24"},
		"no NIC for VPP":         {true, "", nil, "!NIC: contiv.conf gives VPP no NIC, so this node cannot reach other nodes; set mainVPPInterface"},
		"alone on purpose":       {true, "mainVPPInterface: {standAlone: true}", nil, ""},
		"NIC by the route":       {true, "mainVPPInterface: {defaultRoute: true}", nil, ""},
		"no NIC fits":            {true, "mainVPPInterface: {namePattern: ens*}", nil, "NIC: no NIC of this node matches mainVPPInterface {namePattern: ens*}; it has eth0"},
		"no NIC fits on Linux":   {false, "mainVPPInterface: {namePattern: ens*}", nil, "NIC: no NIC of this node matches"},
		"several fit":            {true, "mainVPPInterface: {namePattern: 'eth[01]'}", nil, "!NIC: several NICs of this node match"},
		"NIC is down":            {true, "{mtuSize: 576, nodeToNodeTransport: nooverlay, mainVPPInterface: {namePattern: eth2}}", nil, "!NIC: eth2 is down"},
		"MTU is too small":       {true, "mainVPPInterface: {namePattern: eth2}", nil, "MTU: eth2 has an MTU of 400, pods' packets of 576 and the overlay's 50 bytes need 626"},
		"MTU does not fit":       {true, "{mtuSize: 1460, mainVPPInterface: {namePattern: eth1}}", nil, "MTU: eth1 has an MTU of 1500"},
		"MTU by default":         {true, "mainVPPInterface: {namePattern: eth1}", nil, ""},
		"adaptive on AF_PACKET":  {true, "{interfaceRxMode: adaptive, mainVPPInterface: {namePattern: eth1}}", nil, "contiv.conf: interfaceRxMode: adaptive is not possible"},
		"adaptive is VPP's":      {false, "interfaceRxMode: adaptive", nil, ""},
		"a mistyped section":     {false, "nodeConfig: [{nodeName: Node-1}]", nil, "!contiv.conf: no section for node node-1; did you mean it by the section of Node-1?"},
		"interconnect elsewhere": {true, "mainVPPInterface: {namePattern: eth1}", lan("192.168.16.9/24"), "!networks: nodeInterconnectCIDR 192.168.16.0/24 overlaps with 192.168.16.0/24, the network of eth0"},
	} {
		f, w := capable()
		w.NICs, w.VPP, f.NICsOfHost, f.Networks = nil, tc.vpp, slices.Clone(nics), tc.networks
		if name == "NIC is down" {
			f.NICsOfHost[2].MTU = 1500
		}
		var err error
		if w.Config, err = conffile.Load([]byte(tc.conf), contivconf.Env{NodeName: "node-1"}); err != nil {
			t.Fatal(err)
		}
		text := ""
		found := Check(f, w)
		for _, x := range found {
			if !x.Error {
				text += "!"
			}
			text += x.String()
		}
		if (tc.want == "") != (text == "") || !strings.Contains(text, tc.want) || Failed(found) != (tc.want != "" && tc.want[0] != '!') {
			t.Errorf("%s: found %q, want %q", name, text, tc.want)
		}
		var b bytes.Buffer
		PrintPassed(&b, w, found)
		for _, x := range found {
			if strings.Contains(b.String(), " "+x.Subject) {
				t.Errorf("%s: %s has passed as well: %s", name, x.Subject, b.String())
			}
		}
	}
}
