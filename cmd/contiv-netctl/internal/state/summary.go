package state

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/internal/version"
)

// Node is what the summary needs of each node.
type Node struct {
	Info   diag.AgentInfo `json:"agent"`
	IPAM   IPAM           `json:"ipam"`
	Pods   int            `json:"pods"`
	Values map[string]int `json:"values"` // by state
	Error  string         `json:"error,omitempty"`
}

// Line is a line of the screen: its subject, and whether that is as it should be.
type Line struct {
	OK    bool   `json:"ok"`
	About string `json:"about"`
	Text  string `json:"text"`
}

// Summary is the state of the cluster on one screen.
type Summary struct {
	Lines []Line `json:"lines"`
	// Problems lists the faults, each with its node.
	Problems []string `json:"problems"`
	// NotAsked lists nodes that can be queried only from themselves (client.LocalOnly).
	NotAsked []string        `json:"notAsked,omitempty"`
	Nodes    map[string]Node `json:"nodes"`
}

// QueryNode queries an agent for what the summary needs.
func QueryNode(ctx context.Context, a *client.Agent) (s Node, err error) {
	if err := a.Get(ctx, diag.AgentPath, &s.Info); err != nil {
		return s, err
	}
	var pods []Pod
	var values struct{ Counts map[string]int }
	for _, query := range []func() error{
		func() (err error) { s.IPAM, err = QueryIPAM(ctx, a); return err },
		func() error { return a.Get(ctx, PodsPath, &pods) },
		func() error { return a.Get(ctx, "/scheduler/status?state=FAILED", &values) },
	} {
		// An agent that has just started may lack some of these, and lists that in its problems.
		if err := query(); err != nil && len(s.Info.Problems) == 0 {
			return s, err
		}
	}
	s.Pods, s.Values = len(pods), values.Counts
	return s, nil
}

// Served describes how many services with how many backends a node serves.
func Served(rows []Service, node string, err error) string {
	if err != nil {
		return "unknown: " + err.Error()
	}
	backends := 0
	for _, s := range rows {
		for _, p := range s.Ports {
			backends += len(p.Backends)
		}
	}
	return fmt.Sprintf("%s with %s, on %s", Count(len(rows), "service"), Count(backends, "backend"), node)
}

// Summarize makes the screen from the answers of the nodes; services is the text about services.
func Summarize(nodes client.Nodes, answers []client.Answer[Node], services string) Summary {
	rep := Summary{Problems: []string{}, Nodes: map[string]Node{}}
	sum := totals{dataplanes: map[string]int{}, transports: map[string]bool{}, versions: map[string][]string{}, values: map[string]int{}}
	for _, a := range answers {
		if a.Err != nil {
			a.Value.Error = NoAnswer(a.Err)
		}
		rep.Nodes[a.Node] = a.Value
		if client.IsLocalOnly(a.Err) {
			rep.NotAsked = append(rep.NotAsked, a.Node)
			continue
		}
		sum.add(a.Node, &a.Value)
		for _, p := range a.Value.Problems(a.Node) {
			rep.Problems = append(rep.Problems, a.Node+": "+p.String())
		}
	}
	etcd := Line{true, "etcd", "answers"}
	if nodes.Stale != "" {
		etcd = Line{false, "etcd", nodes.Stale}
		rep.Problems = append(rep.Problems, "etcd: "+nodes.Stale)
	}
	versions := slices.Sorted(maps.Keys(sum.versions))
	rep.Lines = []Line{
		sum.nodes(len(answers)-len(rep.NotAsked), len(rep.NotAsked)),
		{true, "dataplane", sum.dataplane()},
		{len(versions) < 2, "version", strings.Join(versions, ", ")},
		etcd,
		{sum.paths == 0, "data path", either(sum.paths == 0, "packets get through", Count(sum.paths, "problem"))},
		{sum.full == "", "addresses", sum.addresses()},
		{sum.values["FAILED"] == 0, "values", fmt.Sprintf("%d configured, %d pending, %d failed", sum.values["CONFIGURED"], sum.values["PENDING"],
			sum.values["FAILED"])},
		{true, "pods", fmt.Sprint(sum.pods, " connected")},
		{true, "services", services},
	}
	return rep
}

// Problem is a fault on a node.
type Problem struct {
	// Unready: the node cannot serve pods, or it is unknown whether it can.
	Unready bool   `json:"unready"`
	Text    string `json:"text"`
	// Fix is what to do next; empty if Text contains it.
	Fix string `json:"fix,omitempty"`
}

// String returns the problem on one line.
func (p Problem) String() string {
	if p.Fix == "" {
		return p.Text
	}
	return p.Text + ": " + p.Fix
}

// fewLeft is the percentage from which a subnet counts as nearly full, as in the command check.
const fewLeft = 90

// Problems returns the faults of the node, which has this name.
func (s *Node) Problems(node string) (out []Problem) {
	if s.Error != "" {
		return []Problem{{Unready: true, Text: s.Error}}
	}
	for _, p := range s.Info.Problems {
		out = append(out, Problem{Unready: true, Text: "not ready: " + p})
	}
	for _, w := range s.Info.Warnings {
		out = append(out, Problem{Text: w.Object + ": " + w.Text})
	}
	for _, sub := range s.IPAM.Subnets {
		if sub.full() {
			out = append(out, Problem{Text: fmt.Sprintf("%d of %d addresses of %s are used", sub.Used, sub.Used+sub.Free, sub.Subnet)})
		}
	}
	if k := s.Values["FAILED"]; k > 0 {
		out = append(out, Problem{Text: Count(k, "value") + " failed", Fix: "contiv-netctl dump --node " + node + " --state FAILED"})
	}
	return out
}

func (u *Usage) full() bool {
	total := u.Used + u.Free
	return total > 0 && u.Used*100 >= fewLeft*total
}

// totals holds sums over nodes.
type totals struct {
	ready, pods, paths, used, free int
	full                           string // a subnet with few addresses left
	dataplanes                     map[string]int
	transports                     map[string]bool
	versions                       map[string][]string
	values                         map[string]int
}

func (t *totals) add(node string, s *Node) {
	if s.Error != "" {
		return
	}
	if len(s.Info.Problems) == 0 {
		t.ready++
	}
	t.paths += len(s.Info.Warnings)
	t.pods += s.Pods
	t.dataplanes[s.Info.Dataplane]++
	t.transports[s.Info.Transport] = true
	v := version.Info{Version: s.Info.Version, Commit: s.Info.Commit}.String()
	t.versions[v] = append(t.versions[v], node)
	for _, sub := range s.IPAM.Subnets {
		t.used, t.free = t.used+sub.Used, t.free+sub.Free
		if sub.full() {
			t.full = sub.Subnet
		}
	}
	for state, k := range s.Values {
		t.values[state] += k
	}
}

func (t *totals) nodes(queried, local int) Line {
	text := fmt.Sprintf("%d of %d ready", t.ready, queried)
	if local > 0 {
		text += fmt.Sprintf(", %d not queried", local)
	}
	return Line{t.ready == queried, "nodes", text}
}

func (t *totals) dataplane() string {
	var parts []string
	for _, d := range slices.Sorted(maps.Keys(t.dataplanes)) {
		parts = append(parts, fmt.Sprintf("%s on %s", d, Count(t.dataplanes[d], "node")))
	}
	return strings.Join(parts, ", ") + "; transport " + strings.Join(slices.Sorted(maps.Keys(t.transports)), ", ")
}

func (t *totals) addresses() string {
	if t.used+t.free == 0 {
		return "none"
	}
	return fmt.Sprintf("%d of %d used (%d %%)", t.used, t.used+t.free, 100*t.used/(t.used+t.free))
}

func either(ok bool, yes, no string) string {
	if ok {
		return yes
	}
	return no
}

// Count returns a number of things as text: "1 node", "2 nodes".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
