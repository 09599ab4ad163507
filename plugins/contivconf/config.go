package contivconf

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
)

// Env describes this machine for New.
type Env struct {
	// NodeName selects the node's section.
	NodeName string
	// HasVhostNet reports whether the node can have TAP interfaces (VPP opens /dev/vhost-net for them). It is called only if
	// useTAPInterfaces is not set; nil means no.
	HasVhostNet func() bool
}

// Config is the effective configuration of this node; it implements API and never changes.
type Config struct {
	iface    InterfaceConfig
	routing  RoutingConfig
	neighbor NeighborScanConfig
	ipam     IPAMConfig
	node     NodeConfig
	sections []string // the names of the nodes that have sections
}

var _ API = (*Config)(nil)

// New merges the file with the defaults and with the section of the node, and validates the result. The error joins all faults, each a
// *FieldError. A fault in the section of another node is an error, too: the file is the same on all nodes, so it is valid on all or on
// none.
func New(file File, env Env) (*Config, error) {
	var bad faults
	c := &Config{
		iface:    interfaceConfig(file.InterfaceOptions, env, &bad),
		routing:  routingConfig(file.RoutingOptions, &bad),
		neighbor: neighborScanConfig(file.NeighborScanOptions, &bad),
	}
	checkUnsupported(file, &bad)
	nets := ipamConfig(file.IPAMConfig, c.routing.NodeToNodeTransport, &bad)
	c.ipam = nets.config
	if f, ok := c.ipam.Family(IPv6); ok && c.iface.MTUSize < minMTUIPv6 {
		bad.add("mtuSize", "%d is too small for IPv6 (pods have %s); use %d or more", c.iface.MTUSize, f.PodSubnetCIDR, minMTUIPv6)
	}
	c.node = nodeConfig(file, nets, env.NodeName, &bad)
	if up := uplinkConfig(file.MainVPPInterface, nets, &bad); c.node.MainVPPInterface.InterfaceName == "" {
		c.node.Uplink = up
	}
	for _, s := range file.NodeConfig {
		c.sections = append(c.sections, or(s.NodeName, ""))
	}
	if err := bad.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// Default returns the configuration of a node without contiv.conf.
func Default(env Env) *Config {
	c, err := New(File{}, env)
	if err != nil {
		panic(fmt.Sprintf("contivconf: the defaults are invalid: %v", err)) // a test verifies that this does not happen
	}
	return c
}

// Interface implements API.
func (c *Config) Interface() InterfaceConfig { return c.iface }

// Routing implements API.
func (c *Config) Routing() RoutingConfig { return c.routing }

// NeighborScan implements API.
func (c *Config) NeighborScan() NeighborScanConfig { return c.neighbor }

// IPAM implements API.
func (c *Config) IPAM() IPAMConfig { return c.ipam.clone() }

// Node implements API.
func (c *Config) Node() NodeConfig { return c.node.clone() }

// String returns the effective configuration as one line of JSON.
func (c *Config) String() string {
	text, err := json.Marshal(c)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// MarshalJSON writes the effective configuration with contiv's option names. The result is a valid contiv.conf that gives the same
// configuration on this node; contivCIDR is replaced by the networks into which it was split.
func (c *Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.file()) }

// MarshalJSON writes the options of the section ipamConfig, with contivCIDR expanded.
func (c IPAMConfig) MarshalJSON() ([]byte, error) { return json.Marshal(c.options()) }

func (c *Config) file() File {
	node := c.node
	section := NodeSection{
		NodeName:           &node.NodeName,
		MainVPPInterface:   new(node.MainVPPInterface.section()),
		NatExternalTraffic: &node.NatExternalTraffic,
		Gateway:            addrList(node.Gateways),
	}
	for _, i := range node.OtherVPPInterfaces {
		section.OtherVPPInterfaces = append(section.OtherVPPInterfaces, i.section())
	}
	if node.NodeName == "" {
		section.NodeName = nil
	}
	iface, routing, scan := c.iface, c.routing, c.neighbor
	return File{
		NatExternalTraffic: &node.NatExternalTraffic,
		EnablePacketTrace:  &node.EnablePacketTrace,
		InterfaceOptions: InterfaceOptions{
			MTUSize:                    unlessDefault(&iface.MTUSize, iface.MTUIsDefault),
			UseTAPInterfaces:           &iface.UseTAPInterfaces,
			TAPInterfaceVersion:        &iface.TAPInterfaceVersion,
			TAPv2RxRingSize:            &iface.TAPv2RxRingSize,
			TAPv2TxRingSize:            &iface.TAPv2TxRingSize,
			Vmxnet3RxRingSize:          &iface.Vmxnet3RxRingSize,
			Vmxnet3TxRingSize:          &iface.Vmxnet3TxRingSize,
			InterfaceRxMode:            new(string(iface.InterfaceRxMode)),
			TCPChecksumOffloadDisabled: unlessDefault(&iface.TCPChecksumOffloadDisabled, iface.ChecksumsAreDefault),
			EnableGSO:                  unlessDefault(&iface.EnableGSO, iface.GSOIsDefault),
		},
		RoutingOptions: RoutingOptions{
			MainVRFID:             &routing.MainVRFID,
			PodVRFID:              &routing.PodVRFID,
			NodeToNodeTransport:   new(string(routing.NodeToNodeTransport)),
			VxlanVNI:              &routing.VxlanVNI,
			RouteServiceCIDRToVPP: &routing.RouteServiceCIDRToVPP,
		},
		NeighborScanOptions: NeighborScanOptions{
			ScanIPNeighbors:          &scan.ScanIPNeighbors,
			IPNeighborScanInterval:   &scan.IPNeighborScanInterval,
			IPNeighborStaleThreshold: &scan.IPNeighborStaleThreshold,
		},
		IPAMConfig: c.ipam.reachable().options(), MainVPPInterface: node.Uplink.options(),
		NodeConfig: nodeSections(section),
	}
}

// nodeSections leaves out the section if it has no node name.
func nodeSections(s NodeSection) []NodeSection {
	if s.NodeName == nil {
		return nil
	}
	return []NodeSection{s}
}

func (i VPPInterface) section() InterfaceSection {
	s := InterfaceSection{IP: prefixList(i.IPs)}
	if i.InterfaceName != "" {
		s.InterfaceName = &i.InterfaceName
	}
	if i.UseDHCP {
		s.UseDHCP = &i.UseDHCP
	}
	return s
}

// reachable leaves out the default gateways that only nodes with addresses of their own can reach: the file contains only this node's
// section, which has its gateways.
func (c IPAMConfig) reachable() IPAMConfig {
	c.DefaultGateway = slices.DeleteFunc(slices.Clone(c.DefaultGateway), func(gw netip.Addr) bool {
		network := prefixOf(c.NodeInterconnectCIDR, VersionOf(gw))
		return network.IsValid() && !usable(gw, network)
	})
	return c
}

func (c IPAMConfig) options() IPAMOptions {
	return IPAMOptions{
		ServiceCIDR:                   prefixList(c.ServiceCIDR),
		NodeInterconnectDHCP:          &c.NodeInterconnectDHCP,
		PodSubnetCIDR:                 prefixList(c.PodSubnetCIDR),
		PodSubnetOneNodePrefixLen:     (*Lengths)(&c.PodSubnetOneNodePrefixLen),
		VPPHostSubnetCIDR:             prefixList(c.VPPHostSubnetCIDR),
		VPPHostSubnetOneNodePrefixLen: (*Lengths)(&c.VPPHostSubnetOneNodePrefixLen),
		NodeInterconnectCIDR:          prefixList(c.NodeInterconnectCIDR),
		VxlanCIDR:                     prefixList(c.VxlanCIDR),
		DefaultGateway:                addrList(c.DefaultGateway),
	}
}

func (c IPAMConfig) clone() IPAMConfig {
	for _, list := range []*[]netip.Prefix{&c.ContivCIDR, &c.ServiceCIDR, &c.PodSubnetCIDR, &c.VPPHostSubnetCIDR,
		&c.NodeInterconnectCIDR, &c.VxlanCIDR} {
		*list = slices.Clone(*list)
	}
	c.PodSubnetOneNodePrefixLen = slices.Clone(c.PodSubnetOneNodePrefixLen)
	c.VPPHostSubnetOneNodePrefixLen = slices.Clone(c.VPPHostSubnetOneNodePrefixLen)
	c.DefaultGateway = slices.Clone(c.DefaultGateway)
	return c
}

func (c NodeConfig) clone() NodeConfig {
	c.MainVPPInterface.IPs = slices.Clone(c.MainVPPInterface.IPs)
	c.OtherVPPInterfaces = slices.Clone(c.OtherVPPInterfaces)
	for i := range c.OtherVPPInterfaces {
		c.OtherVPPInterfaces[i].IPs = slices.Clone(c.OtherVPPInterfaces[i].IPs)
	}
	c.Gateways, c.Uplink = slices.Clone(c.Gateways), c.Uplink.clone()
	return c
}

func prefixList(list []netip.Prefix) *string {
	if len(list) == 0 {
		return nil
	}
	return new(joinComma(list, netip.Prefix.String))
}

func addrList(list []netip.Addr) *string {
	if len(list) == 0 {
		return nil
	}
	return new(joinComma(list, netip.Addr.String))
}

// unlessDefault leaves out an option whose default is computed on the node.
func unlessDefault[T any](option *T, isDefault bool) *T {
	if isDefault {
		return nil
	}
	return option
}
