package vppsvc

import (
	"errors"
	"maps"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/output"
)

// This file has the events of nodes. The cost of those of other nodes depends on the addresses and backends that they change, and not on the
// number of services.

// UpdateLocalNodeIPs implements LocalNodeIPsRenderer. It renders all services with node ports and all with source ranges again, because both
// depend on the addresses of this node, which change rarely.
func (r *Renderer) UpdateLocalNodeIPs(local *renderer.IPAddresses, npServices []*renderer.ContivService) error {
	if r.families == 0 {
		return nil
	}
	r.local = local
	before := r.nodePorts
	r.nodePorts = r.nodePortAddresses(local)
	moved := renderer.FromAddrs(before...).Differing(renderer.FromAddrs(r.nodePorts...))
	err := r.reclose(moved, func(addr netip.Addr) bool { return r.nodeIPs.Contains(addr) || slices.Contains(before, addr) })
	ids := maps.Clone(r.limited)
	for _, s := range npServices {
		delete(ids, s.ID)
	}
	return errors.Join(err, r.change(append(r.valuesOf(slices.Collect(maps.Keys(ids))), npServices...)))
}

// UpdateNodePortServices implements ServiceRendererAPI: node ports are served at this node's addresses only, but the ports of an
// external address that is a node's are not closed.
func (r *Renderer) UpdateNodePortServices(nodeIPs *renderer.IPAddresses, _ []*renderer.ContivService) error {
	if r.families == 0 {
		return nil
	}
	before := r.nodeIPs
	r.nodeIPs = nodeIPs
	return r.reclose(before.Differing(nodeIPs), func(addr netip.Addr) bool {
		return before.Contains(addr) || slices.Contains(r.nodePorts, addr)
	})
}

// reclose opens or closes those of the addresses that have become, or are no longer, a node's.
func (r *Renderer) reclose(addrs []netip.Addr, wasNode func(netip.Addr) bool) error {
	r.out = output.Update(r.Txn)
	for _, addr := range addrs {
		if was, is := wasNode(addr), r.isNode(addr); was != is && r.addresses[addr] > 0 {
			r.putClosed(addr, !is)
		}
	}
	return r.out.Err()
}

// UpdateNodes implements NodesRenderer: backends at the node may be reached another way.
func (r *Renderer) UpdateNodes(addrs []netip.Addr) error {
	return r.change(r.valuesOf(r.outside.At(addrs)))
}

func (r *Renderer) valuesOf(ids []renderer.ServiceID) []*renderer.ContivService {
	out := make([]*renderer.ContivService, 0, len(ids))
	for _, id := range ids {
		out = append(out, r.services[id].value)
	}
	return out
}
