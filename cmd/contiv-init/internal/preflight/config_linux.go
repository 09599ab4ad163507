package preflight

import (
	"errors"
	"slices"
	"strings"

	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/contivconf/uplink"
)

// The fixes for the findings about contiv.conf.
const (
	inConf   = "change contiv.conf (contivConf in the chart's values)"
	forNode  = "write this node's name as Kubernetes has it"
	giveNIC  = "set mainVPPInterface in contiv.conf (defaultRoute, network or namePattern; standAlone for a cluster of one node), or interfaceName in the node's section of nodeConfig"
	lowerMTU = "raise the NIC's MTU, lower mtuSize in contiv.conf, or leave it out"
)

// vxlanOverhead is the least number of bytes that the overlay adds to each packet.
const vxlanOverhead = 50

// config compares contiv.conf with the node.
func (c *check) config() {
	if c.Config == nil {
		return
	}
	for _, fault := range faultsOf(c.Config.CheckHost(c.Networks)) {
		c.lacks("networks", inConf, "%s", fault)
	}
	if text, mistyped := c.Config.MissingSection(); mistyped {
		c.warn("contiv.conf", forNode, "%s", strings.TrimPrefix(text, "contiv.conf: "))
	}
	if c.VPP {
		for _, fault := range faultsOf(c.Config.CheckVPP()) {
			c.lacks("contiv.conf", inConf, "%s", fault)
		}
	}
	nic := c.uplink()
	c.interconnect(nic)
	c.mtu(nic)
}

// faultsOf splits a joined error into its faults.
func faultsOf(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// uplink returns the kernel's name of the NIC that connects the node with others; empty if it is not known.
func (c *check) uplink() string {
	node := c.Config.Node()
	if name := node.MainVPPInterface.InterfaceName; name != "" {
		return strings.TrimPrefix(name, contivconf.AFPacketPrefix)
	}
	if !node.Uplink.Selects() {
		if c.VPP && !node.Uplink.StandAlone {
			c.warn("NIC", giveNIC, "contiv.conf gives VPP no NIC, so this node cannot reach other nodes")
		}
		return ""
	}
	wanted := uplink.Wanted{Uplink: node.Uplink}
	for _, o := range node.OtherVPPInterfaces {
		wanted.Others = append(wanted.Others, strings.TrimPrefix(o.InterfaceName, contivconf.AFPacketPrefix))
	}
	found, err := uplink.Select(wanted, c.NICsOfHost)
	switch {
	case errors.Is(err, uplink.ErrSeveral): // one of them may be the previous uplink, which is kept
		c.warn("NIC", inConf, "%s", err)
	case err != nil:
		c.lacks("NIC", inConf, "%s", err)
	case !found.Up:
		c.warn("NIC", "run ip link set "+found.Name+" up, and check its cable", "%s is down", found.Name)
	}
	return found.Name
}

// interconnect warns if VPP's own addresses are in the network of a NIC that is not VPP's.
func (c *check) interconnect(uplinkName string) {
	if !c.VPP || uplinkName == "" {
		return
	}
	if cidr, nic, found := c.Config.InterconnectOf(c.Networks, uplinkName); found {
		c.warn("networks", "choose another nodeInterconnectCIDR, unless VPP's NIC is on the same wire",
			"nodeInterconnectCIDR %s overlaps with %s, the network of %s: pods may not reach that network", cidr, nic.Address.Masked(),
			nic.Interface)
	}
}

// mtu checks that the pods' packets fit into the uplink's MTU.
func (c *check) mtu(uplinkName string) {
	at := slices.IndexFunc(c.NICsOfHost, func(n uplink.NIC) bool { return n.Name == uplinkName })
	if at < 0 || c.NICsOfHost[at].MTU == 0 {
		return
	}
	overhead := 0
	if c.Config.Routing().NodeToNodeTransport == contivconf.TransportVXLAN {
		overhead = vxlanOverhead
	}
	pods := c.Config.Interface()
	least := pods.MTUSize
	if pods.MTUIsDefault {
		least = minMTU // the agent selects an MTU that fits
	}
	if has := c.NICsOfHost[at].MTU; has < int(least)+overhead {
		c.lacks("MTU", lowerMTU, "%s has an MTU of %d, pods' packets of %d and the overlay's %d bytes need %d", uplinkName, has, least,
			overhead, int(least)+overhead)
	}
}

// minMTU is the packet size that every IPv4 host must accept.
const minMTU = 576
