package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"contiv.dev/vswitch/internal/didyoumean"
	"contiv.dev/vswitch/internal/environ"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/logs"
	"contiv.dev/vswitch/internal/version"
)

// Main runs a program until it is stopped; it does not return.
func Main(cmd *cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer context.AfterFunc(ctx, stop)() // a second signal ends the program at once
	err := cmd.ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", cmd.Name(), err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Command takes no arguments, and flags from the environment, too. about is what it does, for --help.
func Command(name, short, about string, run func(context.Context) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs, Version: version.Get().String(), SilenceUsage: true, SilenceErrors: true,
		Long: about + "\nEvery flag can also be set by the environment variable CONTIV_<FLAG>, e.g. CONTIV_ETCD_ENDPOINTS.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(FromEnvironment(cmd.Flags()), checkEndpoints(cmd.Flags())); err != nil {
				return err
			}
			return run(cmd.Context())
		},
	}
	cmd.SetVersionTemplate(version.Template)
	cmd.SetFlagErrorFunc(explainFlag)
	return cmd
}

// explainFlag adds to an error about a flag what may be meant, and where the flags are listed.
func explainFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if meant := didyoumean.Closest(unknown.GetSpecifiedName(), names); meant != "" {
			return fmt.Errorf("%w; did you mean --%s?", err, meant)
		}
	}
	return fmt.Errorf("%w; %s --help lists the flags", err, cmd.CommandPath())
}

// FromEnvironment sets the flags that were not given on the command line from CONTIV_* variables, and refuses those of them that
// stand for no flag.
func FromEnvironment(flags *pflag.FlagSet) error {
	var errs []error
	var known []string
	flags.VisitAll(func(f *pflag.Flag) {
		name := environ.Prefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		known = append(known, name)
		value, ok := os.LookupEnv(name)
		if !ok || f.Changed {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("environment variable %s: %w", name, err))
		}
	})
	return errors.Join(append(errs, environ.Check(known, os.Environ()))...)
}

// checkEndpoints refuses an empty list, as of a variable that was not filled in: a node that is to be part of a cluster must not
// begin one of its own.
func checkEndpoints(flags *pflag.FlagSet) error {
	if f := flags.Lookup(etcdEndpoints); f != nil && f.Changed && f.Value.String() == "[]" {
		return errors.New("--etcd-endpoints (or CONTIV_ETCD_ENDPOINTS) is given and empty: name the cluster's etcd, or leave it out")
	}
	return nil
}

// NewLogger logs to standard error and to the ring, quiet at the default level.
func NewLogger(level string, ring *logs.Ring) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: use debug, info, warn or error", level)
	}
	return logs.New(os.Stderr, l, ring), nil
}

// Program is made, started and stopped. Stop undoes as much as has been done.
type Program interface {
	Make(ctx context.Context) error
	Start() error
	Stop() error
}

// StopLimit bounds a stop: soon after that Kubernetes is about to kill the process anyway, and would not say why.
const StopLimit = 25 * time.Second

// Run lets a program work until ctx ends or one of its jobs fails, and stops it in any case. When it returns an error the
// program may not have stopped completely.
func Run(ctx context.Context, log *slog.Logger, p Program, jobs *lifecycle.Group, started func()) (err error) {
	defer func() {
		begun := time.Now()
		if err != nil {
			log.Error("stopping", "error", err)
		} else {
			log.Info("stopping", "reason", "signal")
		}
		err = errors.Join(err, stop(p, StopLimit))
		log.Info("stopped", "took", time.Since(begun).Round(time.Millisecond))
	}()
	if err := checkFiles(); err != nil {
		return err
	}
	if err := p.Make(ctx); err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	started()
	select {
	case <-ctx.Done():
		return nil
	case err := <-jobs.Failed():
		return fmt.Errorf("stopping after a failure: %w", err)
	}
}

// stop gives up waiting for what hangs.
func stop(p Program, limit time.Duration) error {
	jobs := lifecycle.NewGroup(context.Background(), slog.New(slog.DiscardHandler))
	done := make(chan error, 1)
	jobs.Go("stop", func(context.Context) error { done <- p.Stop(); return nil })
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case err := <-jobs.Failed(): // a panic
		return err
	case <-timer.C:
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2) // the last occasion to find out
		return fmt.Errorf("it did not stop within %s; report this with the goroutines that are logged above", limit)
	}
}
