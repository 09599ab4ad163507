package ipnet

import (
	"fmt"

	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/ipnet/transport"
	"contiv.dev/vswitch/plugins/ipnet/transport/nooverlay"
	"contiv.dev/vswitch/plugins/ipnet/transport/vxlan"
)

// Dataplane is what moves the packets.
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
	// names are the interfaces of an attachment.
	names(s *settings, p *podLink) podIfNames
	// pod renders what connects an attachment.
	pod(s *settings, v *values, p *podLink)
	// hostIf is the logical name of the interface by which pods reach the host's stack; empty when there is none.
	hostIf(s *settings) string
}

// vppWiring renders for VPP (node.go, host.go, pod.go).
type vppWiring struct{}

// linuxWiring renders for the host's own stack (linux.go).
type linuxWiring struct{}

// windowsWiring renders for the Host Network Service (windows.go).
type windowsWiring struct{}

// transport picks by nodeToNodeTransport; it is the one place where ways of connecting nodes are named.
func (d Dataplane) transport(name contivconf.Transport) (transport.Transport, error) {
	type choice struct {
		dataplane Dataplane
		name      contivconf.Transport
	}
	switch (choice{d, name}) {
	case choice{DataplaneVPP, contivconf.TransportVXLAN}:
		return vxlan.VPP{}, nil
	case choice{DataplaneVPP, contivconf.TransportNoOverlay}:
		return nooverlay.VPP{}, nil
	case choice{DataplaneLinux, contivconf.TransportVXLAN}, choice{DataplaneWindows, contivconf.TransportVXLAN}:
		return vxlan.Linux{}, nil
	case choice{DataplaneLinux, contivconf.TransportNoOverlay}:
		return nooverlay.Linux{}, nil
	case choice{DataplaneWindows, contivconf.TransportNoOverlay}:
		return nooverlay.Windows{}, nil
	}
	return nil, fmt.Errorf("nodeToNodeTransport %s: this dataplane has no such transport; use vxlan or nooverlay", name)
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
