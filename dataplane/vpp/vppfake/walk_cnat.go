package vppfake

import (
	"net/netip"

	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/ip_types"
)

// cnatFlow is what a session is found by: a packet's ends, and whether it comes in or leaves.
type cnatFlow struct {
	src, dst netip.AddrPort
	proto    uint8
	output   bool
}

// cnatSession is what becomes of the packets of a flow.
type cnatSession struct {
	src, dst netip.AddrPort
}

// cnatFirstPort is the first of the ports for translated sources.
const cnatFirstPort = 0xC000

func cnatFeatureName(fam int, output bool) (arc, name string) {
	n := []string{"4", "6"}[fam]
	if output {
		return "ip" + n + "-output", "cnat-output-ip" + n
	}
	return "ip" + n + "-unicast", "cnat-input-ip" + n
}

func isCnatFeature(k featureKey) bool {
	for _, fam := range []int{ip4, ip6} {
		for _, output := range []bool{false, true} {
			if arc, name := cnatFeatureName(fam, output); k.arc == arc && k.feature == name {
				return true
			}
		}
	}
	return false
}

func (st *state) cnatOn(ifx uint32, fam int, output bool) bool {
	arc, name := cnatFeatureName(fam, output)
	return st.features[featureKey{ifx, arc, name}]
}

// cnatFlowOf is the flow of a packet; false for one that cnat does not look at.
func cnatFlowOf(p *Packet, output bool) (cnatFlow, bool) {
	f := cnatFlow{proto: p.Proto, output: output}
	if p.Error != nil {
		f.src, f.dst, f.proto = p.Error.about()
		return f, true
	}
	sport, dport := p.SrcPort, p.DstPort
	switch p.Proto {
	case ProtoTCP, ProtoUDP:
	case ProtoICMP, ProtoICMPv6:
		sport, dport = p.echoID(), p.echoID()
	default:
		return f, false
	}
	f.src, f.dst = netip.AddrPortFrom(p.Src, sport), netip.AddrPortFrom(p.Dst, dport)
	return f, true
}

func (w *walk) cnatTranslate(p *Packet, f cnatFlow, s *cnatSession) {
	if p.Error != nil {
		if p.Src == f.src.Addr() { // else it comes from somebody on the way
			p.Src = s.src.Addr()
		}
		p.Dst, p.Error = s.dst.Addr(), p.Error.turned(s.src, s.dst)
		w.step("cnat: %s", *p)
		return
	}
	p.Src, p.Dst = s.src.Addr(), s.dst.Addr()
	if p.Proto == ProtoTCP || p.Proto == ProtoUDP {
		p.SrcPort, p.DstPort = s.src.Port(), s.dst.Port()
	} else {
		p.setEchoID(s.src.Port())
	}
	w.step("cnat: %s", *p)
}

// cnatInput translates a packet for a service, and answers to translated sources.
func (w *walk) cnatInput(i *iface, p *Packet) {
	if !w.cnatOn(i.index, family(p.Dst), false) {
		return
	}
	flow, ok := cnatFlowOf(p, false)
	if !ok {
		return
	}
	c := &w.cnat
	s := c.sessions[flow]
	if s == nil {
		tr := c.translation(p)
		if tr == nil {
			return
		}
		s = &cnatSession{src: flow.src, dst: tr.choose(p)}
		c.sessions[flow] = s
		c.back(flow, s, true)
	}
	w.cnatTranslate(p, flow, s)
}

// translation is the one for a packet's destination.
func (c *cnatState) translation(p *Packet) *cnatTranslation {
	if p.Proto != ProtoTCP && p.Proto != ProtoUDP {
		return nil
	}
	return c.byEnd[cnatVIP{netip.AddrPortFrom(p.Dst, p.DstPort), p.Proto}]
}

// choose is stable for a flow, or for a client; VPP's choice is another one.
func (tr *cnatTranslation) choose(p *Packet) netip.AddrPort {
	by := *p
	if tr.sticky {
		by = Packet{Src: p.Src}
	}
	b := tr.paths[by.flow()%uint64(len(tr.paths))].DstEp
	return netip.AddrPortFrom(netAddr(b.Addr), b.Port)
}

// back adds the session of the answers, unless there is one.
func (c *cnatState) back(flow cnatFlow, s *cnatSession, output bool) {
	back := cnatFlow{src: s.dst, dst: s.src, proto: flow.proto, output: output}
	if c.sessions[back] == nil {
		c.sessions[back] = &cnatSession{src: flow.dst, dst: flow.src}
	}
}

// cnatOutput gives answers the service's address, and sources the node's where the policy says so; false: dropped.
func (w *walk) cnatOutput(out *iface, p *Packet) bool {
	fam := family(p.Dst)
	if !w.cnatOn(out.index, fam, true) {
		return true
	}
	flow, ok := cnatFlowOf(p, true)
	if !ok {
		return true
	}
	c := &w.cnat
	s := c.sessions[flow]
	if s == nil {
		if !w.cnatWantsSource(out, flow) || c.snat[fam].IsUnspecified() {
			return true
		}
		port, free := c.allocate(p.Proto)
		if !free {
			w.drop("cnat: out of ports")
			return false
		}
		s = &cnatSession{src: netip.AddrPortFrom(c.snat[fam], port), dst: flow.dst}
		if p.Proto != ProtoTCP && p.Proto != ProtoUDP {
			s.dst = netip.AddrPortFrom(flow.dst.Addr(), port)
		}
		c.sessions[flow] = s
		c.back(flow, s, false)
	}
	w.cnatTranslate(p, flow, s)
	return true
}

// cnatWantsSource is the policy.
func (w *walk) cnatWantsSource(out *iface, flow cnatFlow) bool {
	c := &w.cnat
	in := uint32(0)
	if w.rx != nil {
		in = w.rx.index
	}
	fam := family(flow.dst.Addr())
	switch {
	case c.policy == cnat.CNAT_POLICY_NONE:
		return true
	case c.policy == cnat.CNAT_POLICY_K8S && c.hosts[out.index]:
		return false
	case c.included[fam][in]: // no prefix is excluded: the fake has no such request
		return true
	case c.policy != cnat.CNAT_POLICY_K8S:
		return false
	case !c.pods[in] && !c.pods[out.index]:
		return flow.src.Addr() != c.snat[fam]
	}
	return flow.src.Addr() == flow.dst.Addr()
}

// allocate is the first free port.
func (c *cnatState) allocate(proto uint8) (uint16, bool) {
	for port := uint16(cnatFirstPort); port < 65535; port++ {
		if key := (cnatPort{proto, port}); !c.portsTaken[key] {
			c.portsTaken[key] = true
			return port, true
		}
	}
	return 0, false
}

// cnatRoute is what the route of a service's address does with a packet that no feature has translated; false: no more.
func (w *walk) cnatRoute(p *Packet, t *fib) bool {
	if t != w.ip.tables[family(p.Dst)][0] {
		return true
	}
	if exclusive, vip := w.cnat.exclusive[p.Dst]; vip {
		if w.cnat.translation(p) != nil {
			w.unknown("cnat by the route of %s: the packet came by an interface without the feature", p.Dst)
			return false
		}
		if exclusive {
			w.drop("cnat: no translation for %s", hostPort(p.Dst, p.DstPort))
			return false
		}
	}
	return true
}

func cnatSessionDump(c *call, _ *cnat.CnatSessionDump, send func(*cnat.CnatSessionDetails)) {
	for f, s := range c.cnat.sessions {
		d := cnat.CnatSession{Src: cnatEnd(f.src), Dst: cnatEnd(f.dst), New: cnatEnd(s.dst), IPProto: ip_types.IPProto(f.proto)}
		if f.output {
			d.Location = 1
		}
		send(&cnat.CnatSessionDetails{Session: d})
	}
}
