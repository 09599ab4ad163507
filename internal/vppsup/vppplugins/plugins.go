// Package vppplugins says which of VPP's plugins a node loads. VPP has more than eighty, of which many open ports, parse packets
// or take memory from the start; what is not loaded cannot be attacked. It is a package of its own so that tests start VPP with the same
// plugins.
package vppplugins

import "fmt"

// Names are the plugins whose API the agent uses, without "_plugin.so", and our own. VPP ignores a name that it does
// not find; the agent compares what it needs with what VPP has.
func Names() []string {
	return []string{"acl", "af_packet", "cnat", "contiv", "dhcp", "memif", "nat", "ping", "pnat", "vxlan"}
}

// DPDK is loaded where VPP has a NIC by it.
const DPDK = "dpdk"

// Config are the lines of startup.conf's section plugins that load some plugins and no others. Lines of a later section add to
// them.
func Config(names ...string) []string {
	lines := []string{"plugin default { disable }"}
	for _, name := range names {
		lines = append(lines, fmt.Sprintf("plugin %s_plugin.so { enable }", name))
	}
	return lines
}
