// Command contiv-agent is the node agent: it wires pods, connects nodes and programs the dataplane.
//
// main.go has flags and signals; wire.go is the list of what the agent is made of, in order.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "contiv-agent:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	opts := defaultOptions()
	cmd := &cobra.Command{
		Use:   "contiv-agent",
		Short: "Kubernetes networking on VPP: the agent of one node",
		Long: "contiv-agent wires pods through VPP and programs everything else that the node's network needs.\n" +
			"Every flag can also be set by the environment variable CONTIV_<FLAG>, e.g. CONTIV_NODE_NAME.",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnvironment(cmd); err != nil {
				return err
			}
			return run(cmd.Context(), opts)
		},
	}
	opts.register(cmd.Flags())
	return cmd
}

// fromEnvironment sets the flags that were not given on the command line from CONTIV_* variables.
func fromEnvironment(cmd *cobra.Command) error {
	var errs []error
	cmd.Flags().VisitAll(func(f *flag) {
		name := "CONTIV_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := os.LookupEnv(name)
		if !ok || f.Changed {
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("environment variable %s: %w", name, err))
		}
	})
	return errors.Join(errs...)
}

// newLogger logs to standard error, quiet at the default level.
func newLogger(level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: use debug, info, warn or error", level)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: l})), nil
}
