package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/table"
)

// resyncPath compares the dataplane with the desired values and writes the differences.
const resyncPath = "/controller/resync?method=downstream"

func (n *netctl) resync() *cobra.Command {
	return &cobra.Command{
		Use: "resync NODE...", Short: "Repair the dataplanes of nodes", Args: cobra.MinimumNArgs(1),
		Long: "resync compares the dataplane of nodes with the desired state, and writes only the differences. Traffic " +
			"continues.\nNODE may be \"-\" for this node.",
		ValidArgsFunction: n.completeNodes,
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, args []string) error {
			_, info := c.First()
			for i := range args {
				if args[i] == "-" {
					args[i] = info.Node
				}
			}
			if err := c.Check(args); err != nil {
				return err
			}
			answers := client.Each(ctx, c, args, func(ctx context.Context, a *client.Agent) (struct{}, error) {
				return struct{}{}, a.Post(ctx, resyncPath, struct{}{}, nil)
			})
			done := []string{}
			for _, a := range answers {
				if a.Err == nil {
					done = append(done, a.Node)
				}
			}
			if err := n.printResync(cmd.OutOrStdout(), done); err != nil {
				return err
			}
			if err := warn(cmd, answers); err != nil {
				return err
			}
			if len(done) < len(answers) { // not all nodes have been resynced
				return fmt.Errorf("%d of %s resynced; the cause is above", len(done), count(len(answers), "node"))
			}
			return nil
		}),
	}
}

func (n *netctl) printResync(w io.Writer, nodes []string) error {
	if n.format.Structured() {
		return table.Value(w, n.format, map[string][]string{"resynced": nodes})
	}
	for _, node := range nodes {
		fmt.Fprintf(w, "node %s is compared and repaired\n", node)
	}
	return nil
}
