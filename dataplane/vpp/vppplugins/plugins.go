package vppplugins

import (
	"fmt"
	"strings"
)

// Names are the plugins whose API the agent uses, without "_plugin.so", and our own. VPP ignores a name that it does
// not find; the agent compares what it needs with what VPP has.
func Names() []string {
	return []string{"acl", "af_packet", "contiv", "dhcp", "memif", "nat", "ping", "vxlan"}
}

// DPDK is loaded where VPP has a NIC by it.
const DPDK = "dpdk"

// Config are the lines of startup.conf's section plugins that load some plugins and no others. Names that the extra configuration
// has in a section of its own are left to it: VPP does not start when a plugin is configured twice.
func Config(extra string, names ...string) []string {
	var lines []string
	add := func(name, what string) {
		if !configured(extra, name) {
			lines = append(lines, fmt.Sprintf("plugin %s { %s }", name, what))
		}
	}
	add("default", "disable")
	for _, name := range names {
		add(name+"_plugin.so", "enable")
	}
	return lines
}

// configured reports whether a configuration has an entry "plugin NAME".
func configured(text, name string) bool {
	words := strings.Fields(strings.NewReplacer("{", " { ", "}", " } ").Replace(text))
	for i := 1; i < len(words); i++ {
		if words[i-1] == "plugin" && words[i] == name {
			return true
		}
	}
	return false
}
