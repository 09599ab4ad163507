package ipnet

import (
	"net"

	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/ipnet/transport/vxlan"
)

// The VPP - Host interconnect.
const (
	// HostInterconnectTAPinVPPLogicalName is the logical name of the TAP interface connecting host stack with VPP, VPP side.
	HostInterconnectTAPinVPPLogicalName = "tap-vpp2"
	// HostInterconnectTAPinLinuxLogicalName is the logical name of the TAP interface connecting host stack with VPP, Linux
	// side.
	HostInterconnectTAPinLinuxLogicalName = "tap-vpp1"
	// HostInterconnectTAPinLinuxHostName is the physical name of the TAP interface connecting host stack with VPP, the
	// Linux side.
	HostInterconnectTAPinLinuxHostName = "vpp1"
)

// VxlanBVIInterfaceName is the name of the VXLAN BVI interface.
const VxlanBVIInterfaceName = vxlan.BVI

// API defines methods provided by IPNet plugin for use by other plugins to query IPv4 network-related information. Apart
// from GetPodByIf, these methods should not be accessed from outside of the main event loop!
type API interface {
	// GetPodIfNames looks up logical interface names that correspond to the interfaces associated with the given POD name.
	GetPodIfNames(podNamespace string, podName string) (vppIfName, linuxIfName, loopIfName string, exists bool)

	// GetPodByIf looks up podName and podNamespace that is associated with logical interface name. The method can be
	// called from outside of the main event loop.
	GetPodByIf(ifname string) (podNamespace string, podName string, exists bool)

	// GetNodeIP returns the IP+network address of this node.
	GetNodeIP() (ip net.IP, network *net.IPNet)

	// GetHostIPs returns all IP addresses of this node present in the host network namespace (Linux).
	GetHostIPs() []net.IP

	// GetHostInterconnectIfName returns the name of the TAP/AF_PACKET interface interconnecting VPP with the host stack.
	GetHostInterconnectIfName() string

	// GetVxlanBVIIfName returns the name of an BVI interface facing towards VXLAN tunnels to other hosts. Returns an empty
	// string if VXLAN is not used (in no-overlay interconnect mode).
	GetVxlanBVIIfName() string
}

// HostLinkIPsDumpClb is callback for dumping all IP addresses assigned to interfaces in the host stack.
type HostLinkIPsDumpClb func() ([]net.IP, error)

// NodeIPv4Change is triggered when DHCP-assigned IPv4 address of the node changes.
type NodeIPv4Change struct {
	NodeIP    net.IP
	NodeIPNet *net.IPNet
	DefaultGw net.IP
}

// GetName returns name of the NodeIPv4Change event.
func (ev *NodeIPv4Change) GetName() string { return "Node IPv4 Change" }

// String describes NodeIPv4Change event.
func (ev *NodeIPv4Change) String() string {
	s := ev.GetName() + ": " + ev.NodeIP.String()
	if ev.NodeIPNet != nil {
		s += " in " + ev.NodeIPNet.String()
	}
	if ev.DefaultGw != nil {
		s += ", gateway " + ev.DefaultGw.String()
	}
	return s
}

// Method is UpstreamResync.
func (ev *NodeIPv4Change) Method() api.EventMethodType { return api.UpstreamResync }

// IsBlocking returns false.
func (ev *NodeIPv4Change) IsBlocking() bool { return false }

// Done is NOOP.
func (ev *NodeIPv4Change) Done(error) {}
