package contivconf

import "strings"

// CheckVPP refuses what VPP cannot do with the interfaces that it is to have on this node. It does not concern nodes on which
// the kernel moves the packets, for which the same file is valid.
func (c *Config) CheckVPP() error {
	var bad faults
	if c.iface.InterfaceRxMode == RxModeAdaptive {
		for _, where := range c.afPacket() {
			bad.add("interfaceRxMode", "adaptive is not possible for AF_PACKET interfaces, and %s; use default, interrupt or polling", where)
		}
	}
	if c.offload && !c.iface.UseTAPInterfaces {
		bad.add("tcpChecksumOffloadDisabled", "is false, but pods by VETH (useTAPInterfaces is false, or the node has no /dev/vhost-net) "+
			"have no checksum offload; remove the option")
	}
	return bad.err()
}

// afPacket says which of VPP's interfaces on this node are AF_PACKET ones.
func (c *Config) afPacket() []string {
	var out []string
	if !c.iface.UseTAPInterfaces {
		out = append(out, "pods' interfaces are (useTAPInterfaces is false, or the node has no /dev/vhost-net)")
	}
	main := c.node.MainVPPInterface.InterfaceName
	for _, i := range append([]VPPInterface{c.node.MainVPPInterface}, c.node.OtherVPPInterfaces...) {
		if strings.HasPrefix(i.InterfaceName, AFPacketPrefix) {
			out = append(out, "the interface "+i.InterfaceName+" of this node is")
		}
	}
	if main == "" && c.node.Uplink.Selects() {
		out = append(out, "the NIC that mainVPPInterface selects is")
	}
	return out
}
