package nodesync

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

// nodeOf returns the node that a record describes.
func nodeOf(id uint32, r *vppnode.VppNode) *Node {
	return &Node{ID: id, Name: r.GetName(), VppIPAddresses: addressesOf(r), MgmtIPAddresses: mgmtAddressesOf(r)}
}

// addressesOf parses the addresses of a record; invalid ones are left out, see badAddresses.
func addressesOf(record *vppnode.VppNode) contivconf.IPsWithNetworks {
	var out contivconf.IPsWithNetworks
	for _, text := range vppTexts(record) {
		if p, err := netip.ParsePrefix(strings.TrimSpace(text)); err == nil {
			out = append(out, &contivconf.IPWithNetwork{
				Version: contivconf.VersionOf(p.Addr()), Address: p.Addr(), Network: p.Masked(),
			})
		}
	}
	return sorted(out)
}

func vppTexts(record *vppnode.VppNode) []string {
	if texts := record.GetIpAddresses(); len(texts) > 0 {
		return texts
	}
	if text := record.GetIpAddress(); text != "" {
		return []string{text}
	}
	return nil
}

func mgmtAddressesOf(record *vppnode.VppNode) []net.IP {
	var out []net.IP
	for _, text := range record.GetMgmtAddresses() {
		if a, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil {
			out = append(out, net.IP(a.AsSlice()))
		}
	}
	return out
}

// badAddresses returns the addresses of a record that cannot be parsed.
func badAddresses(record *vppnode.VppNode) []string {
	var bad []string
	for _, text := range vppTexts(record) {
		if _, err := netip.ParsePrefix(strings.TrimSpace(text)); err != nil {
			bad = append(bad, text)
		}
	}
	for _, text := range record.GetMgmtAddresses() {
		if _, err := netip.ParseAddr(strings.TrimSpace(text)); err != nil {
			bad = append(bad, text)
		}
	}
	return bad
}

// sorted orders addresses: IPv4 before IPv6. The order within a family is that of the node: its first address is the one to use.
func sorted(list contivconf.IPsWithNetworks) contivconf.IPsWithNetworks {
	slices.SortStableFunc(list, func(a, b *contivconf.IPWithNetwork) int { return int(a.Version) - int(b.Version) })
	return list
}

// addressTexts returns addresses in the stored format: with the prefix length of their network.
func addressTexts(list contivconf.IPsWithNetworks) []string {
	out := make([]string, 0, len(list))
	for _, ip := range list {
		out = append(out, netip.PrefixFrom(ip.Address, ip.Network.Bits()).String())
	}
	return out
}

// sameNode reports whether the published data of two nodes are equal, including the prefix lengths of addresses.
func sameNode(a, b *Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ID == b.ID && a.Name == b.Name &&
		slices.EqualFunc(a.VppIPAddresses, b.VppIPAddresses, func(x, y *contivconf.IPWithNetwork) bool { return *x == *y }) &&
		sameMgmtIPs(a, b)
}

func sameMgmtIPs(a, b *Node) bool {
	return a != nil && b != nil && slices.EqualFunc(a.MgmtIPAddresses, b.MgmtIPAddresses, net.IP.Equal)
}

// copyNodes returns a deep copy, which the caller may change.
func copyNodes(nodes Nodes) Nodes {
	out := make(Nodes, len(nodes))
	structs := make([]Node, 0, len(nodes)) // one allocation for all nodes
	for name, n := range nodes {
		structs = append(structs, *n)
		c := &structs[len(structs)-1]
		c.VppIPAddresses = copyAddresses(n.VppIPAddresses)
		c.MgmtIPAddresses = slices.Clone(n.MgmtIPAddresses)
		for i, ip := range n.MgmtIPAddresses {
			c.MgmtIPAddresses[i] = slices.Clone(ip)
		}
		out[name] = c
	}
	return out
}

func copyAddresses(list contivconf.IPsWithNetworks) contivconf.IPsWithNetworks {
	if list == nil {
		return nil
	}
	values := make([]contivconf.IPWithNetwork, len(list))
	out := make(contivconf.IPsWithNetworks, len(list))
	for i, ip := range list {
		values[i] = *ip
		out[i] = &values[i]
	}
	return out
}

// checkAddresses rejects addresses that could not be read back.
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
