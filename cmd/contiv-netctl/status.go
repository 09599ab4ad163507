package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/state"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/table"
)

func (n *netctl) status() *cobra.Command {
	return n.watchable(&cobra.Command{
		Use: "status", Short: "Show the state of the cluster on one screen", Args: cobra.NoArgs,
		Long: "status shows nodes, data paths, etcd, addresses and values on one screen, with the cause of each problem. It is quick; " +
			"check compares more.\nThe exit status is 1 if there is a problem.",
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, _ []string) error {
			answers := client.Each(ctx, c, nil, state.QueryNode)
			first, _ := c.First()
			services, err := state.Get[[]serviceRow](servicesPath)(ctx, first)
			rep := state.Summarize(c.Nodes(), answers, state.Served(services, first.Name, err))
			if n.format.Structured() {
				if err := table.Value(cmd.OutOrStdout(), n.format, rep); err != nil {
					return err
				}
			} else {
				printSummary(cmd.OutOrStdout(), &rep, n.colors(n.screen(cmd)))
			}
			_, local, why := reachable(c)
			notQueried(cmd, local, why)
			if len(rep.Problems) > 0 {
				return errFound
			}
			return nil
		}),
	})
}

// printSummary writes the screen.
func printSummary(w io.Writer, r *state.Summary, color bool) {
	mark := func(ok bool) string {
		m := "✗"
		if ok {
			m = "✓"
		}
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
