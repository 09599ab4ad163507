package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/internal/netctl/client"
	"contiv.dev/vswitch/internal/netctl/table"
	"contiv.dev/vswitch/internal/version"
)

// nodeStatus is what status asks of each node.
type nodeStatus struct {
	Info   diag.AgentInfo `json:"agent"`
	IPAM   ipamRow        `json:"ipam"`
	Pods   int            `json:"pods"`
	Values map[string]int `json:"values"` // by state
	Error  string         `json:"error,omitempty"`
}

// statusLine is a line of the screen.
type statusLine struct {
	OK    bool   `json:"ok"`
	About string `json:"about"`
	Text  string `json:"text"`
}

// statusReport is the answer of the command status.
type statusReport struct {
	Lines []statusLine `json:"lines"`
	// Problems are what is wrong, each with its node.
	Problems []string              `json:"problems"`
	Nodes    map[string]nodeStatus `json:"nodes"`
}

func (n *netctl) status() *cobra.Command {
	return n.watchable(&cobra.Command{
		Use: "status", Short: "Show the state of the cluster on one screen", Args: cobra.NoArgs,
		Long: "status shows nodes, data paths, etcd, addresses and values on one screen, with the cause of each problem. It is quick; " +
			"check compares more.\nThe exit status is 1 when there is a problem.",
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, _ []string) error {
			answers := client.Each(ctx, c, nil, askStatus)
			rep := summarize(c.Nodes(), answers, servedBy(ctx, c))
			if n.format.Structured() {
				if err := table.Value(cmd.OutOrStdout(), n.format, rep); err != nil {
					return err
				}
			} else {
				rep.print(cmd.OutOrStdout(), n.colors(n.screen(cmd)))
			}
			if len(rep.Problems) > 0 {
				return errFound
			}
			return nil
		}),
	})
}

func askStatus(ctx context.Context, a *client.Agent) (s nodeStatus, err error) {
	if err := a.Get(ctx, diag.AgentPath, &s.Info); err != nil {
		return s, err
	}
	var pods []podRow
	var values struct{ Counts map[string]int }
	for _, ask := range []func() error{
		func() (err error) { s.IPAM, err = askIPAM(ctx, a); return err },
		func() error { return a.Get(ctx, podsPath, &pods) },
		func() error { return a.Get(ctx, "/scheduler/status?state=FAILED", &values) },
	} {
		// An agent that has just started may lack some of it, and says so in its problems.
		if err := ask(); err != nil && len(s.Info.Problems) == 0 {
			return s, err
		}
	}
	s.Pods, s.Values = len(pods), values.Counts
	return s, nil
}

// servedBy is how many services with how many backends the first node serves.
func servedBy(ctx context.Context, c *client.Cluster) string {
	first, _ := c.First()
	var rows []serviceRow
	if err := first.Get(ctx, servicesPath, &rows); err != nil {
		return "unknown: " + err.Error()
	}
	backends := 0
	for _, s := range rows {
		for _, p := range s.Ports {
			backends += len(p.Backends)
		}
	}
	return fmt.Sprintf("%s with %s, on %s", count(len(rows), "service"), count(backends, "backend"), first.Name)
}

// summarize makes the screen of what the nodes have answered.
func summarize(nodes client.Nodes, answers []client.Answer[nodeStatus], services string) statusReport {
	rep := statusReport{Problems: []string{}, Nodes: map[string]nodeStatus{}}
	sum := totals{dataplanes: map[string]int{}, transports: map[string]bool{}, versions: map[string][]string{}, values: map[string]int{}}
	for _, a := range answers {
		if a.Err != nil {
			a.Value.Error = noAnswer(a.Err)
		}
		rep.Nodes[a.Node] = a.Value
		sum.add(&rep, a.Node, &a.Value)
	}
	etcd := statusLine{true, "etcd", "answers"}
	if nodes.Stale != "" {
		etcd = statusLine{false, "etcd", nodes.Stale}
		rep.Problems = append(rep.Problems, "etcd: "+nodes.Stale)
	}
	versions := slices.Sorted(maps.Keys(sum.versions))
	rep.Lines = []statusLine{
		{sum.ready == len(answers), "nodes", fmt.Sprintf("%d of %d ready", sum.ready, len(answers))},
		{true, "dataplane", sum.dataplane()},
		{len(versions) < 2, "version", strings.Join(versions, ", ")},
		etcd,
		{sum.paths == 0, "data path", either(sum.paths == 0, "packets get through", count(sum.paths, "problem"))},
		{sum.full == "", "addresses", sum.addresses()},
		{sum.values["FAILED"] == 0, "values", fmt.Sprintf("%d configured, %d pending, %d failed", sum.values["CONFIGURED"], sum.values["PENDING"],
			sum.values["FAILED"])},
		{true, "pods", fmt.Sprint(sum.pods, " connected")},
		{true, "services", services},
	}
	return rep
}

// totals are counted over nodes.
type totals struct {
	ready, pods, paths, used, free int
	full                           string // a subnet with few addresses left
	dataplanes                     map[string]int
	transports                     map[string]bool
	versions                       map[string][]string
	values                         map[string]int
}

// fewLeft is from which percentage on a subnet counts as nearly full, as for check.
const fewLeft = 90

func (t *totals) add(rep *statusReport, node string, s *nodeStatus) {
	problem := func(text string) { rep.Problems = append(rep.Problems, node+": "+text) }
	if s.Error != "" {
		problem(s.Error)
		return
	}
	if len(s.Info.Problems) == 0 {
		t.ready++
	}
	for _, p := range s.Info.Problems {
		problem("not ready: " + p)
	}
	for _, w := range s.Info.Warnings {
		t.paths++
		problem(w.Object + ": " + w.Text)
	}
	t.pods += s.Pods
	t.dataplanes[s.Info.Dataplane]++
	t.transports[s.Info.Transport] = true
	v := version.Info{Version: s.Info.Version, Commit: s.Info.Commit}.String()
	t.versions[v] = append(t.versions[v], node)
	for _, sub := range s.IPAM.Subnets {
		t.used, t.free = t.used+sub.Used, t.free+sub.Free
		if total := sub.Used + sub.Free; total > 0 && sub.Used*100 >= fewLeft*total {
			t.full = sub.Subnet
			problem(fmt.Sprintf("%d of %d addresses of %s are used", sub.Used, total, sub.Subnet))
		}
	}
	for state, k := range s.Values {
		t.values[state] += k
	}
	if k := s.Values["FAILED"]; k > 0 {
		problem(count(k, "value") + " failed: contiv-netctl dump --node " + node + " --state FAILED")
	}
}

func (t *totals) dataplane() string {
	var parts []string
	for _, d := range slices.Sorted(maps.Keys(t.dataplanes)) {
		parts = append(parts, fmt.Sprintf("%s on %s", d, count(t.dataplanes[d], "node")))
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

// print writes the screen.
func (r *statusReport) print(w io.Writer, color bool) {
	mark := func(ok bool) string {
		m := either(ok, "✓", "✗")
		if color {
			return table.Paint(m)
		}
		return m
	}
	for _, l := range r.Lines {
		fmt.Fprintf(w, "%s %-10s %s\n", mark(l.OK), l.About, l.Text)
	}
	if len(r.Problems) > 0 {
		fmt.Fprintln(w)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "%s %s\n", mark(false), p)
	}
}
