package validate

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"contiv.dev/vswitch/plugins/nodesync"
)

// identify finds the entry of each node in its own list.
func (s *state) identify() {
	for _, n := range s.sorted() {
		for i := range n.Nodes {
			if r := &n.Nodes[i]; r.Name == n.Node && r.State == "claimed" {
				n.report, n.ips, n.mgmt = r, addrs(r.VPPIPs), addrs(r.MgmtIPs)
			}
		}
		if n.report == nil {
			s.find(n.Node, "node", n.Node, "has no ID in its own list of nodes: it cannot reach etcd, or its ID was released")
		}
	}
}

// nodes checks that all nodes report the same nodes, that all are ready, and that each has its own ID and addresses.
func (s *state) nodes() {
	owners := map[netip.Addr]string{}
	ids := map[uint32]string{}
	for _, n := range s.sorted() {
		if n.Stale != "" {
			s.find(n.Node, "etcd", "etcd", n.Stale)
		}
		for _, p := range n.Info.Problems {
			s.find(n.Node, "node", n.Node, "is not ready: "+p)
		}
		s.room(n)
		for _, w := range n.Info.Warnings {
			s.find(n.Node, "path", w.Object, w.Text)
		}
		if n.Kernel != nil {
			for _, family := range n.Kernel.NotForwarding {
				if family == "IPv6" && !n.podsHaveIPv6() {
					continue
				}
				s.find(n.Node, "node", n.Node, fmt.Sprintf("does not forward %s packets: forwarding in the kernel was set to 0; "+
					"set it to 1 again (sysctl), or restart the agent", family))
			}
		}
		if n.report == nil {
			continue
		}
		for _, p := range n.report.Problems {
			s.find(n.Node, "node", n.Node, p)
		}
		if other, taken := ids[n.report.ID]; taken {
			s.find(n.Node, "node", n.Node, fmt.Sprintf("has the ID %d, which %s has too: their pods get the same addresses",
				n.report.ID, other))
		}
		ids[n.report.ID] = n.Node
		for _, ip := range n.ips {
			if other, taken := owners[ip]; taken {
				s.find(n.Node, "node", n.Node, fmt.Sprintf("has the address %s, which %s has too", ip, other))
			}
			owners[ip] = n.Node
		}
		if len(n.ips) == 0 {
			s.find(n.Node, "node", n.Node, "has no known address in the network of nodes: others cannot reach its pods")
		}
	}
	s.sameView()
}

// fullAt is the percentage from which a subnet counts as nearly full.
const fullAt = 90

// room checks that a node has addresses left.
func (s *state) room(n *node) {
	for _, sub := range n.Allocations.Subnets {
		if total := sub.Used + sub.Free; total > 0 && sub.Used*100 >= fullAt*total {
			s.find(n.Node, "address", sub.Subnet.String(), fmt.Sprintf("%d of %d pod addresses are used: delete pods, or move them to "+
				"other nodes", sub.Used, total))
		}
	}
}

// podsHaveIPv6 reports whether the node's pods may have IPv6 addresses.
func (n *View) podsHaveIPv6() bool {
	for _, sub := range n.Allocations.Subnets {
		if sub.Subnet.Addr().Is6() {
			return true
		}
	}
	return false
}

// sameView checks that all nodes report the same about each node.
func (s *state) sameView() {
	said := map[string]map[string][]string{} // node → statement → nodes that report it
	list := s.sorted()
	for _, n := range list {
		for i := range n.Nodes {
			r := &n.Nodes[i]
			if r.State != "claimed" {
				continue
			}
			what := summary(r)
			if said[r.Name] == nil {
				said[r.Name] = map[string][]string{}
			}
			said[r.Name][what] = append(said[r.Name][what], n.Node)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		versions := said[name]
		seen := 0
		for _, by := range versions {
			seen += len(by)
		}
		if len(versions) == 1 && seen == len(list) {
			continue
		}
		var parts []string
		for _, what := range slices.Sorted(maps.Keys(versions)) {
			parts = append(parts, fmt.Sprintf("%s, says %s", what, strings.Join(versions[what], " and ")))
		}
		if seen < len(list) {
			parts = append(parts, fmt.Sprintf("%d of %d nodes do not have it", len(list)-seen, len(list)))
		}
		s.find(name, "node", name, "has different data on other nodes: "+strings.Join(parts, "; "))
	}
}

func summary(r *nodesync.NodeReport) string {
	return fmt.Sprintf("ID %d at %s", r.ID, strings.Join(slices.Sorted(slices.Values(r.VPPIPs)), " "))
}
