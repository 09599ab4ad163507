package vppplugins

import (
	"fmt"
	"strings"
)

// Names returns the plugins whose API the agent uses, without "_plugin.so", and our own. VPP ignores a name that it does not
// find; the agent checks whether VPP has the messages that it needs.
func Names() []string {
	return []string{"acl", "af_packet", "contiv", "dhcp", "memif", "nat", "ping", "vxlan"}
}

// DPDK is the plugin that is loaded if VPP has a NIC driven by DPDK.
const DPDK = "dpdk"

// Config returns the lines of startup.conf's section "plugins" that load the named plugins and no others. Names that the extra
// configuration also configures are left out: VPP does not start if a plugin is configured twice.
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
