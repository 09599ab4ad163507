package preflight

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"contiv.dev/vswitch/cmd/internal/vppsup"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/contivconf/uplink"
)

// Facts holds what has been read about the node.
type Facts struct {
	Arch          string
	CPUFlags      map[string]bool
	MemAvailable  int64 // bytes; 0: unknown
	HugepageBytes int64 // free hugepages of the node; this process's own limit is not VPP's
	Links         map[string]Link
	PCI           map[string]PCIDevice
	VFIO, IOMMU   bool
	TCP           map[int]bool // ports with a listener
	UDP           map[int]bool // ports that a program (not the kernel) uses
	Conflists     []string
	AgentRunning  bool
	VPPRunning    bool
	Features      []Feature // of the kernel; see Probe
	NICsOfHost    []uplink.NIC
	Networks      []contivconf.HostNetwork // that the node is in
	Policies      bool                     // the cluster has NetworkPolicy objects; only known if the API server was queried
}

// Link is an interface of the kernel.
type Link struct{ Up, Virtual bool }

// PCIDevice is a device on the PCI bus.
type PCIDevice struct {
	Driver string
	NetDev string // its name, if the kernel has it as a network interface
	Up     bool
}

// Places holds the paths of the checked files; an empty path is not checked.
type Places struct {
	Root        string // "/", except in tests
	CNIConfDir  string
	AgentSocket string // REST
	VPPSocket   string
}

// Gather reads the kernel's facts. Facts that cannot be read stay unknown; this is not a fault of the node.
func Gather(p Places) Facts {
	f := Facts{
		Arch: runtime.GOARCH, HugepageBytes: vppsup.FreeHugepages(p.Root), AgentRunning: answers(p.AgentSocket),
		VPPRunning: answers(p.VPPSocket), TCP: map[int]bool{}, UDP: map[int]bool{},
	}
	f.CPUFlags = cpuFlags(p.path("proc/cpuinfo"))
	f.MemAvailable = memAvailable(p.path("proc/meminfo"))
	f.Links = links(p.path("sys/class/net"))
	f.PCI = pciDevices(p.path("sys/bus/pci/devices"))
	f.VFIO = exists(p.path("sys/bus/pci/drivers/vfio-pci"))
	groups, err := os.ReadDir(p.path("sys/kernel/iommu_groups"))
	f.IOMMU = err == nil && len(groups) > 0 || text(p.path("sys/module/vfio/parameters/enable_unsafe_noiommu_mode")) == "Y"
	for _, v := range []string{"", "6"} {
		sockets(p.path("proc/net/tcp"+v), f.TCP, func(state, _ string) bool { return state == "0A" }) // listening
		sockets(p.path("proc/net/udp"+v), f.UDP, func(_, inode string) bool { return inode != "0" })
	}
	for _, ext := range []string{"*.conf", "*.conflist", "*.json"} {
		files, err := filepath.Glob(filepath.Join(p.CNIConfDir, ext))
		if err != nil || p.CNIConfDir == "" {
			continue
		}
		for _, file := range files {
			f.Conflists = append(f.Conflists, filepath.Base(file))
		}
	}
	return f
}

// path returns the path of a file of /proc or /sys. The symbolic link /proc/net leads to the process's own network namespace.
func (p Places) path(name string) string { return filepath.Join(p.Root, name) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// text returns a file's one line; empty if there is none.
func text(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// answers reports whether a process serves the socket.
func answers(socket string) bool {
	if socket == "" {
		return false
	}
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// lines calls visit with the fields of each line.
func lines(path string, visit func(fields []string)) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	for sc := bufio.NewScanner(file); sc.Scan(); {
		visit(strings.Fields(sc.Text()))
	}
}

func cpuFlags(path string) map[string]bool {
	flags := map[string]bool{}
	lines(path, func(fields []string) {
		if len(flags) == 0 && len(fields) > 2 && fields[0] == "flags" {
			for _, name := range fields[2:] {
				flags[name] = true
			}
		}
	})
	return flags
}

func memAvailable(path string) (bytes int64) {
	lines(path, func(fields []string) {
		if len(fields) >= 2 && fields[0] == "MemAvailable:" {
			if kb, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				bytes = kb << 10
			}
		}
	})
	return bytes
}

func links(dir string) map[string]Link {
	out := map[string]Link{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return out
	}
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		out[e.Name()] = Link{Up: up(at), Virtual: !exists(filepath.Join(at, "device"))}
	}
	return out
}

// up reports whether the administrator has set IFF_UP.
func up(dir string) bool {
	flags, err := strconv.ParseUint(strings.TrimPrefix(text(filepath.Join(dir, "flags")), "0x"), 16, 32)
	return err == nil && flags&1 != 0
}

func pciDevices(dir string) map[string]PCIDevice {
	out := map[string]PCIDevice{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return out
	}
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		var dev PCIDevice
		if target, err := os.Readlink(filepath.Join(at, "driver")); err == nil {
			dev.Driver = filepath.Base(target)
		}
		// virtio devices have their network interface one level below.
		for _, pattern := range []string{"net/*", "virtio*/net/*"} {
			found, err := filepath.Glob(filepath.Join(at, pattern))
			if err == nil && len(found) > 0 {
				dev.NetDev, dev.Up = filepath.Base(found[0]), up(found[0])
			}
		}
		out[e.Name()] = dev
	}
	return out
}

// sockets reads the ports of /proc/net/tcp and similar files.
func sockets(path string, ports map[int]bool, match func(state, inode string) bool) {
	lines(path, func(fields []string) {
		if len(fields) < 10 || !match(fields[3], fields[9]) {
			return
		}
		_, port, ok := strings.Cut(fields[1], ":")
		if n, err := strconv.ParseUint(port, 16, 16); ok && err == nil {
			ports[int(n)] = true
		}
	})
}
