package ipnet

import (
	"fmt"
	"strings"

	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/ipnet/transport"
	"contiv.dev/vswitch/plugins/ipnet/transport/nooverlay"
	"contiv.dev/vswitch/plugins/ipnet/transport/vxlan"
)

// Dataplane is the component that forwards packets.
type Dataplane int

// The dataplanes.
const (
	// DataplaneVPP: pods are connected to VPP, which is connected to the host's stack.
	DataplaneVPP Dataplane = iota
	// DataplaneLinux: the host's own stack routes; the in-process driver (dataplane/linux) programs it.
	DataplaneLinux
	// DataplaneWindows: Windows' Host Network Service connects pods (dataplane/windows).
	DataplaneWindows
)

// wiring renders for one dataplane. Rendering is pure.
type wiring interface {
	// node renders everything of this node that does not depend on pods or on other nodes.
	node(s *settings) ([]value, error)
	// names returns the names of an attachment's interfaces.
	names(s *settings, p *podLink) podIfNames
	// pod renders the values that connect an attachment.
	pod(s *settings, v *values, p *podLink)
	// hostIf returns the logical name of the interface by which pods reach the host's stack; it is empty if there is none.
	hostIf(s *settings) string
}

// vppWiring renders for VPP (node.go, host.go, pod.go).
type vppWiring struct{}

// linuxWiring renders for the host's own stack (linux.go).
type linuxWiring struct{}

// windowsWiring renders for the Host Network Service (windows.go).
type windowsWiring struct{}

// transports returns the implementations of each transport by dataplane. A new transport needs a package and a row here.
func transports() map[contivconf.Transport]map[Dataplane]transport.Transport {
	return map[contivconf.Transport]map[Dataplane]transport.Transport{
		contivconf.TransportVXLAN: {DataplaneVPP: vxlan.VPP{}, DataplaneLinux: vxlan.Linux{}, DataplaneWindows: vxlan.Linux{}},
		contivconf.TransportNoOverlay: {
			DataplaneVPP: nooverlay.VPP{}, DataplaneLinux: nooverlay.Linux{}, DataplaneWindows: nooverlay.Windows{},
		},
	}
}

// transport returns the implementation for the given nodeToNodeTransport.
func (d Dataplane) transport(name contivconf.Transport) (transport.Transport, error) {
	if t := transports()[name][d]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("nodeToNodeTransport %s: this dataplane has no such transport; use %s", name,
		strings.Join(contivconf.Transports(), " or "))
}

func (d Dataplane) wiring() wiring {
	switch d {
	case DataplaneLinux:
		return linuxWiring{}
	case DataplaneWindows:
		return windowsWiring{}
	}
	return vppWiring{}
}
