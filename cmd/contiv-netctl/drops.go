package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/table"
)

// dropRow is a flow that network policy has denied.
type dropRow struct {
	Node      string    `json:"node"`
	Time      time.Time `json:"time"`
	First     time.Time `json:"first"`
	Count     uint64    `json:"count"`
	Direction string    `json:"direction"`
	Pod       string    `json:"pod"`
	Source    string    `json:"source"`
	SourcePod string    `json:"sourcePod,omitempty"`
	Dest      string    `json:"dest"`
	DestPod   string    `json:"destPod,omitempty"`
	Protocol  string    `json:"protocol"`
	Port      uint16    `json:"port,omitempty"`
	ICMPType  *uint8    `json:"icmpType,omitempty"`
	Policy    string    `json:"policy,omitempty"`
	Rule      string    `json:"rule,omitempty"`
	Because   string    `json:"because"`
}

func (n *netctl) policyDrops() *cobra.Command {
	last := 50
	cmd := &cobra.Command{
		Use: "drops [[NAMESPACE/]POD]", Short: "List connections that network policy has denied, newest first", Args: cobra.MaximumNArgs(1),
		Long: "drops lists the connections that network policy has denied on all nodes in the last hour. Nodes limit their reports, so COUNT may be less than\n" +
			"the number of packets.",
		ValidArgsFunction: n.completePods,
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, args []string) error {
			path := "/contiv/v1/policy/drops"
			if len(args) > 0 {
				path += "?pod=" + url.QueryEscape(args[0])
			}
			answers := client.Each(ctx, c, nil, get[[]dropRow](path))
			rows := joinDrops(answers)
			rows = rows[:min(len(rows), max(last, 0))]
			if err := n.print(cmd, rows, dropsTable(rows, time.Now())); err != nil {
				return err
			}
			return warn(cmd, answers)
		}),
	}
	cmd.Flags().IntVar(&last, "last", last, "maximum number of connections to show")
	return cmd
}

// joinDrops merges the nodes' lists, the newest first.
func joinDrops(answers []client.Answer[[]dropRow]) []dropRow {
	rows := []dropRow{}
	for _, a := range answers {
		for _, r := range a.Value {
			r.Node = a.Node
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b dropRow) int { return b.Time.Compare(a.Time) })
	return rows
}

func dropsTable(rows []dropRow, now time.Time) table.Table {
	t := table.Table{Header: []string{"AGE", "COUNT", "NODE", "DIRECTION", "POD", "FROM", "TO", "PROTOCOL", "POLICY", "RULE", "BECAUSE"}}
	end := func(pod, addr string) string {
		if pod != "" {
			return pod
		}
		return addr
	}
	for _, r := range rows {
		protocol := r.Protocol
		switch {
		case r.Port != 0:
			protocol += fmt.Sprint(" ", r.Port)
		case r.ICMPType != nil:
			protocol += fmt.Sprint(" type ", *r.ICMPType)
		}
		t.Add(max(now.Sub(r.Time), 0).Round(time.Second).String(), fmt.Sprint(r.Count), r.Node, r.Direction, r.Pod, end(r.SourcePod, r.Source),
			end(r.DestPod, r.Dest), protocol, r.Policy, r.Rule, r.Because)
	}
	return t
}
