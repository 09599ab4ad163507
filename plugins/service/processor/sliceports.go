package processor

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/kube/model"
)

// slicePort is a port of an endpoint slice.
type slicePort struct {
	slice *model.EndpointSlice
	port  *model.EndpointPort
}

// slicePorts holds the ports of a service's slices, sorted by family, name and protocol. A service can have thousands of ports, so each of
// them must find its own without a comparison with all others.
type slicePorts []slicePort

// slicePortsOf collects the valid ports in the memory of buf. Those with the same name stay in the order of the slices.
func slicePortsOf(buf slicePorts, slicesOf []*model.EndpointSlice) slicePorts {
	out := buf[:0]
	for _, slice := range slicesOf {
		for _, port := range slice.GetPorts() {
			if number := port.GetPort(); number != 0 && number <= math.MaxUint16 {
				out = append(out, slicePort{slice, port})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b slicePort) int {
		return a.compare(b.slice.GetIpv6(), b.port.GetName(), b.port.GetProtocol())
	})
	return out
}

func (p slicePort) compare(ipv6 bool, name string, protocol model.Protocol) int {
	if own := p.slice.GetIpv6(); own != ipv6 {
		if own {
			return 1
		}
		return -1
	}
	return cmp.Or(strings.Compare(p.port.GetName(), name), cmp.Compare(p.port.GetProtocol(), protocol))
}

// of returns the ports of slices that belong to a port of the service.
func (l slicePorts) of(port *model.ServicePort, ipv6 bool) slicePorts {
	compare := func(p slicePort, s *model.ServicePort) int { return p.compare(ipv6, s.GetName(), s.GetProtocol()) }
	first, found := slices.BinarySearchFunc(l, port, compare)
	if !found {
		return nil
	}
	end := first + 1
	for end < len(l) && compare(l[end], port) == 0 {
		end++
	}
	return l[first:end]
}

// endpoints returns the number of endpoints, with those that do not serve.
func (l slicePorts) endpoints() (n int) {
	for _, p := range l {
		n += p.slice.Len()
	}
	return n
}
