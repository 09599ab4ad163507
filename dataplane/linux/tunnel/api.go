package tunnel

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/nsdo"
)

// The defaults of VXLANConfig and IPIPConfig.
const (
	defaultVXLANDevice = "contiv-vxlan"
	defaultVNI         = 10
	defaultPort        = 4789
	defaultIPIPDevice  = "tunl0"
	defaultIPIPMTU     = 1440
	defaultTimeout     = 10 * time.Second
)

// VXLANConfig describes a VXLAN device. A device carries both families over an underlay of one family: nodes that reach each other over
// IPv4 and IPv6 need two devices with different names.
type VXLANConfig struct {
	Device   string
	VNI      uint32 // 0: defaultVNI
	Port     uint16
	MTU      int          // 0: that of the link with the local parent address, minus the encapsulation (50, IPv6 70)
	Family   table.Family // of the underlay
	Protocol int          // tag of the neighbours; 0: routetable's default
	Timeout  time.Duration
	NS       *nsdo.Namespace
	Log      *slog.Logger
}

// VTEP is a node's tunnel endpoint. A node with tunnel addresses of both families has two VTEPs with the same MAC and ParentAddr.
type VTEP struct {
	Node       string // for messages
	MAC        net.HardwareAddr
	TunnelAddr netip.Addr // of the device; invalid: none
	ParentAddr netip.Addr // of the node, in the underlay
}

// IPIPConfig configures the maintenance of the kernel's IPIP device.
type IPIPConfig struct {
	Device  string     // "": tunl0
	MTU     int        // 0: 1440
	Address netip.Addr // the only address of the device, as /32; invalid: none
	Timeout time.Duration
	NS      *nsdo.Namespace
	Log     *slog.Logger
}

// errNoDriver means that the kernel has no driver for the kind of tunnel.
var errNoDriver = errors.New("the kernel has no driver for this kind of tunnel")
