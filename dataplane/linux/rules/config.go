package rules

import (
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// The values of Config.Backend.
const (
	BackendAuto     = "auto" // nftables if the kernel supports it, otherwise iptables
	BackendNFT      = "nft"
	BackendIptables = "iptables"
)

// Config is the configuration of the rules. Fields that Felix has are named as in Felix.
type Config struct {
	// Hostname is this node's name in the messages; "": the machine's hostname.
	Hostname string

	// WorkloadIfacePrefixes are the prefixes of workload interfaces' names. An interface with such a name and without an endpoint is
	// blocked.
	WorkloadIfacePrefixes []string

	// The mark bits of this driver. The first four are single bits. Endpoint is a field of bits that holds a number for each endpoint
	// (kube-ipvs only); NonCaliEndpoint is the number in this field for all packets that do not come from an endpoint.
	IptablesMarkAccept   uint32
	IptablesMarkPass     uint32
	IptablesMarkScratch0 uint32
	IptablesMarkScratch1 uint32
	IptablesMarkEndpoint uint32
	// IptablesMarkMasquerade is a bit that marks a new connection to a service for masquerading to the node's address. It is used with
	// iptables only. The default 0x4000 is the bit that kube-proxy uses for the same purpose.
	IptablesMarkMasquerade      uint32
	IptablesMarkNonCaliEndpoint uint32

	// ChainPrefix is the prefix of all chain names; default "cali-", as in Felix. It has at most 7 letters, digits, "-" and "_".
	ChainPrefix string

	KubeNodePortRanges     []table.PortRange
	KubeIPVSSupportEnabled bool

	OpenStackMetadataIP          netip.Addr
	OpenStackMetadataPort        uint16
	OpenStackSpecialCasesEnabled bool

	VXLANEnabled       bool
	VXLANPort          int        // UDP; default 4789
	VXLANVNI           int        // default 10
	VXLANDevice        string     // default "contiv-vxlan"
	VXLANMTU           int        // 0: the largest that the parent device allows
	VXLANTunnelAddress netip.Addr // of the local VTEP, if the node's own message has none

	IPIPEnabled       bool
	IPIPTunnelAddress netip.Addr

	IptablesLogPrefix    string // of rules with action "log"; default "calico-packet"
	EndpointToHostAction string // DROP (default), ACCEPT or RETURN: the action for a workload's packets to the node that policy has accepted

	IptablesFilterAllowAction string // ACCEPT (default) or RETURN
	IptablesMangleAllowAction string // ACCEPT (default) or RETURN

	// The ports of the node that no host policy can block. nil means Felix's lists; an empty list means no ports.
	FailsafeInboundHostPorts  []ProtoPort
	FailsafeOutboundHostPorts []ProtoPort

	DisableConntrackInvalid bool

	// NodeAndSelfExempt exempts packets that a workload sends to its node or to itself from policies, as Kubernetes requires. Packets that
	// the node sends to its workloads always pass. It also drops TCP segments in the middle of an unknown connection, for workloads to
	// which policies apply, so that a connection that was removed from connection tracking remains blocked.
	NodeAndSelfExempt bool
	// ReportDenied sends the first bytes of packets that policies of workloads drop to table.ReportGroup, with the prefix ReportIngress or
	// ReportEgress. The limit is per chain, so that a workload that floods uses up only its own reports.
	ReportDenied bool
	// SharePolicies gives workloads with the same policies one common chain for these policies, in addition to each workload's own chain. A
	// change of the policies of many workloads then changes elements, if the backend implements dispatch chains by elements.
	// KubeIPVSSupportEnabled turns it off.
	SharePolicies bool
	// TiersForNode are tiers to which the node exemption of NodeAndSelfExempt does not apply: their policies also apply to packets that a
	// workload sends to its node. The first other tier that has policies for the workload allows such packets.
	TiersForNode []string

	NATPortRange                       table.PortRange // zero: any
	IptablesNATOutgoingInterfaceFilter string          // interface, or prefix with '+'

	Backend       string // BackendAuto (default), BackendNFT, BackendIptables
	RouteProtocol int    // the protocol number of our routes; default 202
}

// ProtoPort is a port of a protocol, restricted to addresses in Net unless Net is "".
type ProtoPort struct {
	Net      string // CIDR
	Protocol string // tcp, udp, sctp
	Port     uint16
}

// The defaults. Marks are the top bits of Felix's default IptablesMarkMask 0xffff0000, in Felix's order.
const (
	defaultMarkAccept   = 0x00010000
	defaultMarkPass     = 0x00020000
	defaultMarkScratch0 = 0x00040000
	defaultMarkScratch1 = 0x00080000
	defaultMarkEndpoint = 0xfff00000
	defaultMarkNonCali  = 0x00100000

	defaultMarkMasquerade = 0x00004000

	defaultRouteProtocol = 202
	defaultVXLANPort     = 4789
	defaultVXLANVNI      = 10
	defaultVXLANDevice   = "contiv-vxlan"
	defaultLogPrefix     = "calico-packet"
)

// WithDefaults returns the configuration with defaults for the fields that are not set.
func (c Config) WithDefaults() Config {
	if len(c.WorkloadIfacePrefixes) == 0 {
		c.WorkloadIfacePrefixes = []string{"cali"}
	}
	if c.IptablesMarkMasquerade == 0 {
		c.IptablesMarkMasquerade = defaultMarkMasquerade
	}
	if c.IptablesMarkAccept|c.IptablesMarkPass|c.IptablesMarkScratch0|c.IptablesMarkScratch1|c.IptablesMarkEndpoint == 0 {
		c.IptablesMarkAccept, c.IptablesMarkPass = defaultMarkAccept, defaultMarkPass
		c.IptablesMarkScratch0, c.IptablesMarkScratch1 = defaultMarkScratch0, defaultMarkScratch1
		c.IptablesMarkEndpoint, c.IptablesMarkNonCaliEndpoint = defaultMarkEndpoint, defaultMarkNonCali
	}
	setDefault(&c.ChainPrefix, felixChainPrefix)
	setDefault(&c.VXLANPort, defaultVXLANPort)
	setDefault(&c.VXLANVNI, defaultVXLANVNI)
	setDefault(&c.VXLANDevice, defaultVXLANDevice)
	setDefault(&c.IptablesLogPrefix, defaultLogPrefix)
	setDefault(&c.EndpointToHostAction, "DROP")
	setDefault(&c.IptablesFilterAllowAction, "ACCEPT")
	setDefault(&c.IptablesMangleAllowAction, "ACCEPT")
	setDefault(&c.Backend, BackendAuto)
	setDefault(&c.RouteProtocol, defaultRouteProtocol)
	if c.FailsafeInboundHostPorts == nil {
		c.FailsafeInboundHostPorts = append(portList("tcp", 22), append(portList("udp", 68), clusterPorts()...)...)
	}
	if c.FailsafeOutboundHostPorts == nil {
		c.FailsafeOutboundHostPorts = append(portList("udp", 53, 67), clusterPorts()...)
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// clusterPorts returns the ports of BGP and etcd, without which a node loses its cluster.
func clusterPorts() []ProtoPort { return portList("tcp", 179, 2379, 2380, 6666, 6667) }

func portList(protocol string, ports ...uint16) []ProtoPort {
	var list []ProtoPort
	for _, port := range ports {
		list = append(list, ProtoPort{Protocol: protocol, Port: port})
	}
	return list
}

// Validate returns all errors of the configuration; each names its field. The defaults must be filled in.
func (c Config) Validate() error {
	return errors.Join(c.checkPrefixes(), c.checkMarks(), c.checkActions(), c.checkPorts(), c.checkTunnels())
}

func fieldError(field, format string, args ...any) error {
	return fmt.Errorf("RulesConfig.%s: %s", field, fmt.Sprintf(format, args...))
}

func (c Config) checkPrefixes() error {
	if len(c.WorkloadIfacePrefixes) == 0 {
		return fieldError("WorkloadIfacePrefixes", "is empty; name at least one beginning, such as \"cali\"")
	}
	var errs []error
	if p := c.ChainPrefix; len(p) > maxChainPrefix || !plain(p) || strings.ContainsAny(p, "./") {
		errs = append(errs, fieldError("ChainPrefix", "%q cannot begin a chain's name (1 to %d letters, digits, - or _)", p, maxChainPrefix))
	}
	for _, prefix := range c.WorkloadIfacePrefixes {
		if !IfaceNameOK(prefix) {
			errs = append(errs, fieldError("WorkloadIfacePrefixes",
				"%q cannot begin an interface's name (1 to 15 characters, no / or space)", prefix))
		}
	}
	if filter := c.IptablesNATOutgoingInterfaceFilter; filter != "" && !IfaceNameOK(strings.TrimSuffix(filter, "+")) {
		errs = append(errs, fieldError("IptablesNATOutgoingInterfaceFilter", "%q is not an interface name", filter))
	}
	return errors.Join(errs...)
}

func (c Config) checkMarks() error {
	var errs []error
	var used uint32
	mark := func(field string, value uint32, single bool) {
		switch {
		case value == 0:
			errs = append(errs, fieldError(field, "is zero; it must be a bit that nothing else uses"))
		case single && bits.OnesCount32(value) != 1:
			errs = append(errs, fieldError(field, "%#x has %d bits; it must have one", value, bits.OnesCount32(value)))
		case used&value != 0:
			errs = append(errs, fieldError(field, "%#x overlaps with another mark of ours", value))
		}
		used |= value
	}
	mark("IptablesMarkAccept", c.IptablesMarkAccept, true)
	mark("IptablesMarkPass", c.IptablesMarkPass, true)
	mark("IptablesMarkScratch0", c.IptablesMarkScratch0, true)
	mark("IptablesMarkScratch1", c.IptablesMarkScratch1, true)
	mark("IptablesMarkMasquerade", c.IptablesMarkMasquerade, true)
	if !c.KubeIPVSSupportEnabled {
		return errors.Join(errs...)
	}
	mark("IptablesMarkEndpoint", c.IptablesMarkEndpoint, false)
	if non := c.IptablesMarkNonCaliEndpoint; non == 0 || non&^c.IptablesMarkEndpoint != 0 {
		errs = append(errs, fieldError("IptablesMarkNonCaliEndpoint", "%#x is not a number inside IptablesMarkEndpoint %#x",
			non, c.IptablesMarkEndpoint))
	}
	return errors.Join(errs...)
}

func (c Config) checkActions() error {
	var errs []error
	oneOf := func(field, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			errs = append(errs, fieldError(field, "%q is not one of %s", value, strings.Join(allowed, ", ")))
		}
	}
	oneOf("EndpointToHostAction", c.EndpointToHostAction, "DROP", "ACCEPT", "RETURN")
	oneOf("IptablesFilterAllowAction", c.IptablesFilterAllowAction, "ACCEPT", "RETURN")
	oneOf("IptablesMangleAllowAction", c.IptablesMangleAllowAction, "ACCEPT", "RETURN")
	oneOf("Backend", c.Backend, BackendAuto, BackendNFT, BackendIptables)
	if len(c.IptablesLogPrefix) > maxLogPrefix {
		errs = append(errs, fieldError("IptablesLogPrefix", "%q is longer than %d characters", c.IptablesLogPrefix, maxLogPrefix))
	}
	return errors.Join(errs...)
}

// maxLogPrefix is the number of characters that fit into xt_LOG's 30 bytes together with the ": " that follows.
const maxLogPrefix = 27

func (c Config) checkPorts() error {
	var errs []error
	for i, p := range c.FailsafeInboundHostPorts {
		errs = append(errs, p.check(fmt.Sprintf("FailsafeInboundHostPorts[%d]", i)))
	}
	for i, p := range c.FailsafeOutboundHostPorts {
		errs = append(errs, p.check(fmt.Sprintf("FailsafeOutboundHostPorts[%d]", i)))
	}
	for i, r := range c.KubeNodePortRanges {
		if r.First == 0 || r.First > r.Last {
			errs = append(errs, fieldError(fmt.Sprintf("KubeNodePortRanges[%d]", i), "%d-%d is not a range of ports", r.First, r.Last))
		}
	}
	if r := c.NATPortRange; r != (table.PortRange{}) && (r.First == 0 || r.First > r.Last) {
		errs = append(errs, fieldError("NATPortRange", "%d-%d is not a range of ports", r.First, r.Last))
	}
	return errors.Join(errs...)
}

func (p ProtoPort) check(field string) error {
	switch p.Protocol {
	case "tcp", "udp", "sctp":
	default:
		return fieldError(field, "protocol %q is not tcp, udp or sctp", p.Protocol)
	}
	if p.Port == 0 {
		return fieldError(field, "port 0 does not exist")
	}
	if p.Net != "" {
		if _, err := netip.ParsePrefix(p.Net); err != nil {
			return fieldError(field, "net: %v", err)
		}
	}
	return nil
}

func (c Config) checkTunnels() error {
	var errs []error
	if c.VXLANPort < 1 || c.VXLANPort > 65535 {
		errs = append(errs, fieldError("VXLANPort", "%d is not a port", c.VXLANPort))
	}
	if c.VXLANVNI < 1 || c.VXLANVNI >= 1<<24 {
		errs = append(errs, fieldError("VXLANVNI", "%d is not in 1..16777215", c.VXLANVNI))
	}
	if !IfaceNameOK(c.VXLANDevice) {
		errs = append(errs, fieldError("VXLANDevice", "%q is not an interface name", c.VXLANDevice))
	}
	for _, prefix := range c.WorkloadIfacePrefixes {
		if strings.HasPrefix(c.VXLANDevice, prefix) {
			errs = append(errs, fieldError("VXLANDevice", "%q begins like a workload's interface (%q)", c.VXLANDevice, prefix))
		}
	}
	if c.VXLANMTU != 0 && (c.VXLANMTU < 576 || c.VXLANMTU > 65535) {
		errs = append(errs, fieldError("VXLANMTU", "%d is not in 576..65535", c.VXLANMTU))
	}
	if c.RouteProtocol <= reservedRouteProtocols || c.RouteProtocol > 255 {
		errs = append(errs, fieldError("RouteProtocol", "%d is not in %d..255; lower numbers belong to the kernel",
			c.RouteProtocol, reservedRouteProtocols+1))
	}
	if c.IPIPTunnelAddress.IsValid() && !c.IPIPTunnelAddress.Is4() {
		errs = append(errs, fieldError("IPIPTunnelAddress", "%s is not IPv4", c.IPIPTunnelAddress))
	}
	if c.OpenStackMetadataIP.IsValid() && !c.OpenStackMetadataIP.Is4() {
		errs = append(errs, fieldError("OpenStackMetadataIP", "%s is not IPv4", c.OpenStackMetadataIP))
	}
	return errors.Join(errs...)
}

// reservedRouteProtocols is RTPROT_STATIC: protocol numbers up to it are used by the kernel and by administrators.
const reservedRouteProtocols = 4

// IfaceNameOK reports whether the kernel accepts the name (dev_valid_name) and the name is safe as a part of a /proc path.
func IfaceNameOK(name string) bool {
	return name != "" && len(name) <= 15 && name != "." && name != ".." && !strings.ContainsAny(name, "/: \t\r\n\v\f\x00")
}

// IsWorkloadIface reports whether the name has a prefix of workload interfaces.
func (c Config) IsWorkloadIface(name string) bool {
	return slices.ContainsFunc(c.WorkloadIfacePrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// markBits returns all bits that the rules change.
func (c Config) markBits() uint32 {
	all := c.IptablesMarkAccept | c.IptablesMarkPass | c.IptablesMarkScratch0 | c.IptablesMarkScratch1
	if c.KubeIPVSSupportEnabled {
		all |= c.IptablesMarkEndpoint
	}
	return all
}
