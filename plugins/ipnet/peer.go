package ipnet

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/ipnet/transport"
	"contiv.dev/vswitch/plugins/nodesync"
)

// renderPeers renders all other nodes. A node that cannot be rendered is reported and left out: it must not disconnect the others. This is
// not an error of the resync: the resync would otherwise fail on every node of the cluster for a fault that these nodes cannot repair.
func (n *IPNet) renderPeers(s *settings) (peers, []value, error) {
	nodes := n.NodeSync.GetAllNodes()
	all := newPeers(len(nodes))
	var came []*transport.Node
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if name == s.nodeName {
			continue
		}
		p, err := n.renderPeer(s, nodes[name])
		if err != nil {
			n.reportPeer(name, err)
			continue
		}
		n.reportPeer(name, s.unreachable(p.node))
		all.set(name, p)
		came = append(came, p.node)
	}
	var v values
	v.put(s.transport.Mesh(&s.local, nil, nil, came)...)
	return all, v.list, v.err
}

// reportPeer logs why a node is not connected, once for each reason; nil means that it is connected.
func (n *IPNet) reportPeer(name string, err error) {
	if err == nil {
		delete(n.peerFaults, name)
		return
	}
	if n.peerFaults[name] != err.Error() {
		n.Logger().Error("a node is not connected to this one", "node", name, "error", err)
	}
	n.peerFaults[name] = err.Error()
}

// unreachable returns why an overlay cannot reach a node with addresses, or nil.
func (s *settings) unreachable(p *transport.Node) error {
	if _, _, ok := transport.Underlay(&s.local, p); ok || !s.overlay || len(p.IPs) == 0 || len(s.local.IPs) == 0 {
		return nil
	}
	return fmt.Errorf("node %s has the addresses %v and this node has %v: they have no address family in common; give both an address of one family",
		p.Name, p.IPs, s.local.IPs)
}

func (n *IPNet) renderPeer(s *settings, node *nodesync.Node) (*peer, error) {
	if node.ID == s.nodeID {
		return nil, fmt.Errorf("node %s claims the ID %d of this node; it is not connected until one of the two has another ID",
			node.Name, node.ID)
	}
	ips := make([]netip.Prefix, 0, len(node.VppIPAddresses))
	for _, ip := range node.VppIPAddresses {
		ips = append(ips, netip.PrefixFrom(ip.Address, ip.Network.Bits()))
	}
	t, err := n.transportNode(s, node, ips)
	if err != nil {
		return nil, err
	}
	var v values
	v.put(s.transport.Peer(&s.local, &t)...)
	s.peerPastPipe(&v, &t)
	s.pluginPeer(&v, &t)
	if v.err != nil {
		return nil, fmt.Errorf("node %s: %w", node.Name, v.err)
	}
	return &peer{node: &t, values: v.list}, nil
}

// transportNode returns the data of a node that transports need.
func (n *IPNet) transportNode(s *settings, node *nodesync.Node, ips []netip.Prefix) (t transport.Node, err error) {
	t = transport.Node{ID: node.ID, Name: node.Name, IPs: ips}
	pods, err := n.IPAM.PodSubnets(node.ID)
	if err != nil {
		return t, fmt.Errorf("pod subnet of node %s: %w", node.Name, err)
	}
	hosts, err := n.IPAM.HostInterconnect(node.ID)
	if err != nil {
		return t, fmt.Errorf("VPP–host subnet of node %s: %w", node.Name, err)
	}
	if s.overlay { // without an overlay, the size of the overlay network is not a limit
		if t.Overlay, err = n.IPAM.VxlanIPs(node.ID); err != nil {
			return t, fmt.Errorf("VXLAN address of node %s: %w", node.Name, err)
		}
	}
	for _, p := range pods {
		t.Pods = append(t.Pods, p.Subnet)
	}
	for _, h := range hosts {
		t.Hosts = append(t.Hosts, h.Subnet)
	}
	mgmt := node.MgmtIPAddresses
	if n.MgmtIPs != nil {
		mgmt = n.MgmtIPs.HostIPs(node)
	}
	for _, ip := range mgmt {
		if addr, ok := netip.AddrFromSlice(ip); ok {
			t.MgmtIPs = append(t.MgmtIPs, addr.Unmap())
		}
	}
	return t, nil
}

// updatePeer connects a node that joined, disconnects one that left, or applies the difference for one that changed.
func (n *IPNet) updatePeer(ev *nodesync.NodeUpdate, txn api.UpdateOperations) (string, error) {
	if ev.NodeName == n.settings.nodeName {
		return "", nil
	}
	before, now := n.peers.byName[ev.NodeName], (*peer)(nil)
	var cannot error
	if ev.NewState != nil {
		now, cannot = n.renderPeer(n.settings, ev.NewState)
	}
	fault := cannot
	if now != nil {
		fault = n.settings.unreachable(now.node)
	}
	n.reportPeer(ev.NodeName, fault)
	mesh, err := n.meshWithout(before, now, n.peers.rivals(before))
	if err != nil {
		return "", err
	}
	changes := n.peers.set(ev.NodeName, now)
	n.others.Store(int64(len(n.peers.byName)))
	for key, v := range changes {
		if v == nil {
			txn.Delete(key)
		} else {
			txn.Put(key, v)
		}
	}
	for _, v := range mesh {
		txn.Put(v.key, v.msg)
	}
	n.mesh = mesh
	if cannot != nil {
		return fmt.Sprintf("node %s is not connected: %v", ev.NodeName, cannot), nil
	}
	if now == nil {
		return "disconnect node " + ev.NodeName, nil
	}
	return fmt.Sprintf("connect node %s with ID %d at %v", ev.NodeName, now.node.ID, now.node.IPs), nil
}

// meshWithout renders the values that all peers share after before was removed and now was added; each may be nil. Values that before
// shares with rivals remain.
func (n *IPNet) meshWithout(before, now *peer, rivals []*peer) ([]value, error) {
	var left, came []*transport.Node
	if before != nil {
		left = append(left, before.node)
	}
	for _, p := range rivals {
		came = append(came, p.node)
	}
	if now != nil {
		came = append(came, now.node)
	}
	var v values
	v.put(n.settings.transport.Mesh(&n.settings.local, messages(n.mesh), left, came)...)
	return v.list, v.err
}
