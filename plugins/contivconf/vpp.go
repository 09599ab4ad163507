package contivconf

import "strings"

// CheckVPP rejects options that VPP does not support for the interfaces of this node. It must not be called on nodes where the kernel
// forwards packets; the same file is valid there.
func (c *Config) CheckVPP() error {
	var bad faults
	if c.iface.InterfaceRxMode == RxModeAdaptive {
		for _, where := range c.afPacket() {
			bad.add("interfaceRxMode", "adaptive is not possible for AF_PACKET interfaces, and %s; use default, interrupt or polling", where)
		}
	}
	// docs/adr/0013 describes how VPP 25.10 alone handles packets that the kernel leaves to it to segment or to checksum.
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

// afPacket describes VPP's AF_PACKET interfaces on this node.
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
