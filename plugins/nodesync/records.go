package nodesync

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"contiv.dev/vswitch/plugins/contivconf"
	controller "contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

const (
	// ksrPrefix is the root of what nodes share.
	ksrPrefix = "/vnf-agent/contiv-ksr/"
	// allocatedIDs is the resource of VppNode records, and the beginning of their keys below ksrPrefix.
	allocatedIDs = "allocatedIDs"
)

// recordKey is the key of the record of a node ID below ksrPrefix.
func recordKey(id uint32) string { return allocatedIDs + "/" + strconv.FormatUint(uint64(id), 10) }

// sources is what is known about nodes, by where it comes from. A Node is put together from all of them.
type sources struct {
	// records are the VppNode records by node ID.
	records map[uint32]*vppnode.VppNode
	// mgmtIPs will be filled from the resource "node" of Kubernetes; nothing does so yet.
	mgmtIPs map[string][]net.IP
}

func newSources() sources {
	return sources{records: map[uint32]*vppnode.VppNode{}, mgmtIPs: map[string][]net.IP{}}
}

// load takes the records of a snapshot. Values of another type are skipped.
func (s *sources) load(data controller.KubeStateData) {
	for key, value := range data[allocatedIDs] {
		if record, ok := value.(*vppnode.VppNode); ok {
			if id, ok := idOf(key, record); ok {
				s.records[id] = record
			}
		}
	}
}

// idOf is the ID that a record is for. The key decides: it is what claims the ID.
func idOf(key string, record *vppnode.VppNode) (uint32, bool) {
	id, err := strconv.ParseUint(path.Base(key), 10, 32)
	if err != nil {
		return record.GetId(), record.GetId() != 0
	}
	return uint32(id), id != 0
}

// ownID finds the record of the node called name.
func (s *sources) ownID(name string) (uint32, bool) {
	id, ok := uint32(0), false
	for other, record := range s.records {
		if record.GetName() == name && (!ok || other < id) {
			id, ok = other, true
		}
	}
	return id, ok
}

// node puts together what is known about the node called name; nil when it has no record. If a node has left an older
// record behind, the lower ID counts, as it does when the node itself looks for its ID.
func (s *sources) node(name string) *Node {
	id, ok := s.ownID(name)
	if !ok {
		return nil
	}
	return s.combine(id, name)
}

func (s *sources) combine(id uint32, name string) *Node {
	return &Node{
		ID: id, Name: name, VppIPAddresses: addressesOf(s.records[id]), MgmtIPAddresses: s.mgmtIPs[name],
	}
}

// nodes puts together what is known about all nodes.
func (s *sources) nodes() Nodes {
	out := make(Nodes, len(s.records))
	for _, id := range slices.Sorted(maps.Keys(s.records)) {
		if name := s.records[id].GetName(); out[name] == nil {
			out[name] = s.combine(id, name)
		}
	}
	return out
}

// freeID is the lowest ID that has no record and is not in tried.
func (s *sources) freeID(tried map[uint32]bool) uint32 {
	id := uint32(1)
	for s.records[id] != nil || tried[id] {
		id++
	}
	return id
}

// addressesOf reads the addresses of a record; those that cannot be read are left out.
func addressesOf(record *vppnode.VppNode) contivconf.IPsWithNetworks {
	texts := record.GetIpAddresses()
	if len(texts) == 0 && record.GetIpAddress() != "" {
		texts = []string{record.GetIpAddress()}
	}
	var out contivconf.IPsWithNetworks
	for _, text := range texts {
		if p, err := netip.ParsePrefix(strings.TrimSpace(text)); err == nil {
			out = append(out, &contivconf.IPWithNetwork{
				Version: contivconf.VersionOf(p.Addr()), Address: p.Addr(), Network: p.Masked(),
			})
		}
	}
	return sorted(out)
}

// sorted orders addresses: IPv4 before IPv6, then by value.
func sorted(list contivconf.IPsWithNetworks) contivconf.IPsWithNetworks {
	slices.SortFunc(list, func(a, b *contivconf.IPWithNetwork) int {
		if a.Version != b.Version {
			return int(a.Version) - int(b.Version)
		}
		return a.Address.Compare(b.Address)
	})
	return list
}

// addressTexts writes addresses as they are stored: with the prefix length of their network.
func addressTexts(list contivconf.IPsWithNetworks) []string {
	out := make([]string, 0, len(list))
	for _, ip := range list {
		out = append(out, netip.PrefixFrom(ip.Address, ip.Network.Bits()).String())
	}
	return out
}

// sameNode compares what others need to know of a node. The prefix lengths of addresses count.
func sameNode(a, b *Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ID == b.ID &&
		slices.Equal(addressTexts(a.VppIPAddresses), addressTexts(b.VppIPAddresses)) &&
		slices.EqualFunc(a.MgmtIPAddresses, b.MgmtIPAddresses, net.IP.Equal)
}

// checkAddresses refuses addresses that could not be read back.
func checkAddresses(list contivconf.IPsWithNetworks, version contivconf.IPVersion) error {
	for _, ip := range list {
		switch {
		case ip == nil || !ip.Address.IsValid() || !ip.Network.IsValid():
			return fmt.Errorf("node address %+v has no address or no network", ip)
		case contivconf.VersionOf(ip.Address) != version:
			return fmt.Errorf("node address %s is published as %s", ip.Address, version)
		}
	}
	return nil
}
