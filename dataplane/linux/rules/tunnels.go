package rules

import "contiv.dev/vswitch/dataplane/linux/table"

// vxlanPackets are packets to the VXLAN port.
func (r *renderer) vxlanPackets() table.Match { return dport(protoUDP, uint16(r.VXLANPort)) }

// tunnelInput lets in tunnelled packets of other nodes and of nothing else: a caller that can send them is inside the pod network. The
// first rules do not trust the source address. A workload's packets to a service get here with the tunnel's port when the service leads to
// it, and a process of the node can send to any of the node's addresses through the loopback.
func (r *renderer) tunnelInput(f table.Family) []table.Rule {
	var list []table.Rule
	for _, prefix := range r.WorkloadIfacePrefixes {
		list = append(list, r.tunnelled(f, in(prefix), "of a workload")...)
	}
	if r.IPIPEnabled && f == table.IPv4 {
		list = append(list,
			rule(table.Match{Protocol: protoIPIP, SrcSets: []string{SetAllHosts}, Dst: table.AddrLocal},
				"IPIP from other nodes", act(r.filterAllow)),
			rule(table.Match{Protocol: protoIPIP}, "IPIP from unknown sources", act(table.Drop)))
	}
	if r.VXLANEnabled {
		self := r.vxlanPackets()
		self.InIface = loopbackDevice
		list = append(list, rule(self, "VXLAN from this node to itself", act(table.Drop)))
		m := r.vxlanPackets()
		m.Dst = table.AddrLocal
		for _, set := range []string{SetAllHosts, SetVXLANPeers} {
			m.SrcSets = []string{set}
			list = append(list, rule(m, "VXLAN from other nodes", act(r.filterAllow)))
		}
		m.SrcSets = nil
		list = append(list, rule(m, "VXLAN from unknown sources", act(table.Drop)))
	}
	return list
}

const loopbackDevice = "lo"

// tunnelled drops the tunnel packets among those that match. Other nodes would take their sender for a node. IPIP is dropped
// whether or not we use it: the kernel of a node that has the module loaded takes it.
func (r *renderer) tunnelled(f table.Family, m table.Match, source string) []table.Rule {
	var list []table.Rule
	if r.VXLANEnabled {
		vxlan := r.vxlanPackets()
		vxlan.InIface, vxlan.Mark, vxlan.MarkMask = m.InIface, m.Mark, m.MarkMask
		list = append(list, rule(vxlan, "VXLAN "+source, act(table.Drop)))
	}
	if f == table.IPv4 {
		m.Protocol = protoIPIP
		list = append(list, rule(m, "IPIP "+source, act(table.Drop)))
	}
	return list
}

// tunnelOutput lets the kernel's own tunnel packets pass whatever host endpoints say.
func (r *renderer) tunnelOutput(f table.Family) []table.Rule {
	var list []table.Rule
	if r.IPIPEnabled && f == table.IPv4 {
		list = append(list, rule(table.Match{Protocol: protoIPIP, DstSets: []string{SetAllHosts}, Src: table.AddrLocal},
			"IPIP to other nodes", act(r.filterAllow)))
	}
	if r.VXLANEnabled {
		m := r.vxlanPackets()
		m.Src = table.AddrLocal
		for _, set := range []string{SetAllHosts, SetVXLANPeers} {
			m.DstSets = []string{set}
			list = append(list, rule(m, "VXLAN to other nodes", act(r.filterAllow)))
		}
	}
	return list
}

// manglePostrouting marks what goes into the tunnel. The kernel keeps the mark when it puts VXLAN's headers around the packet,
// so that the outer packet has it in OUTPUT and a process's packet to the same port has not. The owner of the socket does not
// tell them apart: the outer packet has that of the inner one.
func (r *renderer) manglePostrouting() table.Chain {
	return table.Chain{Name: r.Own(chainPostrouting), Rules: []table.Rule{
		rule(table.Match{OutIface: r.VXLANDevice}, "Into the tunnel", setMark(r.tunnelMark()))}}
}

// tunnelMark is the bit of packets in the tunnel. It has this meaning between POSTROUTING of the inner packet and the first
// rules of OUTPUT of the outer one only; there all marks are cleared.
func (c Config) tunnelMark() uint32 { return c.IptablesMarkPass }

// tunnelsOfProcesses drops what a process of the node, of whatever user, sends to other nodes' tunnel ends: they would take it
// for a packet of this node's pods. Only those that may set marks or write raw frames (CAP_NET_ADMIN, CAP_NET_RAW) can.
func (r *renderer) tunnelsOfProcesses() []table.Rule {
	if !r.VXLANEnabled {
		return nil
	}
	var list []table.Rule
	for _, set := range []string{SetAllHosts, SetVXLANPeers} {
		m := r.vxlanPackets()
		m.MarkMask, m.DstSets = r.tunnelMark(), []string{set}
		list = append(list, rule(m, "VXLAN of a process", act(table.Drop)))
	}
	return list
}

// translatedTunnels drops what a service leads to a tunnel end, where it would seem to come from this node.
func (r *renderer) translatedTunnels() []table.Rule {
	if !r.VXLANEnabled {
		return nil
	}
	m := r.vxlanPackets()
	m.DNATed = true
	return []table.Rule{rule(m, "VXLAN by way of a service", act(table.Drop))}
}
