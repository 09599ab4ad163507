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
	// Of what VPP 25.10 alone does with packets that the kernel left to it to cut up or to checksum: docs/adr/0013.
	if c.iface.EnableGSO && !c.iface.UseTAPInterfaces {
		bad.add("enableGSO", "is true, but only TAP interfaces can have it (useTAPInterfaces is false, or the node has no /dev/vhost-net); "+
			"remove the option or set it to false")
	}
	if c.iface.EnableGSO && c.iface.TCPChecksumOffloadDisabled {
		bad.add("enableGSO", "is true, but so is tcpChecksumOffloadDisabled; packets that are split later get their checksums later: remove one of them")
	}
	if !c.iface.TCPChecksumOffloadDisabled && !c.iface.EnableGSO {
		bad.add("tcpChecksumOffloadDisabled", "is false, but VPP 25.10 does not fill in the checksums of all that pods send; "+
			"remove the option or set it to true")
	}
	return bad.err()
}

// afPacket reports which of VPP's interfaces on this node are AF_PACKET ones.
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
