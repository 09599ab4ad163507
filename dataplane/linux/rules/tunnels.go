package rules

import "contiv.dev/vswitch/dataplane/linux/table"

// vxlanPackets matches packets to the VXLAN port.
func (r *renderer) vxlanPackets() table.Match { return dport(protoUDP, uint16(r.VXLANPort)) }

// tunnelInput accepts tunnelled packets from other nodes and drops all others: a sender of such packets is inside the pod network. The
// first rules do not rely on the source address. A workload's packets to a service arrive here with the tunnel's port if a backend of the
// service is the tunnel endpoint, and a process of the node can send to any of the node's addresses through the loopback.
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

// tunnelled drops the tunnel packets among those that match: other nodes would accept their sender as a node. IPIP is dropped even if it is
// not in use, since a node's kernel accepts it if the module is loaded.
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

// tunnelOutput accepts the kernel's own tunnel packets regardless of host endpoint policies.
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

// manglePostrouting marks packets that enter the tunnel. The kernel keeps the mark when it adds VXLAN's headers, so that the outer packet
// has the mark in OUTPUT, and a process's packet to the same port has not. The socket owner cannot distinguish them: the outer packet has
// the owner of the inner one.
func (r *renderer) manglePostrouting() table.Chain {
	return table.Chain{Name: r.Own(chainPostrouting), Rules: []table.Rule{
		rule(table.Match{OutIface: r.VXLANDevice}, "Into the tunnel", setMark(r.tunnelMark()))}}
}

// tunnelMark returns the mark bit of packets in the tunnel. It has this meaning only between POSTROUTING of the inner packet and the first
// rules of OUTPUT of the outer packet, where all marks are cleared.
func (c Config) tunnelMark() uint32 { return c.IptablesMarkPass }

// tunnelsOfProcesses drops packets that a process of the node, of any user, sends to other nodes' tunnel endpoints: these would accept them
// as packets of this node's pods. Only processes that may set marks or write raw frames (CAP_NET_ADMIN, CAP_NET_RAW) can bypass it.
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

// translatedTunnels drops packets that a service translates to a tunnel endpoint, where they would seem to come from this node.
func (r *renderer) translatedTunnels() []table.Rule {
	if !r.VXLANEnabled {
		return nil
	}
	m := r.vxlanPackets()
	m.DNATed = true
	return []table.Rule{rule(m, "VXLAN by way of a service", act(table.Drop))}
}
