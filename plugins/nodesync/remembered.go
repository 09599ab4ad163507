package nodesync

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// remembered holds the contents of the nodes' records as the event loop has them, for requests that cannot query the database.
type remembered struct {
	mu    sync.Mutex
	nodes map[string]*Node // guarded by mu; the nodes themselves are immutable
}

// replace stores all nodes with the contents of their records. Nodes whose records the database has lost keep their last contents.
func (r *remembered) replace(nodes Nodes, s *sources) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.nodes
	r.nodes = make(Nodes, len(nodes))
	for name, n := range nodes {
		if record := s.published(name); record != nil {
			n = record
		} else if before[name] != nil {
			n = before[name]
		}
		r.nodes[name] = n
	}
}

// get returns the current or last contents of a node's record; nil if there is none.
func (r *remembered) get(name string) *Node {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nodes[name]
}

// set stores one node; nil means that no node has that name.
func (r *remembered) set(name string, node *Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nodes == nil {
		r.nodes = Nodes{}
	}
	if r.nodes[name] = node; node == nil {
		delete(r.nodes, name)
	}
}

// report is the response to GET /contiv/v1/nodes while the database does not respond.
func (r *remembered) report(cause error) (out nodesReport, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out = nodesReport{
		Nodes: []NodeReport{}, Broken: map[string]string{},
		Stale: fmt.Sprintf("etcd does not respond; the nodes are those of the last update (%v)", cause),
	}
	for _, n := range r.nodes {
		report := NodeReport{ID: n.ID, Name: n.Name, State: "claimed", VPPIPs: addressTexts(n.VppIPAddresses), MgmtIPs: []string{}}
		for _, ip := range n.MgmtIPAddresses {
			report.MgmtIPs = append(report.MgmtIPs, ip.String())
		}
		out.Nodes = append(out.Nodes, report)
	}
	slices.SortFunc(out.Nodes, func(a, b NodeReport) int { return cmp.Compare(a.ID, b.ID) })
	return out, len(out.Nodes) > 0
}
