package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/state"
	"contiv.dev/vswitch/plugins/pathwatch"
	"contiv.dev/vswitch/plugins/statscollector"
)

// Health is the state of a node or a tunnel.
type Health string

// The values of Health.
const (
	Good    Health = "good"
	Warning Health = "warning" // it works, but has a fault
	Bad     Health = "bad"
	Unknown Health = "unknown"
)

// Overview is the state of the cluster.
type Overview struct {
	NextMs   int          `json:"nextMs"`
	From     string       `json:"from"` // the node that was queried first
	Lines    []state.Line `json:"lines"`
	Problems []Problem    `json:"problems"`
	Nodes    []Node       `json:"nodes"`
	// Tunnels holds the paths between two nodes; in a large cluster only those that are bad, and Hidden counts the others.
	Tunnels []Tunnel `json:"tunnels"`
	Hidden  int      `json:"hidden"`
}

// Problem is a fault and its location.
type Problem struct {
	Node string `json:"node,omitempty"` // empty: of the cluster
	state.Problem
}

// Node is a node of the cluster.
type Node struct {
	ID        uint32          `json:"id"`
	Name      string          `json:"name"`
	Health    Health          `json:"health"`
	Addresses []string        `json:"addresses"`
	Mgmt      []string        `json:"mgmt"`
	Dataplane string          `json:"dataplane,omitempty"`
	VPP       string          `json:"vpp,omitempty"`
	Transport string          `json:"transport,omitempty"`
	Version   string          `json:"version,omitempty"`
	Started   string          `json:"started,omitempty"`
	Pods      int             `json:"pods"`
	Subnets   []state.Usage   `json:"subnets"`
	Values    map[string]int  `json:"values"`
	Problems  []state.Problem `json:"problems"`
	Traffic   *state.Rate     `json:"traffic,omitempty"` // of its pods; nil: not known
}

// Tunnel is the path between two nodes.
type Tunnel struct {
	A         string   `json:"a"`
	B         string   `json:"b"`
	Health    Health   `json:"health"`
	Transport string   `json:"transport,omitempty"`
	RTTMs     float64  `json:"rttMs,omitempty"` // the longest of the last round trips
	Causes    []string `json:"causes"`
}

// nodeAnswer is what the overview needs of each node.
type nodeAnswer struct {
	state.Node
	path    *pathwatch.Report // nil: the agent does not watch the data path
	traffic *statscollector.TrafficReport
}

func queryNode(ctx context.Context, a *client.Agent) (n nodeAnswer, err error) {
	if n.Node, err = state.QueryNode(ctx, a); err != nil {
		return n, err
	}
	var path pathwatch.Report
	if err := a.Get(ctx, pathwatch.Path, &path); err == nil {
		n.path = &path
	} else if !absent(err) {
		return n, err
	}
	var traffic statscollector.TrafficReport
	if err := a.Get(ctx, statscollector.TrafficPath, &traffic); err == nil {
		n.traffic = &traffic
	}
	return n, nil
}

// Overview returns the nodes, and the paths between them.
func (f *Fleet) Overview(ctx context.Context) (Overview, error) {
	o, next, err := f.overviews.get(ctx, func(ctx context.Context) (Overview, error) {
		c, err := f.connect(ctx, true)
		if err != nil {
			return Overview{}, err
		}
		answers := client.Each(ctx, c, nil, queryNode)
		first, _ := c.First()
		var services []state.Service
		err = first.Get(ctx, state.ServicesPath, &services)
		return f.topology(c.Nodes(), answers, first.Name, state.Served(services, first.Name, err)), nil
	})
	o.NextMs = next
	return o, err
}

// topology makes the overview from the answers of the nodes.
func (f *Fleet) topology(nodes client.Nodes, answers []client.Answer[nodeAnswer], from, services string) Overview {
	plain := make([]client.Answer[state.Node], len(answers))
	byName := map[string]*nodeAnswer{}
	for i := range answers {
		a := &answers[i]
		if a.Err != nil {
			a.Value.Error = state.NoAnswer(a.Err)
		}
		plain[i] = client.Answer[state.Node]{Node: a.Node, Value: a.Value.Node, Err: a.Err}
		byName[a.Node] = &a.Value
		if a.Value.traffic != nil {
			f.rates.Add(a.Node, a.Value.traffic)
		}
	}
	o := Overview{From: from, Lines: state.Summarize(nodes, plain, services).Lines, Problems: []Problem{}, Nodes: []Node{}}
	if nodes.Stale != "" {
		o.Problems = append(o.Problems, Problem{Problem: state.Problem{Text: "etcd: " + nodes.Stale,
			Fix: "contiv-netctl nodes; check that etcd runs"}})
	}
	for _, n := range nodes.Nodes {
		if n.State != "claimed" || byName[n.Name] == nil {
			continue
		}
		node := nodeOf(n.Name, byName[n.Name])
		node.ID, node.Addresses, node.Mgmt = n.ID, n.VPPIPs, n.MgmtIPs
		if byName[n.Name].traffic != nil {
			node.Traffic = f.rates.Node(n.Name)
		}
		o.Nodes = append(o.Nodes, node)
		for _, p := range node.Problems {
			o.Problems = append(o.Problems, Problem{n.Name, p})
		}
	}
	slices.SortStableFunc(o.Problems, func(a, b Problem) int { return cmp.Compare(rank(a.Unready), rank(b.Unready)) })
	o.Tunnels, o.Hidden = tunnels(o.Nodes, byName)
	return o
}

func rank(unready bool) int {
	if unready {
		return 0
	}
	return 1
}

func nodeOf(name string, a *nodeAnswer) Node {
	n := Node{
		Name: name, Health: Good, Dataplane: a.Info.Dataplane, Transport: a.Info.Transport, Version: a.Info.Version, Started: a.Info.Started,
		Pods: a.Pods, Subnets: a.IPAM.Subnets, Values: a.Values, Problems: a.Problems(name),
	}
	if a.Info.VPP != nil {
		n.VPP = a.Info.VPP.Version
	}
	for _, p := range n.Problems {
		if n.Health != Bad {
			n.Health = Warning
		}
		if p.Unready {
			n.Health = Bad
		}
	}
	if n.Problems == nil {
		n.Problems = []state.Problem{}
	}
	return n
}

// maxDrawn is the largest number of nodes for which all tunnels are drawn.
const maxDrawn = 16

// tunnels returns the paths between all pairs of nodes, as both ends report them.
func tunnels(nodes []Node, answers map[string]*nodeAnswer) (out []Tunnel, hidden int) {
	out = []Tunnel{}
	all := len(nodes) <= maxDrawn
	for i := range nodes {
		for j := i + 1; j < len(nodes); j++ {
			a, b := &nodes[i], &nodes[j]
			t := tunnel(a, b, answers[a.Name], answers[b.Name])
			if all || t.Health == Bad {
				out = append(out, t)
			} else {
				hidden++
			}
		}
	}
	return out, hidden
}

func tunnel(a, b *Node, inA, inB *nodeAnswer) Tunnel {
	t := Tunnel{A: a.Name, B: b.Name, Health: Unknown, Transport: cmp.Or(a.Transport, b.Transport), Causes: []string{}}
	t.see(a.Name, b.Name, inA)
	t.see(b.Name, a.Name, inB)
	if t.Health == Bad { // the fault at one of the ends explains it
		for _, end := range []*Node{a, b} {
			for _, p := range end.Problems {
				if p.Unready {
					t.Causes = append(t.Causes, end.Name+": "+p.Text)
				}
			}
		}
	}
	if t.Health == Unknown {
		for _, end := range []*Node{a, b} {
			if end.Health == Bad {
				t.Causes = append(t.Causes, end.Name+": "+end.Problems[0].Text)
			}
		}
		if len(t.Causes) == 0 {
			t.Causes = []string{"neither node has probed the other one yet"}
		}
	}
	return t
}

// see adds what one end reports about the other.
func (t *Tunnel) see(from, to string, end *nodeAnswer) {
	if end == nil || end.path == nil {
		return
	}
	var silent []string
	for _, p := range end.path.Paths {
		if p.Node != to {
			continue
		}
		switch {
		case p.State == pathwatch.PeerSilent:
			silent = append(silent, p.Address.String())
		case t.Health == Unknown:
			t.Health = Good
		}
		t.RTTMs = max(t.RTTMs, p.RTTMs)
	}
	if len(silent) > 0 {
		t.Health, t.RTTMs = Bad, 0
		t.Causes = append(t.Causes, fmt.Sprintf("%s gets no reply from %s (%s) through the overlay%s", from, to, strings.Join(silent, ", "),
			since(end.path, to)))
	}
}

// since returns from when on a peer has been silent, as far as that is known.
func since(r *pathwatch.Report, peer string) string {
	for _, c := range r.Causes {
		if c.Kind == pathwatch.PeerUnreachable && c.Object == peer {
			return " since " + c.Since.Local().Format(time.TimeOnly)
		}
	}
	return ""
}
