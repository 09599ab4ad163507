package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
)

// warn prints why agents gave no answer, beside the answers of the others. Agents that only their own node may ask are no failure, as long as
// another one has answered.
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
	notAsked(cmd, local, why)
	if len(local) == len(answers) {
		failed += len(local)
	}
	if failed > 0 {
		return fmt.Errorf("no answer from %d of %s; the cause is above", failed, count(len(answers), "node"))
	}
	return nil
}

// notAsked prints which nodes were not asked.
func notAsked(cmd *cobra.Command, nodes []string, why error) {
	if len(nodes) == 0 {
		return
	}
	var local *client.LocalOnly
	if errors.As(why, &local) {
		why = local // without the name of one node
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "contiv-netctl: %s not asked (%s): %v\n", count(len(nodes), "node"), names(nodes), why)
}

// names are the first few nodes.
func names(nodes []string) string {
	const few = 5
	if len(nodes) > few {
		return strings.Join(nodes[:few], ", ") + ", …"
	}
	return strings.Join(nodes, ", ")
}

// reachable are the nodes that can be asked from here, and those that only they themselves may ask, with the reason.
func reachable(c *client.Cluster) (asked, local []string, why error) {
	for _, node := range c.Names() {
		if _, err := c.Agent(node); client.IsLocalOnly(err) {
			local, why = append(local, node), err
			continue
		}
		asked = append(asked, node)
	}
	return asked, local, why
}
