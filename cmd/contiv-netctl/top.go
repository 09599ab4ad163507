package main

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/state"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/table"
	"contiv.dev/vswitch/plugins/statscollector"
)

// topRow is a pod, or a node, with its traffic.
type topRow struct {
	Node      string `json:"node"`
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	state.Rate
	// Drops is the interface's drop count since its creation.
	Drops uint64 `json:"drops"`
}

// topService is a port of a service with its connections.
type topService struct {
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	Port        string `json:"port"`
	Connections *int   `json:"connections"` // null: no node counts them
	// Packets and Bytes count those of the open connections; null if no node counts them.
	Packets *uint64 `json:"packets"`
	Bytes   *uint64 `json:"bytes"`
}

// topFlags holds the flags that all kinds share.
type topFlags struct {
	interval time.Duration
	sort     string
	limit    int
}

var topSorts = []string{"traffic", "in", "out", "packets", "drops", "name"}

func (n *netctl) top() *cobra.Command {
	f := topFlags{}
	cmd := &cobra.Command{
		Use: "top [pods|services|nodes]", Short: "Show pods, services or nodes by traffic", Args: cobra.MaximumNArgs(1),
		ValidArgs: []string{"pods", "services", "nodes"},
		Long: "top pods shows the bits and packets per second of each pod, top nodes those of all pods of a node: the difference of two readings of the\n" +
			"dataplane's counters. IN is the traffic that the pod receives.\ntop services shows the open connections of each service. PACKETS and BYTES belong to " +
			"these connections, and are \"-\" if no\ndataplane counts them: VPP does not; Linux does with net.netfilter.nf_conntrack_acct=1. VPP counts connections " +
			"with the contiv plugin only.",
		Example: "  contiv-netctl top\n  contiv-netctl top services --watch\n  contiv-netctl top pods --sort drops --limit 5 -o wide",
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, args []string) error {
			if !slices.Contains(topSorts, f.sort) {
				return fmt.Errorf("--sort %q: use %s", f.sort, strings.Join(topSorts, ", "))
			}
			if f.interval < 100*time.Millisecond || f.interval >= n.timeout {
				return fmt.Errorf("--interval %s: use 100ms or more, and less than --timeout (%s)", f.interval, n.timeout)
			}
			switch what := append(args, "pods")[0]; what {
			case "pods", "nodes":
				return n.topTraffic(ctx, cmd, c, what == "nodes", f)
			case "services":
				return n.topServices(ctx, cmd, c, f)
			default:
				return fmt.Errorf("top %s: use pods, services or nodes", what)
			}
		}),
	}
	cmd.Flags().DurationVar(&f.interval, "interval", time.Second, "time between the two readings of counters")
	cmd.Flags().StringVar(&f.sort, "sort", topSorts[0], "sort by the largest value of: "+strings.Join(topSorts, ", "))
	cmd.Flags().IntVar(&f.limit, "limit", 20, "maximum number of lines; 0: all")
	// It fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(topSorts, cobra.ShellCompDirectiveNoFileComp))
	return n.watchable(cmd)
}

// topTraffic reads the counters twice and shows the increase.
func (n *netctl) topTraffic(ctx context.Context, cmd *cobra.Command, c *client.Cluster, nodes bool, f topFlags) error {
	read := get[statscollector.TrafficReport](statscollector.TrafficPath)
	var rates state.Rates
	first := client.Each(ctx, c, nil, read)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(f.interval):
	}
	answers := client.Each(ctx, c, nil, read)
	for _, list := range [][]client.Answer[statscollector.TrafficReport]{first, answers} {
		for i := range list {
			if list[i].Err == nil {
				rates.Add(list[i].Node, &list[i].Value)
			}
		}
	}
	rows := topRows(answers, &rates, nodes)
	sortTop(rows, f.sort)
	if f.limit > 0 {
		rows = rows[:min(len(rows), f.limit)]
	}
	t := table.Table{Header: []string{"NAMESPACE", "POD", "NODE", "IN", "OUT", "IN-PACKETS/S", "OUT-PACKETS/S", "DROPS"}, Whole: []string{"POD"}}
	if nodes {
		t.Header = t.Header[2:]
	}
	for _, r := range rows {
		cells := []string{r.Namespace, r.Pod, r.Node, scaled(r.InBits, "bit/s"), scaled(r.OutBits, "bit/s"), scaled(r.InPackets, ""),
			scaled(r.OutPackets, ""), fmt.Sprint(r.Drops)}
		if nodes {
			cells = cells[2:]
		}
		t.Add(cells...)
	}
	if err := n.print(cmd, rows, t); err != nil {
		return err
	}
	for _, a := range answers {
		if a.Value.Missing != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "contiv-netctl: node %s has no counters: %s\n", a.Node, a.Value.Missing)
		}
	}
	return warn(cmd, answers)
}

// topRows returns the pods of all nodes, or the nodes. A pod that is in one reading only has no rate yet.
func topRows(answers []client.Answer[statscollector.TrafficReport], rates *state.Rates, nodes bool) []topRow {
	rows := []topRow{}
	for i := range answers {
		a := &answers[i]
		if a.Err != nil || a.Value.Missing != "" {
			continue
		}
		sum := topRow{Node: a.Node}
		if r := rates.Node(a.Node); r != nil {
			sum.Rate = *r
		}
		known := rates.Interfaces(a.Node)
		for _, t := range a.Value.Interfaces {
			if t.Pod == "" {
				continue
			}
			sum.Drops += t.Drops
			if !nodes {
				rows = append(rows, topRow{a.Node, t.Namespace, t.Pod, known[state.Series{Namespace: t.Namespace, Pod: t.Pod}], t.Drops})
			}
		}
		if nodes {
			rows = append(rows, sum)
		}
	}
	return rows
}

func sortTop(rows []topRow, by string) {
	value := map[string]func(*topRow) float64{
		"traffic": func(r *topRow) float64 { return r.InBits + r.OutBits },
		"in":      func(r *topRow) float64 { return r.InBits },
		"out":     func(r *topRow) float64 { return r.OutBits },
		"packets": func(r *topRow) float64 { return r.InPackets + r.OutPackets },
		"drops":   func(r *topRow) float64 { return float64(r.Drops) },
		"name":    func(*topRow) float64 { return 0 },
	}[by]
	slices.SortFunc(rows, func(a, b topRow) int {
		return cmp.Or(cmp.Compare(value(&b), value(&a)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Node, b.Node))
	})
}

// scaled writes a number with three digits: 1.23 Mbit/s.
func scaled(v float64, unit string) string {
	prefixes := []string{"", "k", "M", "G", "T"}
	i := 0
	for v >= 999.5 && i < len(prefixes)-1 {
		v, i = v/1000, i+1
	}
	digits := 2
	switch {
	case v == 0 || v >= 99.5 || i == 0 && v >= 9.95:
		digits = 0
	case v >= 9.95:
		digits = 1
	}
	return strings.TrimSpace(fmt.Sprintf("%.*f %s%s", digits, v, prefixes[i], unit))
}

// topServices adds up the connections that the nodes have translated.
func (n *netctl) topServices(ctx context.Context, cmd *cobra.Command, c *client.Cluster, f topFlags) error {
	agent, _ := c.First()
	var services []serviceRow
	if err := agent.Get(ctx, servicesPath, &services); err != nil {
		return err
	}
	answers := client.Each(ctx, c, nil, queryFrontends)
	rows := serviceTop(services, c, answers)
	slices.SortStableFunc(rows, func(a, b topService) int {
		if f.sort == "packets" && a.Packets != nil && b.Packets != nil {
			return cmp.Compare(*b.Packets, *a.Packets)
		}
		if f.sort == "name" || a.Connections == nil || b.Connections == nil {
			return 0
		}
		return cmp.Compare(*b.Connections, *a.Connections)
	})
	if f.limit > 0 {
		rows = rows[:min(len(rows), f.limit)]
	}
	t := table.Table{Header: []string{"NAMESPACE", "NAME", "PORT", "CONNECTIONS", "PACKETS", "BYTES"}, Whole: []string{"NAME"}}
	for _, r := range rows {
		t.Add(r.Namespace, r.Name, r.Port, number(r.Connections), number(r.Packets), number(r.Bytes))
	}
	if err := n.print(cmd, rows, t); err != nil {
		return err
	}
	for _, a := range answers {
		if a.Err == nil && a.Value.Missing != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "contiv-netctl: the connections of node %s are not counted: %s\n", a.Node, a.Value.Missing)
		}
	}
	return warn(cmd, answers)
}

// queryFrontends queries a node; one whose dataplane moves no packets has nothing to count.
func queryFrontends(ctx context.Context, a *client.Agent) (r statscollector.FrontendsReport, err error) {
	err = a.Get(ctx, statscollector.FrontendsPath, &r)
	if notThere(err) {
		return statscollector.FrontendsReport{Missing: "its dataplane translates no connections"}, nil
	}
	return r, err
}

// number returns a count as text; "" (which a table shows as "-") if there is no counter.
func number[T int | uint64](v *T) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(*v)
}

// serviceTop returns a row for each port of a service, in the order of services, with the sum of all nodes' counters for its addresses.
func serviceTop(services []serviceRow, c *client.Cluster, answers []client.Answer[statscollector.FrontendsReport]) []topService {
	rows := []topService{}
	byCluster, byNodePort := map[string]int{}, map[string]int{} // index of a row, by the address or port that clients use
	for i := range services {
		s := &services[i]
		for _, p := range s.Ports {
			for _, text := range slices.Concat(s.ClusterIPs, s.ExternalIPs, s.LoadBalancerIPs) {
				if addr, err := netip.ParseAddr(text); err == nil {
					byCluster[fmt.Sprint(addr, " ", p.Port, p.Protocol)] = len(rows)
				}
			}
			if p.NodePort != 0 {
				byNodePort[fmt.Sprint(p.NodePort, p.Protocol)] = len(rows)
			}
			rows = append(rows, topService{Namespace: s.Namespace, Name: s.Name, Port: fmt.Sprintf("%d/%s", p.Port, p.Protocol)})
		}
	}
	own := map[netip.Addr]bool{} // addresses of nodes: only their ports are node ports
	for _, node := range c.Nodes().Nodes {
		for _, a := range nodePlace(node.Name, slices.Concat(node.VPPIPs, node.MgmtIPs)).addrs {
			own[a] = true
		}
	}
	for _, a := range answers {
		if a.Err != nil || a.Value.Missing != "" {
			continue
		}
		for i := range rows {
			rows[i].count(a.Value.CountsPackets, statscollector.FrontendTraffic{})
		}
		for _, f := range a.Value.Frontends {
			at, ok := byCluster[fmt.Sprint(f.Address, " ", f.Port, f.Protocol)]
			if !ok && own[f.Address] {
				at, ok = byNodePort[fmt.Sprint(f.Port, f.Protocol)]
			}
			if ok {
				rows[at].count(a.Value.CountsPackets, f)
			}
		}
	}
	return rows
}

// count adds the counters of a node.
func (s *topService) count(packets bool, f statscollector.FrontendTraffic) {
	if s.Connections == nil {
		s.Connections = new(int)
	}
	*s.Connections += f.Connections
	if !packets {
		return
	}
	if s.Packets == nil {
		s.Packets, s.Bytes = new(uint64), new(uint64)
	}
	*s.Packets += f.Packets
	*s.Bytes += f.Bytes
}
