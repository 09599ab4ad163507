package nodesync

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// remembered is what the records of nodes say as far as the event loop has it, for requests that cannot ask the database.
type remembered struct {
	mu    sync.Mutex
	nodes map[string]*Node // guarded by mu; the nodes themselves are immutable
}

// replace notes all nodes as their records have them. Those that the database has forgotten stay as they were.
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

// get returns what the record of a node says, or said last; nil: it has none.
func (r *remembered) get(name string) *Node {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nodes[name]
}

// set notes one node; nil: no node has that name.
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

// report is the answer to GET /contiv/v1/nodes while the database does not give one.
func (r *remembered) report(cause error) (out nodesReport, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out = nodesReport{
		Nodes: []NodeReport{}, Broken: map[string]string{},
		Stale: fmt.Sprintf("etcd does not answer; nodes are as this agent last knew them (%v)", cause),
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
