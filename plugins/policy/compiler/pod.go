package compiler

import (
	"net/netip"
	"slices"

	"contiv.dev/vswitch/internal/ipaddr"
	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/policy/model"
)

// pod is a pod of the cluster.
type pod struct {
	id  model.EndpointID
	obj *kube.Pod
	// ips are the addresses that the pod claims; addrs are those of them that no other pod claims.
	ips, addrs []netip.Addr
	peer       bool      // is in Compiler.peers
	local      bool      // is in Compiler.locals
	peers      []*choice // of Compiler.peers
	locals     []*choice // of Compiler.locals
	hidden     bool      // the pod is being changed and is in no set meanwhile
}

func (p *pod) labels() map[string]string { return p.obj.GetLabels() }

func peersOf(p *pod) *[]*choice  { return &p.peers }
func localsOf(p *pod) *[]*choice { return &p.locals }

// members calls yield for each member that the pod adds to a set.
func (p *pod) members(s *set, yield func(model.Member)) {
	if p.hidden {
		return
	}
	for _, a := range p.ofClass(s.class) {
		m := model.Member{Net: ipaddr.HostPrefix(a)}
		if s.Kind == model.Addresses {
			yield(m)
			continue
		}
		m.Protocol = s.protocol
		for i, port := range p.obj.GetPorts() {
			if protocol, known := protocolOf(port.GetProtocol()); !known || protocol != s.protocol || port.GetName() != s.port || p.repeats(i) {
				continue
			}
			m.Port = uint16(port.GetContainerPort())
			yield(m)
		}
	}
}

// ofClass returns the addresses of a class, which the pod adds to a set.
func (p *pod) ofClass(class addressClass) []netip.Addr {
	switch {
	case class == anyAddress:
		return p.ips
	case class == unshared:
		return p.addrs
	case len(p.addrs) == len(p.ips):
		return nil
	}
	var list []netip.Addr
	for _, a := range p.ips {
		if !slices.Contains(p.addrs, a) {
			list = append(list, a)
		}
	}
	return list
}

// repeats reports whether an earlier container port is the same as the one at i.
func (p *pod) repeats(i int) bool {
	port := p.obj.GetPorts()[i]
	for _, q := range p.obj.GetPorts()[:i] {
		if q.GetName() == port.GetName() && q.GetProtocol() == port.GetProtocol() && q.GetContainerPort() == port.GetContainerPort() {
			return true
		}
	}
	return false
}

// protocolOf returns a protocol; known is false if this version does not have it.
func protocolOf(p kube.Protocol) (protocol model.Protocol, known bool) {
	switch p {
	case kube.Protocol_TCP:
		return model.TCP, true
	case kube.Protocol_UDP:
		return model.UDP, true
	case kube.Protocol_SCTP:
		return model.SCTP, true
	}
	return model.AnyProtocol, false
}

// claims maps addresses to the pods that claim them, nearly always one pod.
type claims struct {
	one  map[netip.Addr]*pod
	many map[netip.Addr][]*pod
}

func newClaims() claims {
	return claims{one: map[netip.Addr]*pod{}, many: map[netip.Addr][]*pod{}}
}

// of returns the pods that claim an address.
func (c *claims) of(a netip.Addr) []*pod {
	if p := c.one[a]; p != nil {
		return []*pod{p}
	}
	return c.many[a]
}

// add records that p claims an address, and returns the pod that has lost the address because of that.
func (c *claims) add(a netip.Addr, p *pod) (loser *pod) {
	if list := c.many[a]; list != nil {
		c.many[a] = append(list, p)
		return nil
	}
	if q := c.one[a]; q != nil {
		delete(c.one, a)
		c.many[a] = []*pod{q, p}
		return q
	}
	c.one[a] = p
	return nil
}

// remove records that p no longer claims an address, and returns the pod that has gained the address because of that.
func (c *claims) remove(a netip.Addr, p *pod) (winner *pod) {
	if c.one[a] == p {
		delete(c.one, a)
		return nil
	}
	list := without(c.many[a], p)
	if len(list) == 1 {
		delete(c.many, a)
		c.one[a] = list[0]
		return list[0]
	}
	c.many[a] = list
	return nil
}

// owned returns the addresses that p alone claims.
func (c *claims) owned(p *pod) []netip.Addr {
	owned := p.ips
	for i, a := range p.ips {
		if c.one[a] == p {
			if len(owned) < len(p.ips) {
				owned = append(owned, a)
			}
		} else if len(owned) == len(p.ips) {
			owned = slices.Clone(p.ips[:i])
		}
	}
	return owned
}

// parseIPs returns the addresses of a pod. A pod in the network of its node has no addresses of its own.
func parseIPs(obj *kube.Pod) []netip.Addr {
	if obj == nil || obj.GetHostNetwork() {
		return nil
	}
	return parseAddrs(obj.GetIps())
}
