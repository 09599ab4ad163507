package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
)

// warn prints why agents did not respond, beside the answers of the others. Agents that only their own node can reach are not a failure, as
// long as another agent has answered.
func warn[T any](cmd *cobra.Command, answers []client.Answer[T]) error {
	failed := 0
	var local []string
	var why error
	for _, a := range answers {
		switch {
		case client.IsLocalOnly(a.Err):
			local, why = append(local, a.Node), a.Err
		case a.Err != nil:
			failed++
			fmt.Fprintf(cmd.ErrOrStderr(), "contiv-netctl: node %s: %v\n", a.Node, a.Err)
		}
	}
	notQueried(cmd, local, why)
	if len(local) == len(answers) {
		failed += len(local)
	}
	if failed > 0 {
		return fmt.Errorf("no reply from %d of %s; the cause is above", failed, count(len(answers), "node"))
	}
	return nil
}

// notQueried prints the nodes that were not queried.
func notQueried(cmd *cobra.Command, nodes []string, why error) {
	if len(nodes) == 0 {
		return
	}
	var local *client.LocalOnly
	if errors.As(why, &local) {
		why = local // without the name of one node
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "contiv-netctl: %s not queried (%s): %v\n", count(len(nodes), "node"), names(nodes), why)
}

// names returns the first few nodes as text.
func names(nodes []string) string {
	const few = 5
	if len(nodes) > few {
		return strings.Join(nodes[:few], ", ") + ", …"
	}
	return strings.Join(nodes, ", ")
}

// reachable returns the nodes that can be queried from here, and those that can be queried only from themselves, with the reason.
func reachable(c *client.Cluster) (queried, local []string, why error) {
	for _, node := range c.Names() {
		if _, err := c.Agent(node); client.IsLocalOnly(err) {
			local, why = append(local, node), err
			continue
		}
		queried = append(queried, node)
	}
	return queried, local, why
}
