package vppsup

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/contivconf/conffile"
)

// asSupervisor makes the test binary act as a supervisor; the variable holds its Config.
const asSupervisor = "VPPSUP_TEST_CONFIG"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asVPP); dir != "" {
		fmt.Fprintln(os.Stderr, pretendVPP(dir))
		os.Exit(1)
	}
	text := os.Getenv(asSupervisor)
	if text == "" {
		os.Exit(m.Run())
	}
	runtime.LockOSThread()
	if err := supervise(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func supervise(text string) error {
	var cfg Config
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return err
	}
	sup, err := New(cfg, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGTERM)
	return sup.Run(context.Background(), signals)
}

func settings() Settings {
	return Settings{RunDir: "/run/vpp", HeapMB: 512, Buffers: 65536}
}

// TestNICsOf: VPP's name of a PCI device contains its address; a name with the prefix host- is a NIC that stays with the kernel.
func TestNICsOf(t *testing.T) {
	conf, err := conffile.Load([]byte(`
nodeConfig:
- nodeName: a
  mainVPPInterface: {interfaceName: GigabitEthernet0/8/0}
  otherVPPInterfaces:
  - {interfaceName: host-eth1, ip: 10.200.0.1/24}
  - {interfaceName: TenGigabitEthernet1/af/1f/3, ip: 10.201.0.1/24}
  - {interfaceName: memif1/0, ip: 10.202.0.1/24}
`), contivconf.Env{NodeName: "a"})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(NICsOf(conf.Node()))
	want := "[{GigabitEthernet0/8/0 dpdk 0000:00:08.0 } {host-eth1 af_packet  eth1} {TenGigabitEthernet1/af/1f/3 dpdk 0001:af:1f.3 }]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if pci, ok := pciOf("Ethernet3b/0/1"); !ok || pci != "0000:3b:00.1" { // a device whose speed is unknown to VPP
		t.Errorf("%q %t", pci, ok)
	}
	for _, name := range []string{"", "eth0", "GigabitEthernet0/8", "GigabitEthernet0/8/9", "GigabitEthernet0/3f/0",
		"GigabitEthernet0/8/0.100"} {
		if pci, ok := pciOf(name); ok {
			t.Errorf("%q taken for the PCI device %s", name, pci)
		}
	}
}

// TestRender: VPP gets the configured PCI devices and no others; hugepages are used only if there are any.
func TestRender(t *testing.T) {
	plain := settings().Render()
	for _, want := range []string{
		"plugin default { disable }\n", "plugin nat_plugin.so { enable }\n", "plugin contiv_plugin.so { enable }\n", "page-size default\n", "buffers-per-numa 65536", "socket-name /run/vpp/api.sock", "main-heap-size 512M",
		"acl-plugin {\n  connection count max 1024\n",
	} {
		if !strings.Contains(plain, want) {
			t.Errorf("%q is missing in\n%s", want, plain)
		}
	}
	for _, not := range []string{"dpdk", "cpu {", "hugepage", "api-segment"} {
		if strings.Contains(plain, not) {
			t.Errorf("%q in\n%s", not, plain)
		}
	}
	s := settings()
	s.NICs = []NIC{{Driver: DPDK, PCI: "0000:00:08.0"}, {Driver: DPDK, PCI: "0001:af:1f.3", Name: "TenGigabitEthernet1/af/1f/3"},
		{Driver: AFPacket, Linux: "eth1"}}
	s.Hugepages, s.Workers, s.Extra = true, 2, "nat44 { max 1 }\n\n"
	full := s.Render()
	for _, want := range []string{
		"dpdk {\n  uio-driver vfio-pci\n  dev 0000:00:08.0 { num-rx-queues 2 }\n" +
			"  dev 0001:af:1f.3 { name TenGigabitEthernet1/af/1f/3 num-rx-queues 2 }\n}\n", "cpu {\n  workers 2\n}\n", "page-size default-hugepage", "workers 2", "nat44 { max 1 }\n",
	} {
		if !strings.Contains(full, want) {
			t.Errorf("%q is missing in\n%s", want, full)
		}
	}
	s.MainCore, s.WorkerCores = "1", "2-3"
	if conf, want := s.Render(), "cpu {\n  main-core 1\n  corelist-workers 2-3\n}\n"; !strings.Contains(conf, want) {
		t.Errorf("%q is missing in\n%s", want, conf)
	}
	if !strings.Contains(full, "plugin dpdk_plugin.so { enable }") || strings.Contains(full, "eth1") {
		t.Errorf("DPDK is off, or has the kernel's NIC:\n%s", full)
	}
}

// TestCores: each worker has one processor of the list.
func TestCores(t *testing.T) {
	for _, c := range []struct {
		workers         int
		cores, mainCore string
		fault           string
	}{
		{workers: 0}, {workers: 3, cores: "2-3,6", mainCore: "1"}, {workers: 1, cores: "0"}, {workers: 2, mainCore: "0"},
		{workers: 2, cores: "2-4", fault: "names 3 processors for 2 workers"},
		{workers: 0, cores: "2", fault: "names 1 processors for 0 workers"},
		{workers: 2, cores: "2,2", fault: "processor 2 is named twice"},
		{workers: 2, cores: "3-2", fault: `"3-2" is neither`},
		{workers: 2, cores: "2, 3", fault: `" 3" is neither`},
		{workers: 2, cores: "2,3 }", fault: `"3 }" is neither`},
		{workers: 1, cores: "1-99999999", fault: "is neither"},
		{workers: 2, mainCore: "1-2", fault: "--main-core"}, {workers: 2, mainCore: "x", fault: "--main-core"},
	} {
		s := settings()
		s.Workers, s.WorkerCores, s.MainCore = c.workers, c.cores, c.mainCore
		err := s.Validate()
		if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestValidate: all faults are reported at once.
func TestValidate(t *testing.T) {
	err := Settings{RunDir: "run", HeapMB: 1, Buffers: 1, Workers: -1, Extra: "a {", Plugins: "plug ins",
		Prefix: "a } b"}.Validate()
	for _, want := range []string{"--heap-mb 1", "--buffers 1", "--workers -1", "--run-dir", "--plugin-path", "--shm-prefix",
		"extra configuration"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell of %s", err, want)
		}
	}
	if err := settings().Validate(); err != nil {
		t.Error(err)
	}
}

// TestBackoff: after the first crash there is no delay, the delays for a VPP that does not stay up never decrease, and a VPP that stayed up
// starts without delay again.
func TestBackoff(t *testing.T) {
	var b backoff
	var got []time.Duration
	for range 12 {
		got = append(got, b.next(time.Second))
	}
	if got[0] != 0 || got[1] != 0 || got[2] != minDelay || got[3] != 2*minDelay || got[11] != maxDelay {
		t.Errorf("waits %v", got)
	}
	if d := b.next(stable); d != 0 {
		t.Errorf("after a stable life: %s", d)
	}
}

// node returns a root directory with the kernel's files about hugepages.
func node(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestHugepages: hugepages are used if the node has enough and the container may use them; the error for "on" contains the fix.
func TestHugepages(t *testing.T) {
	const free = hugepageDir + "/free_hugepages"
	for _, tc := range []struct {
		name, mode string
		files      map[string]string
		want       bool
		err        string
	}{
		{"no hugepages", HugepagesAuto, nil, false, ""},
		{"enough", HugepagesAuto, map[string]string{free: "512\n"}, true, ""},
		{"not enough", HugepagesAuto, map[string]string{free: "64"}, false, ""},
		{"container may take none, cgroup v2", HugepagesAuto, map[string]string{free: "512",
			"sys/fs/cgroup/hugetlb.2MB.max": "0"}, false, ""},
		{"no limit, cgroup v2", HugepagesAuto, map[string]string{free: "512", "sys/fs/cgroup/hugetlb.2MB.max": "max\n"}, true, ""},
		{"none, cgroup v1", HugepagesAuto, map[string]string{free: "512",
			"sys/fs/cgroup/hugetlb/hugetlb.2MB.limit_in_bytes": "0"}, false, ""},
		{"enough for one NUMA node of two", HugepagesAuto, map[string]string{
			free: "100", "sys/devices/system/node/node0/x": "", "sys/devices/system/node/node1/x": "",
		}, false, ""},
		{"off", HugepagesOff, map[string]string{free: "512"}, false, ""},
		{"on, none", HugepagesOn, nil, false, "set vm.nr_hugepages"},
		{"misspelt", "yes", nil, false, `--hugepages "yes"`},
	} {
		got, err := chooseHugepages(tc.mode, node(t, tc.files), settings())
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %v, %v", tc.name, got, err)
		}
	}
}

// TestShortOfMemory: a container that is too small for VPP's memory is found at the start, and not months later when the kernel kills VPP.
func TestShortOfMemory(t *testing.T) {
	s := Settings{HeapMB: 512, Buffers: 65536} // 156 MB
	for limit, short := range map[string]bool{"": false, "max": false, "1073741824": true, "1258291200": false} {
		for _, file := range []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"} {
			root := t.TempDir()
			if limit != "" {
				root = node(t, map[string]string{file: limit + "\n"})
			}
			if why := shortOfMemory(root, s); (why != "") != short {
				t.Errorf("%s %q: %q", file, limit, why)
			}
		}
	}
	s.Hugepages = true
	root := t.TempDir()
	if why := shortOfMemory(root, s); why != "" {
		t.Errorf("no limit: %q", why)
	}
}
