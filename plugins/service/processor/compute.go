package processor

import (
	"math"
	"net/netip"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// maxAffinity is the API's limit, a day. Dataplanes reject absurd values.
const maxAffinity = 86400

// compute returns the value of a service; nil if there is nothing to balance, or if another program balances it. local are the addresses of
// backends that are pods of this node, localReady is the number of endpoints to report to load balancers.
func (p *Processor) compute(s *service) (value *renderer.ContivService, local []netip.Addr, localReady int) {
	o := s.object
	s.tooMany, s.tooManyBackends, s.badName = 0, 0, false
	if o == nil || o.GetProxyName() != "" || o.GetHeadless() || o.GetType() == model.Service_EXTERNAL_NAME {
		return nil, nil, 0
	}
	if s.badName = !validName(s.id.Namespace) || !validName(s.id.Name); s.badName {
		return nil, nil, 0
	}
	value = renderer.NewContivService()
	value.ID = s.id
	clusterIPs := addrs(o.GetClusterIps())
	if len(clusterIPs) == 0 {
		return nil, nil, 0
	}
	value.ClusterIPs = renderer.FromAddrs(clusterIPs...)
	p.external(value, o)
	if n := len(o.GetPorts()) * (len(value.ClusterIPs.Addrs()) + len(value.ExternalIPs.Addrs())); n > maxFrontends {
		s.tooMany = n
		return nil, nil, 0
	}
	ports := slicePortsOf(p.scratch.ports, s.slices)
	p.scratch.ports = ports
	if n := backendsOf(value, o.GetPorts(), ports); n > maxBackends {
		s.tooManyBackends = n
		return nil, nil, 0
	}
	value.SessionAffinityTimeout = min(o.GetSessionAffinityTimeout(), maxAffinity)
	value.InternalTrafficPolicy = policy(o.GetInternalLocal())
	value.TrafficPolicy = policy(o.GetExternalLocal())
	nodePort := false
	for _, port := range o.GetPorts() {
		nodePort = nodePort || port.GetNodePort() != 0
	}
	if !nodePort && len(value.ExternalIPs.Addrs()) == 0 { // there is only one kind of traffic
		value.TrafficPolicy = value.InternalTrafficPolicy
	}
	if o.GetType() == model.Service_LOAD_BALANCER && o.GetExternalLocal() && o.GetHealthCheckNodePort() <= math.MaxUint16 {
		value.HealthCheckNodePort = uint16(o.GetHealthCheckNodePort())
	}
	ready := localCount{}
	for _, port := range o.GetPorts() {
		if _, dup := value.Ports[port.GetName()]; dup || !validPort(port) {
			continue
		}
		p.addPort(value, port, ports, &ready)
	}
	return value, p.localPods(value), ready.max()
}

// external sets the addresses outside the cluster. A family in which the service has no ClusterIP has no endpoints either, so addresses of
// that family are left out.
func (p *Processor) external(value *renderer.ContivService, o *model.Service) {
	var all, lb []netip.Addr
	served := func(addr netip.Addr) bool {
		return slices.ContainsFunc(value.ClusterIPs.Addrs(), func(c netip.Addr) bool { return c.Is6() == addr.Is6() })
	}
	if !p.cfg.IgnoreExternalIPs {
		all = slices.DeleteFunc(addrs(o.GetExternalIps()), func(a netip.Addr) bool { return !served(a) })
	}
	if o.GetType() == model.Service_LOAD_BALANCER {
		for _, in := range o.GetIngress() {
			addr, err := netip.ParseAddr(in.GetIp())
			if addr = addr.Unmap(); err == nil && !in.GetProxy() && served(addr) && !special(addr) {
				lb = append(lb, addr)
			}
		}
	}
	value.ExternalIPs = renderer.FromAddrs(append(all, lb...)...)
	if len(lb) == 0 {
		return
	}
	value.LoadBalancerIPs = renderer.FromAddrs(lb...)
	if o.GetSourceRangesSet() {
		value.LoadBalancerSourceRanges, value.SourceRangesSet = sourceRanges(o.GetSourceRanges())
	}
}

// sourceRanges parses networks. A network of length 0 is any address of its family (ContivService.SourceRanges). If the networks exclude no
// address, the service has no ranges.
func sourceRanges(texts []string) (ranges []netip.Prefix, restricted bool) {
	var some, all renderer.Families
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			continue
		}
		family := renderer.FamilyOf(prefix.Addr().Is6())
		if some |= family; prefix.Bits() == 0 {
			all |= family
		}
		ranges = append(ranges, prefix)
	}
	if all != 0 && some == all {
		return nil, false
	}
	slices.SortFunc(ranges, netip.Prefix.Compare)
	return slices.Compact(ranges), true
}

// backendsOf returns the number of backends that a service can have. It is the same on all nodes, because it does not depend on which
// endpoints serve.
func backendsOf(value *renderer.ContivService, of []*model.ServicePort, ports slicePorts) (n int) {
	for _, ipv6 := range []bool{false, true} {
		if !hasFamily(value.ClusterIPs, ipv6) {
			continue
		}
		for _, port := range of {
			n += ports.of(port, ipv6).endpoints()
		}
	}
	return n
}

// addPort adds a port and its backends.
func (p *Processor) addPort(value *renderer.ContivService, port *model.ServicePort, ports slicePorts, ready *localCount) {
	name := port.GetName()
	value.Ports[name] = &renderer.ServicePort{
		Protocol: protocol(port), Port: uint16(port.GetPort()), NodePort: uint16(port.GetNodePort()),
	}
	here := topology{node: p.cfg.NodeName, zone: p.zone}
	var list portBackends
	var reachable renderer.Families
	for _, ipv6 := range []bool{false, true} {
		if !hasFamily(value.ClusterIPs, ipv6) {
			continue
		}
		u := usesOf(value, port, ipv6)
		all := candidates(p.scratch.candidates, ports.of(port, ipv6), p.cfg.NodeName)
		p.scratch.candidates = all
		choose(all, u, here, &p.scratch.choice)
		list.add(all, &p.scratch.choice, u, keepsFlows(port), p.nodes.has)
		if p.scratch.choice.reachable && u.local {
			reachable |= renderer.FamilyOf(ipv6)
		}
		if value.HealthCheckNodePort != 0 {
			ready.add(all, ipv6)
		}
	}
	if len(list.all) > 0 {
		value.Backends[name] = list.all
	}
	if len(list.local) > 0 {
		if value.LocalPolicyBackends == nil {
			value.LocalPolicyBackends = map[string][]*renderer.ServiceBackend{}
		}
		value.LocalPolicyBackends[name] = list.local
	}
	if len(list.kept) > 0 {
		if value.KeptBackends == nil {
			value.KeptBackends = map[string][]*renderer.ServiceBackend{}
		}
		value.KeptBackends[name] = list.kept
	}
	if reachable != 0 {
		if value.Reachable == nil {
			value.Reachable = map[string]renderer.Families{}
		}
		value.Reachable[name] = reachable
	}
}

// keepsFlows reports whether a dataplane ends connections of the port's protocol when they lead to an endpoint that the service does not
// list any more: those of protocols whose connections have no end that it can rely on.
func keepsFlows(port *model.ServicePort) bool {
	return port.GetProtocol() == model.Protocol_UDP || port.GetProtocol() == model.Protocol_SCTP
}

// scratch is memory that is reused for each computation.
type scratch struct {
	ports      slicePorts
	candidates []candidate
	choice     choice
}

// usesOf reports which policies apply to traffic to a port, as kube-proxy does (UsesClusterEndpoints, UsesLocalEndpoints).
func usesOf(value *renderer.ContivService, port *model.ServicePort, ipv6 bool) uses {
	external := port.GetNodePort() != 0 || hasFamily(value.ExternalIPs, ipv6)
	internalLocal := value.InternalTrafficPolicy == renderer.NodeLocal
	return uses{
		cluster: !internalLocal || external,
		local:   internalLocal || (external && value.TrafficPolicy == renderer.NodeLocal),
	}
}

// localPods returns the addresses of backends that are pods of this node, sorted.
func (p *Processor) localPods(value *renderer.ContivService) []netip.Addr {
	var out []netip.Addr
	for port := range value.Ports {
		for _, b := range value.AllBackends(port) {
			if b.Local && !b.HostNetwork {
				out = append(out, b.Addr())
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// localCount counts the local ready endpoints by address, per family: with two families every pod has two addresses.
type localCount [2]map[netip.Addr]bool

func (c *localCount) add(all []candidate, ipv6 bool) {
	i := 0
	if ipv6 {
		i = 1
	}
	for k := range all {
		if all[k].local && all[k].ep.Ready() {
			if c[i] == nil {
				c[i] = map[netip.Addr]bool{}
			}
			c[i][all[k].addr] = true
		}
	}
}

func (c *localCount) max() int { return max(len(c[0]), len(c[1])) }

// protocol returns the protocol of a port, or 0 if it cannot be balanced.
func protocol(port *model.ServicePort) renderer.ProtocolType {
	switch port.GetProtocol() {
	case model.Protocol_TCP:
		return renderer.TCP
	case model.Protocol_UDP:
		return renderer.UDP
	case model.Protocol_SCTP:
		return renderer.SCTP
	}
	return 0
}

// validName reports whether the API server could accept the name. Renderers use names in keys and labels, where a slash or dots would refer
// to another service.
func validName(name string) bool {
	if name == "" || len(name) > 253 || strings.Trim(name, ".") == "" {
		return false
	}
	return !strings.ContainsFunc(name, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_')
	})
}

// validPort reports whether the API server would accept the port. The state may come from a file and is not validated.
func validPort(port *model.ServicePort) bool {
	return protocol(port) != 0 && port.GetPort() > 0 && port.GetPort() <= math.MaxUint16 && port.GetNodePort() <= math.MaxUint16
}

func policy(local bool) renderer.TrafficPolicyType {
	if local {
		return renderer.NodeLocal
	}
	return renderer.ClusterWide
}

func hasFamily(set *renderer.IPAddresses, ipv6 bool) bool {
	return slices.ContainsFunc(set.Addrs(), func(a netip.Addr) bool { return a.Is6() == ipv6 })
}

// addrs parses addresses. It leaves out invalid texts and addresses that no service can have.
func addrs(texts []string) []netip.Addr {
	out := make([]netip.Addr, 0, len(texts))
	for _, text := range texts {
		if addr, err := netip.ParseAddr(text); err == nil && !special(addr.Unmap()) {
			out = append(out, addr.Unmap())
		}
	}
	return out
}

// special reports whether an address has a meaning other than a service. The API server rejects such addresses in the specification of a
// service, but not in the status that load balancers write.
func special(a netip.Addr) bool {
	broadcast := netip.AddrFrom4([4]byte{255, 255, 255, 255})
	return a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast() || a == broadcast
}
