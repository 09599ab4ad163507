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
		time.AfterFunc(dumpLimit, func() { os.Exit(1) }) // standard error may block if no process reads it
		fmt.Fprintf(os.Stderr, "%s: %v\n", cmd.Name(), err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Command returns a command without arguments, whose flags can also be set from the environment. about is the description for --help. checks
// reject flags as a whole, before run.
func Command(name, short, about string, run func(context.Context) error, checks ...func(*pflag.FlagSet) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs, Version: version.Get().String(), SilenceUsage: true, SilenceErrors: true,
		Long: about + "\nEvery flag can also be set by the environment variable CONTIV_<FLAG>, e.g. CONTIV_ETCD_ENDPOINTS.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			errs := []error{FromEnvironment(cmd.Flags())}
			for _, check := range checks {
				errs = append(errs, check(cmd.Flags()))
			}
			if err := errors.Join(errs...); err != nil {
				return err
			}
			return run(cmd.Context())
		},
	}
	cmd.SetVersionTemplate(version.Template)
	cmd.SetFlagErrorFunc(explainFlag)
	return cmd
}

// explainFlag extends an error about a flag with a likely correction, and with the command that lists the flags.
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

// FromEnvironment sets the flags that were not given on the command line from CONTIV_* variables, and rejects CONTIV_* variables that match no
// flag.
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

// RegisterLogLevel registers --log-level.
func RegisterLogLevel(f *pflag.FlagSet, level *string) {
	f.StringVar(level, "log-level", *level, "debug, info, warn or error")
}

// NewLogger returns a logger that writes to standard error and to the ring; at the default level it logs little. Its first line is that the
// program of this name starts, with its version and the attributes about.
func NewLogger(name, level string, about ...any) (*slog.Logger, *logs.Ring, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, nil, fmt.Errorf("--log-level %q: use debug, info, warn or error", level)
	}
	ring := logs.NewRing(logs.DefaultLines)
	log := logs.New(os.Stderr, l, ring)
	log.Info(name+" is starting", append(version.Get().Attrs(), about...)...)
	return log, ring, nil
}

// Program has the steps of a program's life. Stop undoes the steps that were done.
type Program interface {
	Make(ctx context.Context) error
	Start() error
	Stop() error
}

// StopLimit bounds a stop, from the signal to the end of the process. Programs give their steps StepsLimit, so that they can report which step is
// late; the rest of the time is for a program that does not reach that point, for example because it hangs in its start, and for the list of
// goroutines.
const (
	StopLimit  = 10 * time.Second
	StepsLimit = 7 * time.Second
	dumpLimit  = time.Second
)

// Run runs a program until ctx ends or one of its jobs fails, and always stops it. When it returns an error the program may not have stopped
// completely.
func Run(ctx context.Context, log *slog.Logger, p Program, jobs *lifecycle.Group, started func()) error {
	l := &life{p: p, log: log, jobs: jobs, started: started}
	return l.within(ctx, StopLimit-dumpLimit)
}

// life runs the steps of a program.
type life struct {
	p       Program
	log     *slog.Logger
	jobs    *lifecycle.Group
	started func()
}

// within runs the program. It gives up on steps that hang when limit has passed since ctx ended or the stop began.
func (l *life) within(ctx context.Context, limit time.Duration) error {
	group := lifecycle.NewGroup(context.WithoutCancel(ctx), slog.New(slog.DiscardHandler))
	done, stopping := make(chan error, 1), make(chan struct{})
	group.Go("program", func(context.Context) error { done <- l.run(ctx, stopping); return nil })
	select {
	case err := <-done:
		return err
	case err := <-group.Failed(): // run has panicked
		return err
	case <-ctx.Done():
	case <-stopping:
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case err := <-group.Failed():
		return err
	case <-timer.C:
	}
	dumpGoroutines(group)
	return fmt.Errorf("it did not stop within %s; report this with the goroutines that are logged above", limit)
}

// dumpGoroutines writes all stacks to standard error, because this is the last chance to find out what hangs. Writing to standard error may hang,
// too.
func dumpGoroutines(group *lifecycle.Group) {
	done := make(chan struct{})
	group.Go("goroutines", func(context.Context) error {
		defer close(done)
		return pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
	})
	timer := time.NewTimer(dumpLimit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// run makes and starts the program, waits for its end, and stops it; it closes stopping when the stop begins.
func (l *life) run(ctx context.Context, stopping chan<- struct{}) (err error) {
	defer func() {
		close(stopping)
		begun := time.Now()
		if err != nil {
			l.log.Error("stopping", "error", err)
		} else {
			l.log.Info("stopping", "reason", "signal")
		}
		err = errors.Join(err, l.p.Stop())
		l.log.Info("stopped", "took", time.Since(begun).Round(time.Millisecond))
	}()
	if err := checkFiles(); err != nil {
		return err
	}
	if err := l.p.Make(ctx); err != nil {
		return err
	}
	if err := l.p.Start(); err != nil {
		return err
	}
	l.started()
	select {
	case <-ctx.Done():
		return nil
	case err := <-l.jobs.Failed():
		return fmt.Errorf("stopping after a failure: %w", err)
	}
}
