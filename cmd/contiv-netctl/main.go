// Command contiv-netctl inspects the network of a cluster: the nodes, pods and services, what is programmed, what has happened, the path of a
// packet, and whether all nodes agree.
//
// It queries the agents (cmd/contiv-netctl/internal/client) and prints their answers. main.go has the command and its flags, show.go the
// commands that list objects, place.go the sources and destinations of packets, probe.go ping, trace.go and tracer.go trace; the other
// commands are in files of their names.
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

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/table"
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

// errFound makes the exit status 1 if the output already contains the reason: check has found a fault, or trace a lost packet.
var errFound = errors.New("found")

// netctl holds what the commands share.
type netctl struct {
	opts    client.Options
	output  string
	format  table.Format
	timeout time.Duration
	color   string
	watch   time.Duration // zero: run once
}

func newCommand() *cobra.Command {
	n := &netctl{}
	root := &cobra.Command{
		Use:   "contiv-netctl",
		Short: "Inspect and test the network of a cluster",
		Long: "contiv-netctl queries the agent of this node on its socket, as root, and the agents of other nodes over TLS.\n" +
			"The exit status is 1 when a command fails, when check finds a fault, or when ping or trace lose a packet.",
		SilenceUsage: true, SilenceErrors: true, Version: version.Get().String(),
		PersistentPreRunE: func(*cobra.Command, []string) (err error) {
			if n.color != "auto" && n.color != "always" && n.color != "never" {
				return fmt.Errorf("--color %q: use auto, always or never", n.color)
			}
			if n.timeout <= 0 {
				return fmt.Errorf("--timeout %s: use a positive duration, such as 30s", n.timeout)
			}
			if n.watch < 0 {
				return fmt.Errorf("--watch %s: use a positive duration, such as 5s", n.watch)
			}
			n.format, err = table.Parse(n.output)
			return err
		},
	}
	root.SetVersionTemplate(version.Template)
	f := root.PersistentFlags()
	f.StringVar(&n.opts.Socket, "socket", "/run/contiv/rest.sock", "socket of the local agent")
	f.StringVar(&n.opts.Server, "server", "", "host:port of an agent to query instead of the local one")
	f.StringVar(&n.opts.Port, "port", "", "port of other nodes' agents (default: the port of the first agent)")
	f.StringVar(&n.opts.CAFile, "ca", "", "CA certificate of the agents (default: the file that the first agent names)")
	f.StringVar(&n.opts.TokenFile, "token-file", "", "file with the agents' bearer token (default: the file that the first agent names)")
	f.StringVar(&n.opts.ServerName, "tls-server-name", "", "name in the agents' certificates (default: the node's name, its "+
		"address, or "+client.SharedName+")")
	f.BoolVar(&n.opts.Plain, "plain", false, "no TLS; only for an agent on a loopback address")
	f.StringVarP(&n.output, "output", "o", string(table.Text), "table, wide, json, yaml or name")
	f.StringVar(&n.color, "color", "auto", "colours: always, never, or auto: on a terminal, unless NO_COLOR is set")
	f.DurationVar(&n.timeout, "timeout", 30*time.Second, "timeout of the whole command")
	// It fails only for a flag that does not exist.
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(table.Formats(), cobra.ShellCompDirectiveNoFileComp))
	root.AddCommand(n.nodes(), n.pods(), n.ipam(), n.services(), n.nat(), n.vppcli(), n.dump(), n.events(), n.trace(), n.ping(),
		n.check(), n.resync(), n.report(), n.version(), n.logs(), n.policy(), n.status(),
		n.connectivity(), n.ui(), n.top())
	explainUsage(root)
	return root
}

// explainUsage adds the command's name and usage to errors of arguments and flags.
func explainUsage(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%s: %w; %s --help lists the flags", c.Name(), err, c.CommandPath())
	})
	if check := cmd.Args; check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return fmt.Errorf("%s: %w; usage: %s", c.Name(), err, c.UseLine())
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		explainUsage(sub)
	}
}

// action is the work of a command after the cluster has been opened.
type action func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, args []string) error

// run makes a command's RunE from f.
func (n *netctl) run(f action) func(*cobra.Command, []string) error {
	once := func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), n.timeout)
		defer cancel()
		c, err := client.Open(ctx, n.opts)
		if err != nil {
			return err
		}
		return f(ctx, cmd, c, args)
	}
	return func(cmd *cobra.Command, args []string) error {
		if n.watch <= 0 {
			return once(cmd, args)
		}
		return n.repeat(cmd, args, once)
	}
}
