package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
)

// completeTimeout bounds how long a shell waits for completions.
const completeTimeout = 2 * time.Second

// completion gets the words from the cluster; if the cluster does not respond, there are none.
func (n *netctl) completion(query func(context.Context, *client.Cluster) []string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(context.Background(), completeTimeout)
	defer cancel()
	c, err := client.Open(ctx, n.opts)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return query(ctx, c), cobra.ShellCompDirectiveNoFileComp
}

// completeNodes completes the first argument, or a flag, with the names of nodes.
func (n *netctl) completeNodes(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && cmd.Name() != "ping" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return n.completion(func(_ context.Context, c *client.Cluster) []string { return c.Names() })
}

// completePods completes arguments with the names of pods, and the second one with services, too.
func (n *netctl) completePods(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return n.completion(func(ctx context.Context, c *client.Cluster) []string {
		var names []string
		for _, p := range allPods(ctx, c, nil).Pods {
			names = append(names, p.ID())
		}
		if len(args) > 0 {
			for _, s := range serviceNames(ctx, c) {
				names = append(names, "svc/"+s)
			}
		}
		return names
	})
}

// completeServices completes arguments with namespace/name of services.
func (n *netctl) completeServices(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return n.completion(serviceNames)
}

func serviceNames(ctx context.Context, c *client.Cluster) []string {
	first, _ := c.First()
	var rows []serviceRow
	if err := first.Get(ctx, servicesPath, &rows); err != nil {
		return nil
	}
	names := make([]string, 0, len(rows))
	for _, s := range rows {
		names = append(names, s.Namespace+"/"+s.Name)
	}
	return names
}

// completeKinds completes the argument of dump with the kinds of values that the node has.
func (n *netctl) completeKinds(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	node, _ := cmd.Flags().GetString("node")
	return n.completion(func(ctx context.Context, c *client.Cluster) []string {
		agent, err := c.Agent(node)
		if err != nil {
			return nil
		}
		var status struct{ Values []struct{ Kind string } }
		if err := agent.Get(ctx, "/scheduler/status", &status); err != nil {
			return nil
		}
		kinds := map[string]bool{}
		for _, v := range status.Values {
			kinds[v.Kind] = true
		}
		return slices.Sorted(maps.Keys(kinds))
	})
}

// valueStates returns the states that values on a node may have.
func valueStates() []string { return []string{"CONFIGURED", "PENDING", "FAILED", "RETRYING"} }
