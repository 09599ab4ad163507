package nb

import (
	linux_nodeports "contiv.dev/vswitch/dataplane/nb/linux/nodeports"
)

// NodePortsPrefix is the prefix of the keys that describe the host stack's handling of node ports. vpp-agent has
// no equivalent.
const NodePortsPrefix = "config/linux/contiv/v1/node-ports/"

// ForwardedPrefix is the prefix of the keys that describe the connections that the host forwards to VPP.
const ForwardedPrefix = "config/linux/contiv/v1/forwarded/"

// NodePortsKey returns the key of the node ports of an address family.
func NodePortsKey(f linux_nodeports.Family) string { return NodePortsPrefix + f.String() }

// ForwardedKey returns the key of the forwarded connections of an address family.
func ForwardedKey(f linux_nodeports.Family) string { return ForwardedPrefix + f.String() }

// nodePortsModels returns the models of these messages.
func nodePortsModels() []model {
	return []model{
		named(NodePortsPrefix, func(m *linux_nodeports.NodePorts) string { return NodePortsKey(m.GetFamily()) }),
		named(ForwardedPrefix, func(m *linux_nodeports.Forwarded) string { return ForwardedKey(m.GetFamily()) }),
	}
}
