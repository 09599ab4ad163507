package preflight

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"contiv.dev/vswitch/cmd/internal/vppsup"
	"contiv.dev/vswitch/plugins/contivconf"
)

// Wants is the configuration that the node must be able to run.
type Wants struct {
	VPP       bool // false: Linux moves the packets
	NICs      []vppsup.NIC
	LinuxNIC  string // connects nodes on the Linux dataplane; empty: the NIC of the default route
	Settings  vppsup.Settings
	Hugepages string // vppsup.HugepagesAuto, …
	// HugepageLimit is the most bytes of hugepages that VPP's container may use; negative: no limit.
	HugepageLimit int64
	VXLAN         bool
	Ports         []Port
	Conflist      string // name of our file among the CNI configurations
	// Config is contiv.conf; nil: it is not compared with the node.
	Config *contivconf.Config
}

// Port is a TCP port that one of our programs listens on.
type Port struct {
	Number int
	For    string
	Flag   string // flag that changes the port
}

const vxlanPort = 4789

// vxlanLink is the name of the Linux dataplane's tunnel, which stays when the agent is replaced.
const vxlanLink = "contiv-vxlan"

// check collects findings.
type check struct {
	Facts
	Wants
	found []Finding
}

func (c *check) lacks(subject, fix, problem string, args ...any) {
	c.found = append(c.found, Finding{true, subject, fmt.Sprintf(problem, args...), fix})
}

func (c *check) warn(subject, fix, problem string, args ...any) {
	c.found = append(c.found, Finding{false, subject, fmt.Sprintf(problem, args...), fix})
}

// Check compares facts with wants. It returns errors first.
func Check(f Facts, w Wants) []Finding {
	if w.HugepageLimit >= 0 {
		f.HugepageBytes = min(f.HugepageBytes, w.HugepageLimit)
	}
	c := &check{Facts: f, Wants: w}
	if w.VPP {
		c.cpu()
		c.memory()
		c.hugepages()
		for _, nic := range w.NICs {
			if nic.Driver == vppsup.DPDK {
				c.pciNIC(nic)
			} else {
				c.linuxNIC(nic.Linux, nic.Name)
			}
		}
	} else if w.LinuxNIC != "" {
		c.linuxNIC(w.LinuxNIC, w.LinuxNIC)
	}
	c.config()
	c.kernel()
	c.ports()
	c.conflists()
	c.policies()
	slices.SortStableFunc(c.found, func(a, b Finding) int {
		switch {
		case a.Error == b.Error:
			return 0
		case a.Error:
			return -1
		}
		return 1
	})
	return c.found
}

// cpu checks for SSE 4.2: FD.io's packages are built for it, and without it VPP ends with an illegal instruction.
func (c *check) cpu() {
	if c.Arch == "amd64" && len(c.CPUFlags) > 0 && !c.CPUFlags["sse4_2"] {
		c.lacks("CPU", "use the Linux dataplane on this node, or a virtual machine type that passes the host's CPU through",
			"the processor has no SSE 4.2, which VPP needs")
	}
}

// policies warns that VPP enforces network policies with our plugin only. Pre-flight does not check for the plugin.
func (c *check) policies() {
	if c.Policies && c.VPP {
		c.warn("NetworkPolicy", "make sure that contiv_plugin.so is with VPP's plugins, as in our images; or use the Linux dataplane",
			"the cluster has NetworkPolicy objects, and without the contiv plugin in VPP new pods that they select do not start")
	}
}

func (c *check) memory() {
	if c.VPPRunning {
		return // VPP already has the memory that it needs
	}
	need := int64(c.Settings.HeapMB) << 20
	if c.HugepageBytes < c.Settings.BufferMemory() {
		need += c.Settings.BufferMemory()
	}
	if c.MemAvailable > 0 && c.MemAvailable < need {
		c.lacks("memory", "free memory, or lower vpp.heapMB and vpp.buffers", "VPP needs %d MB, %d MB are available",
			need>>20, c.MemAvailable>>20)
	}
}

func (c *check) hugepages() {
	need := c.Settings.BufferMemory()
	if c.VPPRunning || c.HugepageBytes >= need {
		return
	}
	pages := (need + 2<<20 - 1) / (2 << 20)
	fix := fmt.Sprintf("run sysctl -w vm.nr_hugepages=%d (and put it into /etc/sysctl.d), restart the kubelet, and set "+
		"vpp.hugepages2Mi to %dMi or more", pages+8, (pages+8)*2)
	problem := fmt.Sprintf("%d MB of 2 MB hugepages can be used, the packet buffers need %d MB", c.HugepageBytes>>20, need>>20)
	dpdk := slices.ContainsFunc(c.NICs, func(n vppsup.NIC) bool { return n.Driver == vppsup.DPDK })
	switch {
	case c.Wants.Hugepages == vppsup.HugepagesOn, dpdk:
		c.lacks("hugepages", fix, "%s", problem)
	case c.Wants.Hugepages == vppsup.HugepagesAuto:
		c.warn("hugepages", fix, "%s; ordinary pages are used, which is slower", problem)
	}
}

// pciNIC checks that VPP can take the device from the kernel, which works only if no other program uses the device.
func (c *check) pciNIC(nic vppsup.NIC) {
	dev, ok := c.PCI[nic.PCI]
	if !ok {
		c.lacks("NIC", "compare interfaceName in this node's section of contiv.conf with the output of lspci -D",
			"%s: there is no PCI device %s", nic.Name, nic.PCI)
		return
	}
	if c.VPPRunning || dev.Driver == "vfio-pci" {
		return
	}
	if dev.Up {
		c.lacks("NIC",
			fmt.Sprintf("make sure that the node is not managed through it, then run ip link set %s down; or let VPP share it: "+
				"interfaceName: host-%s", dev.NetDev, dev.NetDev), "%s is in use by the kernel as %s", nic.Name, dev.NetDev)
	}
	if !c.VFIO {
		c.lacks("kernel", "run modprobe vfio-pci (and put it into /etc/modules-load.d)", "%s: the driver vfio-pci is not loaded",
			nic.Name)
	}
	if !c.IOMMU {
		c.lacks("kernel", "boot with intel_iommu=on (or amd_iommu=on); on a virtual machine without an IOMMU load vfio with "+
			"enable_unsafe_noiommu_mode=1", "%s: there is no IOMMU", nic.Name)
	}
}

func (c *check) linuxNIC(device, name string) {
	link, ok := c.Links[device]
	switch {
	case !ok:
		c.lacks("NIC", fmt.Sprintf("correct interfaceName in this node's section of contiv.conf; there are %s", c.linkNames()),
			"%s: the node has no interface %s", name, device)
	case !link.Up:
		c.warn("NIC", fmt.Sprintf("run ip link set %s up, and check its cable", device), "%s: %s is down", name, device)
	}
}

func (c *check) linkNames() string {
	names := make([]string, 0, len(c.Links))
	for name, link := range c.Links {
		if !link.Virtual {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func (c *check) kernel() {
	for _, f := range c.Features {
		if f.Err == "" || f.For == ForVPP && !c.VPP || f.For == ForLinux && c.VPP || f.For == ForVXLAN && (c.VPP || !c.VXLAN) {
			continue
		}
		if f.Optional {
			c.warn("kernel", f.Fix, "no %s (%s)", f.Name, f.Err)
		} else {
			c.lacks("kernel", f.Fix, "no %s (%s)", f.Name, f.Err)
		}
	}
}

func (c *check) ports() {
	if c.AgentRunning {
		return // our own programs use the ports
	}
	for _, p := range c.Ports {
		if c.TCP[p.Number] {
			c.lacks("port", fmt.Sprintf("find the process (ss -ltnp sport = :%d) and stop it, or choose another port by %s", p.Number,
				p.Flag),
				"TCP port %d, for %s, is taken", p.Number, p.For)
		}
	}
	// The kernel's sockets have inodes, too: a tunnel that a previous agent has left in place is not a program.
	_, ours := c.Links[vxlanLink]
	if c.VXLAN && !c.VPP && c.UDP[vxlanPort] && !ours {
		c.lacks("port", "find the process (ss -lunp sport = :4789) and stop it", "UDP port %d, for VXLAN, is taken by a program",
			vxlanPort)
	}
}

// conflists warns about files that come before ours: the runtime takes the first file by name.
func (c *check) conflists() {
	for _, name := range c.Conflists {
		if name < c.Conflist {
			c.warn("CNI", fmt.Sprintf("remove /etc/cni/net.d/%s once the other network plugin is gone", name),
				"%s comes before %s: pods go to another network plugin", name, c.Conflist)
		}
	}
}

// PrintPassed prints the checks that passed, so that users also see what has not been checked.
func PrintPassed(w io.Writer, wants Wants, found []Finding) {
	subjects := []string{"kernel", "port", "CNI"}
	if wants.Config != nil {
		subjects = append([]string{"contiv.conf", "networks", "NIC", "MTU"}, subjects...)
	}
	if wants.VPP {
		subjects = append([]string{"CPU", "memory", "hugepages"}, subjects...)
	}
	subjects = slices.DeleteFunc(subjects, func(s string) bool {
		return slices.ContainsFunc(found, func(f Finding) bool { return f.Subject == s })
	})
	fmt.Fprintf(w, "passed   %s\n", strings.Join(subjects, ", "))
}
