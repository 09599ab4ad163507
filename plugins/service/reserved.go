package service

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"contiv.dev/vswitch/internal/ipaddr"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/service/processor"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// Reserved are addresses and ports that no service may have as external ones, besides these, which are reserved in any case: the networks of pods and
// inside nodes, and the API servers.
type Reserved struct {
	// NodePorts are ports at the addresses of nodes; nil: DefaultReservedNodePorts.
	NodePorts []processor.NodePort
	// Addresses and Etcd are as ReservedAddresses and Etcd in processor.Config.
	Addresses []netip.Prefix
	Etcd      []netip.AddrPort
}

// DefaultReservedNodePorts returns ports that nodes themselves need: SSH, etcd, the API server, the agent and contiv-ksr, the kubelet and
// the other parts of Kubernetes, and the tunnel.
func DefaultReservedNodePorts() []string {
	return []string{"tcp:22", "tcp:2379-2381", "tcp:6443", "tcp:9191", "tcp:9999", "tcp:10248-10260", "udp:4789"}
}

// ParseNodePorts parses ports such as tcp:22 or udp:5000-5010.
func ParseNodePorts(texts []string) ([]processor.NodePort, error) {
	out := []processor.NodePort{}
	for _, text := range texts {
		protocol, ports, ok := strings.Cut(text, ":")
		first, last, isRange := strings.Cut(ports, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.ParseUint(first, 10, 16)
		to, err2 := strconv.ParseUint(last, 10, 16)
		p, known := map[string]renderer.ProtocolType{"tcp": renderer.TCP, "udp": renderer.UDP, "sctp": renderer.SCTP}[protocol]
		if !ok || !known || err1 != nil || err2 != nil || from == 0 || to < from {
			return nil, fmt.Errorf("port %q: write it as tcp:22 or udp:5000-5010", text)
		}
		out = append(out, processor.NodePort{Protocol: p, First: uint16(from), Last: uint16(to)})
	}
	return out, nil
}

// ParseAddresses parses addresses and networks such as 192.0.2.1 or 2001:db8::/64.
func ParseAddresses(texts []string) ([]netip.Prefix, error) {
	out := []netip.Prefix{}
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if addr, single := netip.ParseAddr(text); single == nil && addr.Zone() == "" {
			prefix, err = ipaddr.HostPrefix(addr.Unmap()), nil
		}
		if err != nil || prefix.Addr().Is4In6() {
			return nil, fmt.Errorf("address %q: write it as 192.0.2.1 or 2001:db8::/64", text)
		}
		out = append(out, prefix.Masked())
	}
	return out, nil
}

// nodePorts returns the configured ports, or the default ones.
func (r *Reserved) nodePorts() []processor.NodePort {
	if r.NodePorts != nil {
		return r.NodePorts
	}
	ports, err := ParseNodePorts(DefaultReservedNodePorts())
	if err != nil {
		return nil // cannot happen: TestReservedNodePorts
	}
	return ports
}

// reservedNetworks returns the networks in which no service may have an external address: those of pods, and those inside nodes.
func reservedNetworks(c contivconf.IPAMConfig) []netip.Prefix {
	return slices.Concat(c.PodSubnetCIDR, c.VPPHostSubnetCIDR, c.VxlanCIDR)
}
