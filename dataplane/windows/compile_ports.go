package windataplane

import (
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/windows/hns"
)

// ports sets the ports of both sides. If HNS cannot express a part of them, no ports are set: the rule is closed then, and must match all
// ports.
func (m *matcher) ports(in *proto.Rule, protocol uint16, from, to *side) {
	before := len(m.problems)
	if len(in.GetNotSrcNamedPortIpSetIds())+len(in.GetNotDstNamedPortIpSetIds()) > 0 {
		m.problem("HNS cannot match all ports except those of a set")
	}
	from.ports = m.endedPorts(protocol, in.GetSrcPorts(), in.GetNotSrcPorts(), in.GetSrcNamedPortIpSetIds())
	to.ports = m.endedPorts(protocol, in.GetDstPorts(), in.GetNotDstPorts(), in.GetDstNamedPortIpSetIds())
	hasPorts := len(in.GetNotSrcNamedPortIpSetIds())+len(in.GetNotDstNamedPortIpSetIds()) > 0 || from.ports != nil || to.ports != nil
	if hasPorts && protocol != protoTCP && protocol != protoUDP {
		m.problem("HNS matches ports of TCP and UDP only")
	}
	m.services(in, protocol, to)
	if len(m.problems) > before {
		from.ports, to.ports = nil, nil
	}
}

// endedPorts returns the given ranges, or named ports, minus other ranges; nil: any port.
func (m *matcher) endedPorts(protocol uint16, ranges, not []*proto.PortRange, sets []string) []ended {
	if len(ranges)+len(not)+len(sets) == 0 {
		return nil
	}
	minus := portsOf(m.ranges(not))
	list := []ended{} // not nil: the rule has a condition on ports
	add := func(e ended) {
		if e.ports = e.ports.subtract(minus); len(e.ports) > 0 {
			list = append(list, e)
		}
	}
	if len(ranges) > 0 {
		add(ended{ports: portsOf(m.ranges(ranges))})
	} else if len(sets) == 0 {
		add(ended{ports: allPorts})
	}
	for _, id := range sets {
		if s := m.portSet(id); s != nil {
			for _, e := range s.ended(m.family) {
				if e.protocol == protocol {
					add(e)
				}
			}
		}
	}
	return list
}

func (m *matcher) ranges(in []*proto.PortRange) []hns.PortRange {
	var list []hns.PortRange
	for _, r := range in {
		first, last := r.GetFirst(), r.GetLast()
		if first < 0 || first > last || last > 65535 {
			m.problem("%d-%d is not a range of ports", first, last)
			continue
		}
		list = append(list, hns.PortRange{First: uint16(first), Last: uint16(last)})
	}
	return list
}

// services matches the ports of services. Each member of the set has its own protocol.
func (m *matcher) services(in *proto.Rule, protocol uint16, to *side) {
	ids := in.GetDstIpPortSetIds()
	if len(ids) == 0 {
		return
	}
	if len(ids) > 1 || to.ports != nil {
		m.problem("a service's ports cannot be matched together with other ports")
		return
	}
	s := m.portSet(ids[0])
	if s == nil {
		return
	}
	to.ports = []ended{}
	not, _ := proto.NumberOf(in.GetNotProtocol())
	for _, e := range s.ended(m.family) {
		switch {
		case protocol != 0 && e.protocol != protocol, e.protocol == uint16(not):
		case e.protocol != protoTCP && e.protocol != protoUDP:
			m.problem("HNS matches ports of TCP and UDP only, IP set %q has others", ids[0])
		default:
			to.ports = append(to.ports, e)
		}
	}
}

// icmp returns the protocol of a rule about ICMP types. It returns false if the family has no such packets.
func (m *matcher) icmp(in *proto.Rule, protocol uint16) (uint16, bool) {
	if in.GetIcmp() == nil && in.GetNotIcmp() == nil {
		return protocol, true
	}
	own, other := uint16(protoICMP), uint16(protoICMPv6)
	if m.family == 6 {
		own, other = other, own
	}
	if protocol == other {
		return protocol, false
	}
	m.problem("HNS cannot match types and codes of ICMP")
	if protocol == 0 && in.GetNotIcmp() == nil {
		return own, true
	}
	return protocol, true
}

func (m *matcher) http(in *proto.Rule) {
	if h := in.GetHttpMatch(); h != nil && (len(h.GetMethods()) > 0 || len(h.GetPaths()) > 0) {
		m.problem("HTTP cannot be matched here")
	}
}

// product returns the boxes of all combinations of both sides' ports.
func (m *matcher) product(protocol uint16, from, to side) []box {
	var out []box
	for _, s := range alternatives(from) {
		for _, d := range alternatives(to) {
			b := box{protocol: protocol}
			if b.protocol == 0 {
				b.protocol = d.protocol
			}
			if m.inbound {
				b.remote, b.remotePorts, b.local, b.localPorts = s.nets, s.ports, d.nets, d.ports
			} else {
				b.local, b.localPorts, b.remote, b.remotePorts = s.nets, s.ports, d.nets, d.ports
			}
			out = append(out, b)
		}
	}
	return out
}

// alternatives intersects the addresses of a side with those of its ports.
func alternatives(s side) []ended {
	if s.ports == nil {
		return []ended{{nets: s.nets}}
	}
	var out []ended
	for _, e := range s.ports {
		nets := s.nets
		if e.nets != nil && !intersectList(&nets, e.nets, netList.intersect) {
			continue
		}
		out = append(out, ended{protocol: e.protocol, nets: nets, ports: e.ports})
	}
	return out
}
