package ipnet

import (
	"net"

	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/ipnet/transport/vxlan"
)

// The VPP - Host interconnect.
const (
	// HostInterconnectTAPinVPPLogicalName is the logical name of the VPP side of the TAP interface that connects the host stack with VPP.
	HostInterconnectTAPinVPPLogicalName = "tap-vpp2"
	// HostInterconnectTAPinLinuxLogicalName is the logical name of the Linux side of the TAP interface that connects the host stack with
	// VPP.
	HostInterconnectTAPinLinuxLogicalName = "tap-vpp1"
	// HostInterconnectTAPinLinuxHostName is the device name of the Linux side of the TAP interface that connects the host stack with VPP.
	HostInterconnectTAPinLinuxHostName = "vpp1"
)

// VxlanBVIInterfaceName is the name of the VXLAN BVI interface.
const VxlanBVIInterfaceName = vxlan.BVI

// API defines the methods that the IPNet plugin provides to other plugins for queries about the network. Except for GetPodByIf, these
// methods may be called only from the main event loop.
type API interface {
	// GetPodIfNames returns the logical names of the interfaces of the given pod.
	GetPodIfNames(podNamespace string, podName string) (vppIfName, linuxIfName, loopIfName string, exists bool)

	// GetPodByIf returns the name and the namespace of the pod that has the interface with the given logical name. The method may be called
	// from any goroutine.
	GetPodByIf(ifname string) (podNamespace string, podName string, exists bool)

	// GetNodeIP returns the address of this node and its network.
	GetNodeIP() (ip net.IP, network *net.IPNet)

	// GetHostIPs returns all IP addresses of this node present in the host network namespace (Linux).
	GetHostIPs() []net.IP

	// GetHostInterconnectIfName returns the name of the TAP/AF_PACKET interface interconnecting VPP with the host stack.
	GetHostInterconnectIfName() string

	// GetVxlanBVIIfName returns the name of the BVI that faces the VXLAN tunnels to other nodes. It returns an empty string if VXLAN is not
	// used (nooverlay).
	GetVxlanBVIIfName() string
}

// HostLinkIPsDumpClb is a callback that returns all IP addresses of the interfaces in the host stack.
type HostLinkIPsDumpClb func() ([]net.IP, error)

// NodeIPv4Change is triggered when the DHCP-assigned IPv4 address of the node changes.
type NodeIPv4Change struct {
	NodeIP    net.IP
	NodeIPNet *net.IPNet
	DefaultGw net.IP
}

// GetName returns the name of the NodeIPv4Change event.
func (ev *NodeIPv4Change) GetName() string { return "Node IPv4 Change" }

// String describes the NodeIPv4Change event.
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

// Method returns UpstreamResync.
func (ev *NodeIPv4Change) Method() api.EventMethodType { return api.UpstreamResync }

// IsBlocking returns false.
func (ev *NodeIPv4Change) IsBlocking() bool { return false }

// Done does nothing.
func (ev *NodeIPv4Change) Done(error) {}
