package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/internal/filelock"
	"contiv.dev/vswitch/test/testbed/netns"
)

// soakName is the prefix of the names of all namespaces.
const soakName = "csoak"

func main() {
	o := options{name: soakName}
	flag.StringVar(&o.bin, "bin", "bin", "directory of contiv-agent and contiv-cni")
	flag.DurationVar(&o.duration, "for", 30*time.Minute, "duration of the run")
	flag.StringVar(&o.dataplane, "dataplane", "auto", "vpp, linux, or auto: vpp if it is installed")
	flag.BoolVar(&o.plugin, "plugin", true, "load our plugin into VPP; it is built if necessary")
	flag.StringVar(&o.sanitize, "sanitize", "", `sanitizers for our plugin: "address,undefined"`)
	flag.StringVar(&o.config, "config", "", `lines of contiv.conf, for example "useTAPInterfaces: true"`)
	flag.Int64Var(&o.rate, "rate", 2, "MB/s of each stream, in each direction")
	flag.DurationVar(&o.killEvery, "kill-every", 20*time.Second, "time between two kills of agents")
	flag.DurationVar(&o.stall, "stall", 10*time.Second, "maximum time without progress of a stream")
	flag.BoolVar(&o.keepGoing, "keep-going", true, "continue after a fault")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if o.bin, err = filepath.Abs(o.bin); err != nil {
		return err
	}
	if err := o.complete(); err != nil {
		return err
	}
	unlock, err := filelock.Try(filepath.Join(os.TempDir(), o.name+".lock")) // the namespaces of a second run would have the same names
	if errors.Is(err, filelock.ErrLocked) {
		return fmt.Errorf("another soak is running: %w", err)
	}
	if err != nil {
		return err
	}
	defer unlock()
	if err := netns.Clean(ctx, soakName+"-"); err != nil {
		return fmt.Errorf("remove what an interrupted run has left: %w", err)
	}
	s, err := newSoak(ctx, o, os.Stdout)
	if err != nil {
		return err
	}
	return errors.Join(s.run(ctx), s.close(context.WithoutCancel(ctx)))
}

// options are the parameters of a soak.
type options struct {
	name      string // of the lab
	bin       string
	duration  time.Duration
	dataplane string
	plugin    bool   // VPP has our plugin
	sanitize  string // … with these sanitizers
	config    string
	rate      int64 // MB/s
	killEvery time.Duration
	stall     time.Duration
	keepGoing bool
}

func (o *options) complete() error {
	if o.dataplane == "auto" {
		o.dataplane = "linux"
		if _, ok := vpptest.Find(); ok {
			o.dataplane = "vpp"
		}
	}
	switch {
	case o.dataplane != "vpp" && o.dataplane != "linux":
		return fmt.Errorf("-dataplane %q: use vpp, linux or auto", o.dataplane)
	case o.duration < time.Second, o.killEvery < time.Second, o.stall < time.Second, o.rate < 1:
		return errors.New("-for, -kill-every and -stall: at least 1s; -rate: at least 1")
	}
	return nil
}
