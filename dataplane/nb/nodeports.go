package nb

import (
	"google.golang.org/protobuf/proto"

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

// nodePortsKey gives the key of one of these messages and the prefix it must have.
func nodePortsKey(m proto.Message) (key, prefix string) {
	switch m := m.(type) {
	case *linux_nodeports.NodePorts:
		return NodePortsKey(m.GetFamily()), NodePortsPrefix
	case *linux_nodeports.Forwarded:
		return ForwardedKey(m.GetFamily()), ForwardedPrefix
	}
	return "", ""
}

// newNodePorts is an empty message of the kind that the key belongs to, nil for other keys.
func newNodePorts(key string) proto.Message {
	switch {
	case isUnder(key, NodePortsPrefix):
		return new(linux_nodeports.NodePorts)
	case isUnder(key, ForwardedPrefix):
		return new(linux_nodeports.Forwarded)
	}
	return nil
}
