package nodesync

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

// PublishNodeIPs publishes the currently assigned VPP addresses of this node for the given IP version. The method is efficient enough to be
// called during every resync: an update is sent only if the addresses, or their order, have changed. It must be called only from the main event loop (not
// thread safe) and not before the startup resync.
func (ns *NodeSync) PublishNodeIPs(addresses contivconf.IPsWithNetworks, version contivconf.IPVersion) error {
	if ns.GetNodeID() == 0 {
		return errors.New("node addresses cannot be published before the start-up resync: the node has no ID yet")
	}
	if err := checkAddresses(addresses, version); err != nil {
		return err
	}
	s := ns.state
	wanted := sorted(slices.Clone(addresses))
	if slices.Equal(addressTexts(s.published[version]), addressTexts(wanted)) {
		return nil
	}
	s.published[version] = copyAddresses(wanted)
	ns.publish()
	return nil
}

// PublishMgmtIPs publishes the management addresses of the node, as PublishNodeIPs does for those of VPP. The other nodes, and this one,
// receive them as NodeUpdate.
func (ns *NodeSync) PublishMgmtIPs(addresses []netip.Addr) error {
	if ns.GetNodeID() == 0 {
		return errors.New("management addresses cannot be published before the start-up resync: the node has no ID yet")
	}
	wanted := make([]netip.Addr, 0, len(addresses))
	for _, a := range addresses {
		if !a.IsValid() || a.Zone() != "" {
			return fmt.Errorf("management address %s cannot be published: it must be an address without a zone", a)
		}
		wanted = append(wanted, a.Unmap())
	}
	slices.SortFunc(wanted, netip.Addr.Compare)
	texts := make([]string, 0, len(wanted))
	for _, a := range slices.Compact(wanted) {
		texts = append(texts, a.String())
	}
	if slices.Equal(ns.state.publishedMgmt, texts) {
		return nil
	}
	ns.state.publishedMgmt = texts
	ns.publish()
	return nil
}

// HostIPs returns the management addresses of a node that are on its interfaces, as published by its agent. If the agent publishes none, it
// returns all MgmtIPAddresses. The method must be called only from the main event loop.
func (ns *NodeSync) HostIPs(node *Node) []net.IP {
	if n := ns.state.remembered.get(node.Name); n != nil && n.ID == node.ID && len(n.MgmtIPAddresses) > 0 {
		return n.MgmtIPAddresses
	}
	return node.MgmtIPAddresses
}

// ownRecord returns the record that the database should have for this node.
func (ns *NodeSync) ownRecord() *vppnode.VppNode {
	s := ns.state
	record := s.claim.record(s.identity.self())
	record.IpAddresses = addressTexts(slices.Concat(s.published[contivconf.IPv4], s.published[contivconf.IPv6]))
	record.MgmtAddresses = s.publishedMgmt
	record.AgentVersion = s.version
	return record
}

// publish passes the node's record to the keeper.
func (ns *NodeSync) publish() {
	s := ns.state
	if s.loss == nil {
		s.keeper.setDesired(ns.ownRecord(), s.sources.staleIDs(s.identity.self(), s.claim.ID))
	}
}
