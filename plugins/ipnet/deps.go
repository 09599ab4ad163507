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

// Deps groups the dependencies of the plugin. DeviceManager, GoVPP and RemoteDB are part of the documented API and are not read: pods get no
// device interfaces, VPP is programmed by values only, and ipnet stores nothing.
type Deps struct {
	infra.PluginDeps
	Dataplane     Dataplane
	EventLoop     api.EventLoop
	ServiceLabel  servicelabel.ReaderAPI
	ContivConf    contivconf.API
	IPAM          ipam.API
	NodeSync      nodesync.API
	PodManager    podmanager.API
	DeviceManager DeviceManager // not read
	VPPIfPlugin   VPPInterfaces // nil: no DHCP leases
	Uplinks       Uplinks       // nil: contiv.conf selects no NIC
	VPPPlugin     VPPPlugin     // nil: VPP does without our plugin
	VPPNICs       VPPNICs       // nil: the main interface is the one that is configured, or none
	LinuxNsPlugin HostLinks     // nil: the host's own addresses are not known to VPP
	GoVPP         GoVPP         // not read
	MgmtIPs       MgmtPublisher // nil: the host's addresses are not published to other nodes, and all of MgmtIPAddresses are routed
	HTTPHandlers  rest.HTTPHandlers
	// ServesServices: VPP serves Kubernetes services, so the host sends what is for them, and for VPP's own address, to VPP.
	ServesServices bool
	// PluginNAT: where VPP has our plugin, that translates what pods send to the outside, and NAT44 is on no interface.
	PluginNAT bool
	// HostForwards: what the host forwards to VPP gets sources that are not the node's.
	HostForwards bool
	// HostByIPTables: the host has no nft, so what its own processes send to VPP gets an address that nothing else has.
	HostByIPTables bool
	// Policy: each pod's link in VPP waits for the EndpointPolicy of its interface.
	Policy   bool
	RemoteDB keyval.KvProtoPlugin // not read
}

// GoVPP is the interface of the VPP connection, declared here so that packages which import ipnet for its constants do not
// depend on the connection's construction.
type GoVPP interface {
	// NewAPIChannel returns a new API channel for communication with VPP via govpp.
	NewAPIChannel() (conn.Channel, error)
	// NewAPIChannelBuffered returns a new API channel for communication with VPP via govpp.
	NewAPIChannelBuffered(reqChanBufSize, replyChanBufSize int) (conn.Channel, error)
}

// DeviceManager allocates devices (memif sockets) to pods.
type DeviceManager interface {
	// ReleaseDevices gives back what a container had.
	ReleaseDevices(containerID string) error
}

// VPPInterfaces reports what VPP itself receives about its interfaces.
type VPPInterfaces interface {
	// WatchDHCPLeases calls back, from any goroutine, for every lease of the interface with the given logical name.
	WatchDHCPLeases(ifName string, callback func(ip net.IP, network *net.IPNet, gateway net.IP)) error
}

// Uplinks finds the NIC that contiv.conf selects to connect the node with the others.
type Uplinks interface {
	// Find gives the kernel's name of the NIC; the error says why there is none.
	Find() (string, error)
	// Watch calls back, from any goroutine, when Find would give another answer than it gave last.
	Watch(callback func())
}

// VPPNICs reports which NICs VPP has by its start-up configuration.
type VPPNICs interface {
	// Names lists them in VPP's order.
	Names() ([]string, error)
	// Watch calls back, from any goroutine, when Names would give another answer than it gave last.
	Watch(callback func())
}

// MgmtPublisher publishes to other nodes the addresses by which this node is managed, which its pods' peers must reach, too.
type MgmtPublisher interface {
	// PublishMgmtIPs sends nothing when the addresses have not changed. Event loop only.
	PublishMgmtIPs(addresses []netip.Addr) error
	// HostIPs returns those of a node's management addresses that are on its own interfaces: only they can be routed to the node.
	// Kubernetes may have others, of a gateway in front of it. Event loop only.
	HostIPs(node *nodesync.Node) []net.IP
}

// HostLinks reports the host's network stack.
type HostLinks interface {
	// HostIPs lists the addresses of the host's own interfaces: without loopback, container bridges and our own links.
	HostIPs() ([]net.IP, error)
	// NIC describes a NIC; with "", the one that has the default route. The zero NIC: there is none.
	NIC(name string) (NIC, error)
	// WatchHostIPs calls back, from any goroutine, after HostIPs, or the MTU of a NIC, has changed.
	WatchHostIPs(callback func())
}

// NIC is a network interface of the host.
type NIC struct {
	Name      string
	Addresses []netip.Prefix
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
