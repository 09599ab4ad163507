package nat44

import (
	"maps"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/plugins/service/renderer"
)

// hostPort is a node port.
type hostPort struct {
	proto renderer.ProtocolType
	port  uint16
}

// hostPorts are the node ports of a service.
func (s *service) hostPorts() map[hostPort]bool {
	out := map[hostPort]bool{}
	if s == nil {
		return out
	}
	for _, p := range s.value.Ports {
		owned := s.value.Owns(renderer.NodePort(p.NodePort, p.Protocol, false))
		if p.NodePort != 0 && owned && (p.Protocol == renderer.TCP || p.Protocol == renderer.UDP) {
			out[hostPort{p.Protocol, p.NodePort}] = true
		}
	}
	return out
}

// countPorts counts the node ports of a service that has changed; nil: there was or is none.
func (r *Renderer) countPorts(old, now *service) {
	before, after := old.hostPorts(), now.hostPorts()
	if maps.Equal(before, after) {
		return
	}
	for p := range after {
		if r.ports[p]++; r.ports[p] == 1 {
			r.told = false
		}
	}
	for p := range before {
		if r.ports[p]--; r.ports[p] == 0 {
			delete(r.ports, p)
			r.told = false
		}
	}
}

// tellHost tells HostPorts if there is something new.
func (r *Renderer) tellHost() {
	if r.told || r.HostPorts == nil || !r.node.HostLink.IsValid() {
		return
	}
	var tcp, udp []uint16
	for p := range r.ports {
		if p.proto == renderer.UDP {
			udp = append(udp, p.port)
		} else {
			tcp = append(tcp, p.port)
		}
	}
	slices.Sort(tcp)
	slices.Sort(udp)
	ofHost := slices.DeleteFunc(slices.Clone(r.nodePorts), func(a netip.Addr) bool {
		return a == r.node.HostLink || a == r.node.Address
	})
	r.HostPorts.SetNodePorts(tcp, udp, ofHost, r.node.HostLink)
	r.told = true
}
