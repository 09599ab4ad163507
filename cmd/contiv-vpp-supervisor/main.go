// Command contiv-vpp-supervisor is process 1 of the VPP container: it starts VPP with a configuration made from contiv.conf, and restarts it
// after a crash (cmd/internal/vppsup). "contiv-vpp-supervisor health" is the container's probe.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/cmd/internal/vppsup"
	"contiv.dev/vswitch/internal/environ"
	"contiv.dev/vswitch/internal/logs"
	"contiv.dev/vswitch/internal/version"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/contivconf/conffile"
)

func main() {
	// VPP must end with this thread, and so with this process (vppsup).
	runtime.LockOSThread()
	if err := newCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "contiv-vpp-supervisor:", err)
		os.Exit(1)
	}
}

// options holds the flags.
type options struct {
	sup    vppsup.Config
	config string
	node   string
	extra  string
	print  bool
	// missing is the log message about a contiv.conf without a section for this node.
	missing string
}

func newCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:           "contiv-vpp-supervisor",
		Short:         "Starts VPP with the settings in contiv.conf, and restarts it after a crash",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.Get().String(),
		RunE:          func(cmd *cobra.Command, _ []string) error { return run(cmd, o) },
	}
	cmd.SetVersionTemplate(version.Template)
	f, s := cmd.Flags(), &o.sup.Settings
	f.StringVar(&o.sup.Bin, "vpp", "vpp", "the VPP binary")
	f.StringVar(&o.config, "config", "", "contiv.conf; without it, VPP gets no NIC")
	f.StringVar(&o.node, "node-name", os.Getenv("CONTIV_NODE_NAME"), "name of this node, for its section of contiv.conf")
	f.StringVar(&s.RunDir, "run-dir", "/run/vpp", "directory of VPP's sockets")
	f.IntVar(&s.HeapMB, "heap-mb", 512, "VPP's main heap in MB")
	f.IntVar(&s.Buffers, "buffers", 65536, "packet buffers per NUMA node; each TAP holds about 256")
	f.IntVar(&s.Workers, "workers", 0, "worker threads; 0: the main thread forwards packets")
	f.StringVar(&s.WorkerCores, "worker-cores", "", "processors of the workers, one for each, such as 2-3,6 (default: VPP chooses)")
	f.StringVar(&s.MainCore, "main-core", "", "processor of VPP's main thread (default: VPP chooses)")
	f.StringVar(&s.Plugins, "plugin-path", "", "directory of VPP's plugins (default: VPP's own)")
	f.StringVar(&s.Prefix, "shm-prefix", "", "prefix of shared memory, for a second VPP on the host")
	f.StringVar(&o.extra, "extra-config", "", "file with further sections of startup.conf; may be absent")
	f.StringVar(&o.sup.Hugepages, "hugepages", vppsup.HugepagesAuto,
		"packet buffers in hugepages: on, off, or auto: on if there are enough")
	f.StringSliceVar(&o.sup.Preload, "preload", nil, "library to preload into VPP; may be given several times")
	f.StringVar(&o.sup.Socket, "health-socket", "", "socket for queries of VPP's health (default: <run-dir>/supervisor.sock)")
	f.DurationVar(&o.sup.Frozen, "frozen-after", time.Minute, "kill a VPP that has not replied for this time; "+
		"while VPP starts, the time doubles after each start that took too long; 0: never")
	f.DurationVar(&o.sup.Grace, "grace", 5*time.Second, "time that VPP has to stop before it is killed")
	f.BoolVar(&o.print, "print", false, "print startup.conf and exit")
	cmd.AddCommand(newHealthCommand())
	return cmd
}

func run(cmd *cobra.Command, o *options) error {
	if err := o.complete(); err != nil {
		return err
	}
	log := logs.New(os.Stderr, slog.LevelInfo, nil)
	if !o.print {
		log.Info("contiv-vpp-supervisor is starting", version.Get().Attrs()...)
	}
	if o.missing != "" {
		log.Info(o.missing)
	}
	sup, err := vppsup.New(o.sup, log)
	if err != nil {
		return err
	}
	if o.print {
		_, err := fmt.Fprint(cmd.OutOrStdout(), sup.StartupConf())
		return err
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP)
	return sup.Run(cmd.Context(), signals)
}

// complete reads the files and sets what depends on other options.
func (o *options) complete() error {
	if err := environ.Check(nil, os.Environ()); err != nil {
		return err
	}
	bin, err := exec.LookPath(o.sup.Bin)
	if err != nil {
		return fmt.Errorf("--vpp: %w", err)
	}
	o.sup.Bin = bin
	if o.sup.Socket == "" {
		o.sup.Socket = filepath.Join(o.sup.Settings.RunDir, "supervisor.sock")
	}
	for _, lib := range o.sup.Preload {
		if _, err := os.Stat(lib); err != nil {
			return fmt.Errorf("--preload: %w", err)
		}
	}
	if o.node == "" {
		if o.node, err = os.Hostname(); err != nil {
			return fmt.Errorf("host name: %w; set --node-name", err)
		}
	}
	if o.config != "" {
		conf, err := conffile.LoadFile(o.config, contivconf.Env{NodeName: o.node})
		if err != nil {
			return err
		}
		o.missing, _ = conf.MissingSection()
		o.sup.Settings.NICs = vppsup.NICsOf(conf.Node())
	}
	if o.extra == "" {
		return nil
	}
	extra, err := os.ReadFile(o.extra)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("--extra-config: %w", err)
	}
	o.sup.Settings.Extra = string(extra)
	return nil
}

func newHealthCommand() *cobra.Command {
	var socket string
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Report by exit status whether VPP is up",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), 5*time.Second)
			defer cancel()
			s, err := vppsup.Health(ctx, socket)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "up since %s, pid %d, starts %d\n", s.Since.Format(time.RFC3339), s.PID, s.Starts)
			return err
		},
	}
	cmd.Flags().StringVar(&socket, "health-socket", "/run/vpp/supervisor.sock", "health socket of the supervisor")
	return cmd
}
