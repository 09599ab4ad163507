package nb

import (
	linux_nodeports "contiv.dev/vswitch/dataplane/nb/linux/nodeports"
)

// NodePortsPrefix starts the keys of what the host's stack does for node ports. vpp-agent has nothing of the kind.
const NodePortsPrefix = "config/linux/contiv/v1/node-ports/"

// ForwardedPrefix starts the keys of how connections look that the host forwards to VPP.
const ForwardedPrefix = "config/linux/contiv/v1/forwarded/"

// NodePortsKey is the key of a family's node ports.
func NodePortsKey(f linux_nodeports.Family) string { return NodePortsPrefix + f.String() }

// ForwardedKey is the key of a family's forwarded connections.
func ForwardedKey(f linux_nodeports.Family) string { return ForwardedPrefix + f.String() }

// nodePortsModels are these messages.
func nodePortsModels() []model {
	return []model{
		named(NodePortsPrefix, func(m *linux_nodeports.NodePorts) string { return NodePortsKey(m.GetFamily()) }),
		named(ForwardedPrefix, func(m *linux_nodeports.Forwarded) string { return ForwardedKey(m.GetFamily()) }),
	}
}
