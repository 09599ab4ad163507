package processor

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// NodePort is a range of ports that nodes themselves need.
type NodePort struct {
	Protocol    renderer.ProtocolType
	First, Last uint16
}

// apiService returns the ID of the service whose endpoints are the API servers.
func apiService() svcmodel.ID { return svcmodel.ID{Namespace: "default", Name: "kubernetes"} }

// apiServers holds the ports at which API servers listen, by address.
type apiServers map[netip.Addr][]uint16

func apiServersOf(slicesOf []*model.EndpointSlice) apiServers {
	out := apiServers{}
	for _, slice := range slicesOf {
		for i := range slice.Len() {
			addr := slice.At(i).Addr
			for _, port := range slice.GetPorts() {
				out[addr] = append(out[addr], uint16(port.GetPort()))
			}
			slices.Sort(out[addr])
			out[addr] = slices.Compact(out[addr])
		}
	}
	return out
}

// updateAPIServers updates the addresses of the API servers if s is their service. moved are the addresses whose ports have changed.
func (p *Processor) updateAPIServers(s *service) (moved []netip.Addr) {
	if s.id != apiService() {
		return nil
	}
	before, now := p.apiServers, apiServersOf(s.slices)
	p.apiServers = now
	for addr, ports := range before {
		if !slices.Equal(ports, now[addr]) {
			moved = append(moved, addr)
		}
	}
	for addr := range maps.Keys(now) {
		if before[addr] == nil {
			moved = append(moved, addr)
		}
	}
	return moved
}

// reserved returns the reason why no service may have a frontend as an external address; it returns an empty string if a service may have
// it.
func (p *Processor) reserved(f renderer.Frontend) string {
	for _, net := range p.cfg.ReservedNetworks {
		if net.Contains(f.Addr) {
			return fmt.Sprintf("%s is a network of pods or between a node and its vswitch", net)
		}
	}
	for _, net := range p.cfg.ReservedAddresses {
		if net.Contains(f.Addr) {
			return fmt.Sprintf("the operator has reserved %s", net)
		}
	}
	ports, api := p.apiServers[f.Addr]
	if !p.nodes.has(f.Addr) {
		switch {
		case api:
			return "the address is the API server's"
		case slices.ContainsFunc(p.cfg.Etcd, func(e netip.AddrPort) bool { return e.Addr() == f.Addr }):
			return "the address is etcd's"
		}
		return ""
	}
	if f.Protocol == renderer.TCP && slices.Contains(p.cfg.Etcd, netip.AddrPortFrom(f.Addr, f.Port)) {
		return "etcd has this port of a node"
	}
	if api && f.Protocol == renderer.TCP && slices.Contains(ports, f.Port) {
		return "the API server has this port of a node"
	}
	for _, r := range p.cfg.ReservedNodePorts {
		if f.Protocol == r.Protocol && r.First <= f.Port && f.Port <= r.Last {
			return "nodes need this port for themselves"
		}
	}
	return ""
}
