// Command contiv-ksr writes the state of Kubernetes to etcd, from which agents with --kubernetes=relay take it. Two or three
// replicas do for any number of nodes; one of them leads.
//
// main.go has flags and signals; wire.go is the list of what it is made of, in order.
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
	"github.com/spf13/pflag"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "contiv-ksr:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	opts := defaultOptions()
	cmd := &cobra.Command{
		Use:   "contiv-ksr",
		Short: "Kubernetes networking on VPP: brings the state of Kubernetes to etcd",
		Long: "contiv-ksr watches the Kubernetes API server and writes what agents need of it to etcd, so that agents with\n" +
			"--kubernetes=relay need not watch the API server themselves. Run two or three of it; one of them leads.\n" +
			"Every flag can also be set by the environment variable CONTIV_<FLAG>, e.g. CONTIV_ETCD_ENDPOINTS.",
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
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
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
