package vppsup

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"contiv.dev/vswitch/dataplane/vpp/vppplugins"
)

// The limits of the settings.
const (
	minHeapMB, maxHeapMB   = 128, 1 << 20
	minBuffers, maxBuffers = 4096, 16 << 20
	maxWorkers             = 256
	maxCore                = 8191
	// bufferBytes is the size of a packet buffer: 2048 bytes of data, and headers.
	bufferBytes = 2496
)

// Settings holds the values that startup.conf is made from.
type Settings struct {
	RunDir  string // directory of the sockets
	HeapMB  int
	Buffers int // per NUMA node
	Workers int // worker threads; 0: the main thread forwards packets
	// WorkerCores lists the processors of the workers, as numbers and ranges. MainCore is the processor of the main thread. Empty: VPP chooses.
	WorkerCores, MainCore string
	Hugepages             bool
	Plugins               string // directory; empty: VPP's own
	Prefix                string // of shared memory, for a second VPP on the host; empty: none
	NICs                  []NIC
	Extra                 string // further sections, copied unchanged
}

// APISocket returns the socket of VPP's binary API.
func (s Settings) APISocket() string { return filepath.Join(s.RunDir, "api.sock") }

// CLISocket returns the socket of VPP's CLI, which vppctl uses.
func (s Settings) CLISocket() string { return filepath.Join(s.RunDir, "cli.sock") }

// sockets returns the sockets that a killed VPP leaves behind and that would prevent the next one from starting.
func (s Settings) sockets() []string {
	return []string{s.APISocket(), s.CLISocket(), filepath.Join(s.RunDir, "stats.sock")}
}

// BufferMemory returns the size of the packet buffers of a NUMA node in bytes.
func (s Settings) BufferMemory() int64 { return int64(s.Buffers) * bufferBytes }

// Validate returns all errors in the settings.
func (s Settings) Validate() error {
	var errs []error
	within := func(what string, n, least, most int) {
		if n < least || n > most {
			errs = append(errs, fmt.Errorf("%s %d: must be from %d to %d", what, n, least, most))
		}
	}
	within("--heap-mb", s.HeapMB, minHeapMB, maxHeapMB)
	within("--buffers", s.Buffers, minBuffers, maxBuffers)
	within("--workers", s.Workers, 0, maxWorkers)
	errs = append(errs, s.validateCores())
	const special = " \t\n{}" // in startup.conf
	if !filepath.IsAbs(s.RunDir) || strings.ContainsAny(s.RunDir, special) {
		errs = append(errs, fmt.Errorf("--run-dir %q: must be an absolute path without blanks", s.RunDir))
	}
	if strings.ContainsAny(s.Plugins, special) {
		errs = append(errs, fmt.Errorf("--plugin-path %q: must be a path without blanks and braces", s.Plugins))
	}
	if strings.ContainsAny(s.Prefix, special+"/") {
		errs = append(errs, fmt.Errorf("--shm-prefix %q: must be a name without blanks, braces and slashes", s.Prefix))
	}
	if strings.Count(s.Extra, "{") != strings.Count(s.Extra, "}") {
		errs = append(errs, errors.New("the extra configuration has unbalanced braces; VPP would not start"))
	}
	return errors.Join(errs...)
}

// Render returns the text of startup.conf.
func (s Settings) Render() string {
	var b strings.Builder
	section := func(name string, lines ...string) {
		fmt.Fprintf(&b, "%s {\n", name)
		for _, line := range lines {
			if line != "" {
				fmt.Fprintf(&b, "  %s\n", line)
			}
		}
		b.WriteString("}\n")
	}
	b.WriteString("# Written by contiv-vpp-supervisor at each start: changes go into contiv.conf or the extra configuration.\n")
	section("unix", "nodaemon", "nosyslog", "nocolor", "nobanner", "runtime-dir "+s.RunDir,
		"cli-listen "+s.CLISocket(), "cli-no-pager")
	section("socksvr", "socket-name "+s.APISocket())
	section("statseg", "socket-name "+filepath.Join(s.RunDir, "stats.sock"))
	if s.Prefix != "" {
		section("api-segment", "prefix "+s.Prefix)
	}
	section("memory", fmt.Sprintf("main-heap-size %dM", s.HeapMB))
	// Without page-size, VPP would change the host's number of hugepages.
	page := "page-size default"
	if s.Hugepages {
		page = "page-size default-hugepage"
	}
	section("buffers", page, fmt.Sprintf("buffers-per-numa %d", s.Buffers))
	s.cpu(section)
	// When the first ACL is applied to an interface, VPP allocates memory for the largest number of ACL sessions, by default 500,000 for each thread,
	// and crashes if there is not enough. Our ACLs have no sessions.
	section("acl-plugin", "connection count max 1024", "connection hash buckets 1024")
	s.dpdk(section)
	if extra := strings.TrimSpace(s.Extra); extra != "" {
		b.WriteString(extra + "\n")
	}
	return b.String()
}

// cpu writes the section about VPP's threads and their processors.
func (s Settings) cpu(section func(string, ...string)) {
	var lines []string
	if s.MainCore != "" {
		lines = append(lines, "main-core "+s.MainCore)
	}
	switch {
	case s.Workers == 0:
	case s.WorkerCores != "":
		lines = append(lines, "corelist-workers "+s.WorkerCores)
	default:
		lines = append(lines, fmt.Sprintf("workers %d", s.Workers))
	}
	if len(lines) > 0 {
		section("cpu", lines...)
	}
}

// coreCount returns the number of processors in a list such as 2-3,6.
func coreCount(list string) (int, error) {
	seen := map[int]bool{}
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		to := from
		if err == nil && isRange {
			to, err = strconv.Atoi(last)
		}
		if err != nil || from < 0 || to < from || to > maxCore {
			return 0, fmt.Errorf("%q is neither a number nor a range of processors", part)
		}
		for n := from; n <= to; n++ {
			if seen[n] {
				return 0, fmt.Errorf("processor %d is named twice", n)
			}
			seen[n] = true
		}
	}
	return len(seen), nil
}

// validateCores returns the errors in the processor settings.
func (s Settings) validateCores() error {
	var errs []error
	if s.MainCore != "" {
		if n, err := coreCount(s.MainCore); err != nil || n != 1 {
			errs = append(errs, fmt.Errorf("--main-core %q: must be the number of a processor", s.MainCore))
		}
	}
	if s.WorkerCores != "" {
		if n, err := coreCount(s.WorkerCores); err != nil {
			errs = append(errs, fmt.Errorf("--worker-cores: %w", err))
		} else if n != s.Workers {
			errs = append(errs, fmt.Errorf("--worker-cores %s: names %d processors for %d workers", s.WorkerCores, n, s.Workers))
		}
	}
	return errors.Join(errs...)
}

// dpdk writes the plugins that VPP loads and the PCI devices that it gets. Without a device DPDK is not loaded, because it would take every
// device that it finds.
func (s Settings) dpdk(section func(string, ...string)) {
	var plugins, devices []string
	if s.Plugins != "" {
		plugins = append(plugins, "path "+s.Plugins)
	}
	for _, nic := range s.NICs {
		if nic.Driver != DPDK {
			continue
		}
		var options []string
		if !strings.HasPrefix(nic.PCI, "0000:") { // VPP would omit the domain from the name
			options = append(options, "name "+nic.Name)
		}
		if s.Workers > 1 { // a NIC with fewer keeps one
			options = append(options, fmt.Sprintf("num-rx-queues %d", s.Workers))
		}
		device := "dev " + nic.PCI
		if len(options) > 0 {
			device += " { " + strings.Join(options, " ") + " }"
		}
		devices = append(devices, device)
	}
	names := vppplugins.Names()
	if len(devices) > 0 {
		names = append(names, vppplugins.DPDK)
		section("dpdk", append([]string{"uio-driver vfio-pci"}, devices...)...)
	}
	section("plugins", append(plugins, vppplugins.Config(s.Extra, names...)...)...)
}
