package vpptest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/vpp/vppplugins"
)

// config returns the startup.conf. The instance neither needs nor touches hugepages.
func (v *VPP) config() string {
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
	section("unix", "nodaemon", "nosyslog", "nocolor", "nobanner", "log "+v.path("vpp.log"),
		"runtime-dir "+v.dir, "cli-listen "+v.CLISocket(), "cli-no-pager")
	section("socksvr", "socket-name "+v.Socket())
	counters := ""
	if v.opts.PerNodeCounters {
		counters = "per-node-counters on"
	}
	section("statseg", "socket-name "+v.StatsSocket(), counters)
	if v.opts.Sanitize == "" {
		section("api-segment", "prefix "+v.prefix)
	} else { // the address sanitizer has its shadow memory at the addresses that VPP uses by default
		section("api-segment", "prefix "+v.prefix, "baseva 210000000000")
		section("physmem", "base-addr 0x200000000000")
	}
	section("memory", fmt.Sprintf("main-heap-size %dM", v.opts.HeapMB))
	section("buffers", "page-size default", fmt.Sprintf("buffers-per-numa %d", v.opts.Buffers))
	if v.opts.Workers > 0 {
		section("cpu", fmt.Sprintf("workers %d", v.opts.Workers))
	}
	section("plugins", v.plugins()...)
	if v.opts.FewPlugins == nil || slices.Contains(v.opts.FewPlugins, "acl") {
		section("acl-plugin", "connection count max 1024", "connection hash buckets 1024") // same values as in contiv-vpp-supervisor
	}
	b.WriteString(v.opts.Config)
	return b.String()
}

// plugins returns the lines of the section "plugins": the path of VPP's plugins beside the binary, and the plugins to load.
// These are the plugins of a node, and linux_cp and npt66 for tests of VPP's own behaviour.
func (v *VPP) plugins() []string {
	var lines []string
	prefix := filepath.Dir(filepath.Dir(v.bin))
	for _, dir := range []string{"lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib64", "lib"} {
		path := filepath.Join(prefix, dir, "vpp_plugins")
		if _, err := os.Stat(path); err == nil {
			if v.plugin != "" {
				path += ":" + filepath.Dir(v.plugin)
			}
			lines = append(lines, "path "+path)
			break
		}
	}
	enable := func(names ...string) {
		for _, name := range names {
			lines = append(lines, fmt.Sprintf("plugin %s_plugin.so { enable }", strings.TrimSuffix(name, "_plugin.so")))
		}
	}
	if v.opts.FewPlugins != nil {
		lines = append(lines, "plugin default { disable }")
		enable(v.opts.FewPlugins...)
		if v.opts.Plugin {
			enable("contiv")
		}
		return lines
	}
	lines = append(lines, vppplugins.Config(v.opts.Config, vppplugins.Names()...)...)
	enable("linux_cp", "npt66")
	return lines
}
