package ipnet

import (
	"net"
	"net/netip"

	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/internal/infra"
	"contiv.dev/vswitch/internal/keyval"
	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/internal/servicelabel"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/ipam"
	"contiv.dev/vswitch/plugins/nodesync"
	"contiv.dev/vswitch/plugins/podmanager"
)

// Deps groups the dependencies of the plugin. DeviceManager, GoVPP and RemoteDB are part of the documented API and are not used: pods get
// no device interfaces, VPP is programmed by values only, and ipnet stores nothing in the database.
type Deps struct {
	infra.PluginDeps
	Dataplane     Dataplane
	EventLoop     api.EventLoop
	ServiceLabel  servicelabel.ReaderAPI
	ContivConf    contivconf.API
	IPAM          ipam.API
	NodeSync      nodesync.API
	PodManager    podmanager.API
	DeviceManager DeviceManager // not used
	VPPIfPlugin   VPPInterfaces // nil: no DHCP leases
	Uplinks       Uplinks       // nil: contiv.conf selects no NIC
	VPPPlugin     VPPPlugin     // nil: VPP runs without our plugin
	VPPNICs       VPPNICs       // nil: the main interface is the one that is configured, or none
	LinuxNsPlugin HostLinks     // nil: VPP gets no routes to the host's own addresses
	GoVPP         GoVPP         // not used
	MgmtIPs       MgmtPublisher // nil: the host's addresses are not published to other nodes, and all MgmtIPAddresses of a peer are routed
	HTTPHandlers  rest.HTTPHandlers
	// ServesServices: VPP serves Kubernetes services, so the host sends traffic for services, and for VPP's own address, to VPP.
	ServesServices bool
	// PluginNAT: if VPP has our plugin, the plugin translates traffic of pods to the outside, and NAT44 is on no interface.
	PluginNAT bool
	// HostForwards: traffic that the host forwards to VPP gets source addresses that are not the node's.
	HostForwards bool
	// HostByIPTables: the host has no nft, so traffic of its own processes to VPP gets a dedicated source address.
	HostByIPTables bool
	// Policy: each pod's link in VPP waits for the EndpointPolicy of its interface.
	Policy   bool
	RemoteDB keyval.KvProtoPlugin // not used
}

// GoVPP is the interface of the VPP connection. It is declared here so that packages that import ipnet for its constants do not depend on
// the implementation of the connection.
type GoVPP interface {
	// NewAPIChannel returns a new API channel for communication with VPP via govpp.
	NewAPIChannel() (conn.Channel, error)
	// NewAPIChannelBuffered returns a new API channel for communication with VPP via govpp.
	NewAPIChannelBuffered(reqChanBufSize, replyChanBufSize int) (conn.Channel, error)
}

// DeviceManager allocates devices (memif sockets) to pods.
type DeviceManager interface {
	// ReleaseDevices releases the devices of a container.
	ReleaseDevices(containerID string) error
}

// VPPInterfaces reports data that VPP itself receives about its interfaces.
type VPPInterfaces interface {
	// WatchDHCPLeases calls callback, from any goroutine, for every lease of the interface with the given logical name.
	WatchDHCPLeases(ifName string, callback func(ip net.IP, network *net.IPNet, gateway net.IP)) error
}

// Uplinks finds the NIC that contiv.conf selects to connect the node with the other nodes.
type Uplinks interface {
	// Find returns the kernel's name of the NIC; the error gives the reason if there is none.
	Find() (string, error)
	// Watch calls callback, from any goroutine, when the result of Find may differ from its last result.
	Watch(callback func())
}

// VPPNICs reports the NICs that VPP has from its start-up configuration.
type VPPNICs interface {
	// Names returns the names of the NICs, in VPP's order.
	Names() ([]string, error)
	// Watch calls callback, from any goroutine, when the result of Names may differ from its last result.
	Watch(callback func())
}

// MgmtPublisher publishes this node's management addresses to the other nodes, whose pods must reach these addresses, too.
type MgmtPublisher interface {
	// PublishMgmtIPs publishes the addresses; it sends nothing if they have not changed. Event loop only.
	PublishMgmtIPs(addresses []netip.Addr) error
	// HostIPs returns the management addresses of a node that are on the node's own interfaces: only these can be routed to the node.
	// Kubernetes may report others, for example of a gateway in front of the node. Event loop only.
	HostIPs(node *nodesync.Node) []net.IP
}

// HostLinks reports the host's network stack.
type HostLinks interface {
	// HostIPs returns the addresses of the host's own interfaces, without loopback, container bridges and our own links.
	HostIPs() ([]net.IP, error)
	// NIC describes the NIC with the given name; with "", the NIC that has the default route. It returns the zero NIC if there is none.
	NIC(name string) (NIC, error)
	// WatchHostIPs calls callback, from any goroutine, after HostIPs, or the MTU of a NIC, has changed.
	WatchHostIPs(callback func())
}

// NIC is a network interface of the host.
type NIC struct {
	Name      string
	Addresses []netip.Prefix // IPv4 before IPv6; in each family, the one that identifies the host comes first
	Lesser    []netip.Addr   // those of Addresses that identify the host less well than the first one of their family, such as a virtual IP
	MTU       uint32
}

// Option customises a new plugin.
type Option func(*IPNet)

// UseDeps changes the dependencies of a new plugin.
func UseDeps(f func(*Deps)) Option {
	return func(n *IPNet) { f(&n.Deps) }
}

// DefaultPlugin is a default instance of IPNet. It belongs to the documented API; the agent makes its own instance
// (cmd/contiv-agent/wire.go).
var DefaultPlugin = *NewPlugin()

// NewPlugin creates the plugin; Init must be called before the event loop starts.
func NewPlugin(opts ...Option) *IPNet {
	n := &IPNet{state: &state{}}
	n.PluginName = "ipnet"
	for _, o := range opts {
		o(n)
	}
	return n
}
