package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/internal/logs"
)

func (n *netctl) logs() *cobra.Command {
	last := 100
	cmd := &cobra.Command{
		Use: "logs [NODE]", Short: "Show the newest log lines of an agent", Args: cobra.MaximumNArgs(1),
		Long: "logs shows the newest lines that the agent of a node (default: this one) has logged since it started. The agent keeps " +
			fmt.Sprint(logs.DefaultLines) + ".",
		ValidArgsFunction: n.completeNodes,
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, args []string) error {
			node := ""
			if len(args) > 0 {
				node = args[0]
			}
			agent, err := c.Agent(node)
			if err != nil {
				return err
			}
			text, err := agent.GetText(ctx, fmt.Sprintf("%s?last=%d", logs.Path, last))
			if err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return err
		}),
	}
	cmd.Flags().IntVar(&last, "last", last, "maximum number of lines")
	return cmd
}
