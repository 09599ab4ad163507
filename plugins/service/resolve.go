package service

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"contiv.dev/vswitch/internal/ipaddr"
	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// ResolvePath is the path that returns the treatment of a packet to an address and port, as renderers receive it: GET
// ?address=10.96.0.10&port=80&protocol=tcp&source=10.1.1.2
const ResolvePath = "/contiv/v1/services/resolve"

// The kinds of addresses that services have.
const (
	AsClusterIP    = "cluster IP"
	AsNodePort     = "node port"
	AsExternalIP   = "external IP"
	AsLoadBalancer = "load balancer address"
)

// Resolution is the response.
type Resolution struct {
	Service  string `json:"service"` // namespace/name
	PortName string `json:"portName,omitempty"`
	As       string `json:"as"`
	Policy   string `json:"policy"`
	// Verdict is balance, reject or drop; Why is the reason if it is not balance.
	Verdict  string              `json:"verdict"`
	Why      string              `json:"why,omitempty"`
	Backends []ResolutionBackend `json:"backends"`
	// SourceRanges are the networks that may use the address, if access is restricted.
	SourceRanges []netip.Prefix `json:"sourceRanges,omitempty"`
}

// ResolutionBackend is a possible destination of the packet.
type ResolutionBackend struct {
	Address     netip.AddrPort `json:"address"`
	Local       bool           `json:"local,omitempty"`
	HostNetwork bool           `json:"hostNetwork,omitempty"`
}

// packet is the packet of the query.
type packet struct {
	source, dest netip.Addr
	port         uint16
	proto        renderer.ProtocolType
}

func (p *Plugin) serveResolve(w http.ResponseWriter, r *http.Request) {
	pkt, err := readPacket(r)
	if err != nil {
		rest.WriteError(w, http.StatusBadRequest, err)
		return
	}
	resolution, err := p.resolve(pkt)
	if err != nil {
		rest.WriteError(w, http.StatusNotFound, err)
		return
	}
	rest.WriteJSON(w, http.StatusOK, resolution)
}

func readPacket(r *http.Request) (pkt packet, err error) {
	q := r.URL.Query()
	if pkt.dest, err = netip.ParseAddr(q.Get("address")); err != nil {
		return pkt, fmt.Errorf("address: %w", err)
	}
	if source := q.Get("source"); source != "" {
		if pkt.source, err = netip.ParseAddr(source); err != nil {
			return pkt, fmt.Errorf("source: %w", err)
		}
	}
	port, err := strconv.ParseUint(q.Get("port"), 10, 16)
	if err != nil || port == 0 {
		return pkt, fmt.Errorf("port %q: must be from 1 to 65535", q.Get("port"))
	}
	for _, proto := range []renderer.ProtocolType{renderer.TCP, renderer.UDP, renderer.SCTP} {
		if strings.EqualFold(proto.String(), q.Get("protocol")) {
			pkt.proto = proto
		}
	}
	if pkt.proto == 0 {
		return pkt, fmt.Errorf("protocol %q: use tcp, udp or sctp", q.Get("protocol"))
	}
	pkt.source, pkt.dest, pkt.port = pkt.source.Unmap(), pkt.dest.Unmap(), uint16(port)
	return pkt, nil
}

// resolve finds the service to which a packet is addressed.
func (p *Plugin) resolve(pkt packet) (*Resolution, error) {
	p.mu.Lock()
	all := p.processor.Services() // immutable values
	nodes := p.nodes.all(p.own())
	p.mu.Unlock()
	var near []string
	atNode := slices.ContainsFunc(slices.Collect(maps.Values(nodes)), func(list []netip.Addr) bool {
		return slices.Contains(list, pkt.dest)
	})
	if len(p.NodePortAddresses) > 0 {
		atNode = atNode && slices.ContainsFunc(p.NodePortAddresses, func(n netip.Prefix) bool { return n.Contains(pkt.dest) })
	}
	for _, s := range all {
		as := kindOf(s, pkt.dest)
		atNode := atNode && slices.ContainsFunc(s.ClusterIPs.Addrs(), func(a netip.Addr) bool { return a.Is6() == pkt.dest.Is6() })
		for _, name := range slices.Sorted(maps.Keys(s.Ports)) {
			port := s.Ports[name]
			switch {
			case port.Protocol == pkt.proto && as != "" && port.Port == pkt.port:
				return p.resolution(s, name, as, pkt, nodes), nil
			case port.Protocol == pkt.proto && atNode && port.NodePort != 0 && port.NodePort == pkt.port:
				return p.resolution(s, name, AsNodePort, pkt, nodes), nil
			case as != "":
				near = append(near, fmt.Sprintf("%d/%s (%s)", port.Port, port.Protocol, s.ID))
			}
		}
	}
	text := fmt.Sprintf("no service has port %d/%s at %s", pkt.port, pkt.proto, pkt.dest)
	if len(near) > 0 {
		text += "; there are " + strings.Join(near, ", ")
	}
	return nil, fmt.Errorf("%s", text)
}

func kindOf(s *renderer.ContivService, addr netip.Addr) string {
	has := func(set *renderer.IPAddresses) bool { return set != nil && slices.Contains(set.Addrs(), addr) }
	switch {
	case has(s.ClusterIPs):
		return AsClusterIP
	case has(s.LoadBalancerIPs):
		return AsLoadBalancer
	case has(s.ExternalIPs):
		return AsExternalIP
	}
	return ""
}

func (p *Plugin) resolution(s *renderer.ContivService, port, as string, pkt packet, nodes map[string][]netip.Addr,
) *Resolution {
	policy, setting := s.InternalTrafficPolicy, "internalTrafficPolicy"
	if as != AsClusterIP {
		// Pods and nodes are served cluster-wide, independent of the policy for clients outside the cluster.
		policy, setting = renderer.ClusterWide, "externalTrafficPolicy"
		if !p.inside(pkt.source, nodes) {
			policy = s.TrafficPolicy
		}
	}
	backends, verdict := s.Select(port, policy, pkt.dest.Is6())
	out := &Resolution{Service: s.ID.String(), PortName: port, As: as, Policy: policy.String(), Verdict: verdict.String(),
		Backends: []ResolutionBackend{}}
	for _, b := range backends {
		out.Backends = append(out.Backends, ResolutionBackend{netip.AddrPortFrom(b.Addr(), b.Port), b.Local, b.HostNetwork})
	}
	if ranges, restricted := s.SourceRanges(pkt.dest.Is6()); as == AsLoadBalancer && restricted {
		out.SourceRanges = ranges
		if pkt.source.IsValid() && !slices.ContainsFunc(out.SourceRanges, func(n netip.Prefix) bool {
			return n.Contains(pkt.source)
		}) {
			out.Verdict, out.Backends = renderer.Drop.String(), []ResolutionBackend{}
			out.Why = fmt.Sprintf("%s is in none of its loadBalancerSourceRanges %v", pkt.source, s.LoadBalancerSourceRanges)
			return out
		}
	}
	switch {
	case verdict == renderer.Drop && policy == renderer.NodeLocal:
		out.Why = fmt.Sprintf("its %s is Local, and node %s has no endpoint of it", setting, p.own())
	case verdict != renderer.Balance:
		out.Why = "it has no ready endpoint for " + ipaddr.Family(pkt.dest)
	}
	return out
}

// inside reports whether source is a pod or a node, and not a client outside the cluster.
func (p *Plugin) inside(source netip.Addr, nodes map[string][]netip.Addr) bool {
	for _, n := range p.ContivConf.IPAM().PodSubnetCIDR {
		if n.Contains(source) {
			return true
		}
	}
	for _, list := range nodes {
		if slices.Contains(list, source) {
			return true
		}
	}
	return false
}
