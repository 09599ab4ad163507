// Command contiv-netctl looks into the network of a cluster: what nodes, pods and services there are, what is programmed, what
// has happened, what becomes of a packet, and whether all nodes agree.
//
// It asks the agents (internal/netctl/client) and prints what they say. main.go has the command and its flags, show.go what
// lists, place.go what is sent to, probe.go ping, trace.go and tracer.go trace, and the other commands are in files of their
// names.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/internal/netctl/client"
	"contiv.dev/vswitch/internal/netctl/table"
	"contiv.dev/vswitch/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		if !errors.Is(err, errFound) {
			fmt.Fprintln(os.Stderr, "contiv-netctl:", err)
		}
		os.Exit(1)
	}
}

// errFound makes the exit status 1 where the answer itself says why: check has found something, trace a loss.
var errFound = errors.New("found")

// netctl is what the commands share.
type netctl struct {
	opts    client.Options
	output  string
	format  table.Format
	timeout time.Duration
}

func newCommand() *cobra.Command {
	n := &netctl{}
	root := &cobra.Command{
		Use:   "contiv-netctl",
		Short: "Inspect and test the network of a cluster",
		Long: "contiv-netctl asks the agent of this node on its socket, as root, and the agents of other nodes over TLS.\n" +
			"The exit status is 1 when a command fails, when check finds a fault, or when ping or trace lose a packet.",
		SilenceUsage: true, SilenceErrors: true, Version: version.Get().String(),
		PersistentPreRunE: func(*cobra.Command, []string) (err error) {
			n.format, err = table.Parse(n.output)
			return err
		},
	}
	root.SetVersionTemplate(version.Template)
	f := root.PersistentFlags()
	f.StringVar(&n.opts.Socket, "socket", "/run/contiv/rest.sock", "socket of the local agent")
	f.StringVar(&n.opts.Server, "server", "", "host:port of an agent to ask instead of the local one")
	f.StringVar(&n.opts.Port, "port", "", "port of other nodes' agents (default: that of the first)")
	f.StringVar(&n.opts.CAFile, "ca", "", "CA certificate of the agents (default: as the first agent says)")
	f.StringVar(&n.opts.TokenFile, "token-file", "", "file with the agents' bearer token (default: as the first agent says)")
	f.StringVar(&n.opts.ServerName, "tls-server-name", "", "name in the agents' certificates (default: the node's, its "+
		"address, or "+client.SharedName+")")
	f.BoolVar(&n.opts.Plain, "plain", false, "no TLS; only for an agent on a loopback address")
	f.StringVarP(&n.output, "output", "o", string(table.Text), "table, json or yaml")
	f.DurationVar(&n.timeout, "timeout", 30*time.Second, "for the whole command")
	// It fails only for a flag that is not there.
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(table.Formats(), cobra.ShellCompDirectiveNoFileComp))
	root.AddCommand(n.nodes(), n.pods(), n.ipam(), n.services(), n.nat(), n.vppcli(), n.dump(), n.events(), n.trace(), n.ping(),
		n.check(), n.resync(), n.report(), n.version(), n.logs(), n.policy())
	return root
}

// action is what a command does once the cluster is known.
type action func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, args []string) error

// run makes a command of f.
func (n *netctl) run(f action) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), n.timeout)
		defer cancel()
		c, err := client.Open(ctx, n.opts)
		if err != nil {
			return err
		}
		return f(ctx, cmd, c, args)
	}
}

// completeNodes completes the first argument, or a flag, with the names of nodes.
func (n *netctl) completeNodes(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && cmd.Name() != "ping" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c, err := client.Open(ctx, n.opts)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return c.Names(), cobra.ShellCompDirectiveNoFileComp
}

// completePods completes arguments with namespace/name of pods.
func (n *netctl) completePods(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c, err := client.Open(ctx, n.opts)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, p := range allPods(ctx, c, nil).pods {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
