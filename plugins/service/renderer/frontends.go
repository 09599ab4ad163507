package renderer

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// This file is not part of the documented API. With it, renderers get the frontends of a service.

// Frontend is the destination of clients' packets. An unspecified address means a node port, at all addresses of the node in the family of
// that address.
type Frontend struct {
	Addr     netip.Addr
	Port     uint16
	Protocol ProtocolType
}

// String formats the frontend for users: 10.96.0.10:53/UDP.
func (f Frontend) String() string {
	if f.Addr.IsUnspecified() {
		return fmt.Sprintf("node port %d/%s", f.Port, f.Protocol)
	}
	return fmt.Sprintf("%s/%s", netip.AddrPortFrom(f.Addr, f.Port), f.Protocol)
}

// Compare orders frontends by address, port and protocol.
func (f Frontend) Compare(o Frontend) int {
	return cmp.Or(f.Addr.Compare(o.Addr), cmp.Compare(f.Port, o.Port), cmp.Compare(f.Protocol, o.Protocol))
}

// NodePort returns the frontend that represents a node port in a family.
func NodePort(port uint16, protocol ProtocolType, ipv6 bool) Frontend {
	if ipv6 {
		return Frontend{netip.IPv6Unspecified(), port, protocol}
	}
	return Frontend{netip.IPv4Unspecified(), port, protocol}
}

// FrontendKind is the source of a service's frontend. If a service has one frontend from two sources, the first kind counts.
type FrontendKind int

// The kinds.
const (
	AtClusterIP FrontendKind = iota
	AtNodePort
	AtExternalIP // includes LoadBalancerIPs
)

// String returns the name of the kind.
func (k FrontendKind) String() string {
	switch k {
	case AtClusterIP:
		return "cluster IP"
	case AtNodePort:
		return "node port"
	case AtExternalIP:
		return "external IP"
	}
	return "INVALID"
}

// PortFrontend is a frontend of a port of a service.
type PortFrontend struct {
	Frontend
	Kind     FrontendKind
	PortName string
}

// Owns returns false for frontends of the service that another service owns, or that no service may have.
func (cs *ContivService) Owns(f Frontend) bool {
	if len(cs.Lost) == 0 {
		return true
	}
	_, lost := slices.BinarySearchFunc(cs.Lost, f, Frontend.Compare)
	return !lost
}

// Frontends returns the frontends that a renderer serves for the service, without duplicates: those of the service except those that it has
// lost, cluster IPs first, node ports last. nodeIPs are the addresses at which node ports are served.
func (cs *ContivService) Frontends(nodeIPs []netip.Addr) []PortFrontend {
	var byKind [3][]PortFrontend
	seen := map[Frontend]bool{}
	add := func(kind FrontendKind, name string, f Frontend) {
		if !seen[f] && cs.Owns(f) {
			seen[f] = true
			byKind[kind] = append(byKind[kind], PortFrontend{f, kind, name})
		}
	}
	names := slices.Sorted(maps.Keys(cs.Ports))
	for _, name := range names {
		for _, addr := range cs.ClusterIPs.Addrs() {
			add(AtClusterIP, name, Frontend{addr, cs.Ports[name].Port, cs.Ports[name].Protocol})
		}
	}
	for _, name := range names {
		port := cs.Ports[name]
		if port.NodePort == 0 {
			continue
		}
		for _, addr := range nodeIPs {
			owned := cs.Owns(NodePort(port.NodePort, port.Protocol, addr.Is6()))
			if owned && !addr.IsLoopback() && cs.ClusterIPs.hasFamily(addr.Is6()) {
				add(AtNodePort, name, Frontend{addr, port.NodePort, port.Protocol})
			}
		}
	}
	for _, name := range names {
		for _, addr := range cs.ExternalIPs.Addrs() {
			add(AtExternalIP, name, Frontend{addr, cs.Ports[name].Port, cs.Ports[name].Protocol})
		}
	}
	return slices.Concat(byKind[AtClusterIP], byKind[AtExternalIP], byKind[AtNodePort])
}

func (addrs *IPAddresses) hasFamily(ipv6 bool) bool {
	return slices.ContainsFunc(addrs.Addrs(), func(a netip.Addr) bool { return a.Is6() == ipv6 })
}
