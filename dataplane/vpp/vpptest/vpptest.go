package vpptest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/vppclock"
)

// ErrNoVPP reports that there is no VPP to run.
var ErrNoVPP = errors.New("real VPP not found (VPP_PREFIX or PATH)")

// Options holds the options of an instance. The zero value is a small VPP in the current network namespace.
type Options struct {
	Netns           string        // name of the network namespace (ip netns) to run in
	Vhostshim       bool          // preload a replacement of /dev/vhost-net, for TAPs on kernels without vhost-net
	Stock           bool          // run VPP unmodified, without epollshim and watchdogshim
	HeapMB          int           // main heap; default 256
	Buffers         int           // buffers per NUMA node; default 4096, because VPP zeroes all of them at the start; each TAP holds about 256
	Workers         int           // worker threads
	Plugin          bool          // load our own plugin (dataplane/vpp/plugin), which is built if necessary
	Sanitize        string        // build the plugin with these sanitizers: "address,undefined"
	QuarantineMB    int           // freed memory that the address sanitizer keeps to detect later uses; default 256
	PerNodeCounters bool          // enable counters per graph node in the statistics
	FewPlugins      []string      // if not nil, only these plugins are loaded ("acl", "nat", …): starts faster
	Config          string        // additional lines of startup.conf
	StartTimeout    time.Duration // maximum time until the API answers; default 60 s
	Dir             string        // directory of the instance; default a new directory in /tmp, removed by Stop
}

// VPP is a VPP instance.
type VPP struct {
	opts    Options
	bin     string
	dir     string
	ownDir  bool
	prefix  string
	preload string
	plugin  string // path of our own plugin, "" without it
	proc    *os.Process
}

// Find returns the path of the vpp binary: $VPP_PREFIX/bin/vpp if VPP_PREFIX is set, else vpp in PATH. ok reports
// whether it exists.
func Find() (bin string, ok bool) {
	if prefix := os.Getenv("VPP_PREFIX"); prefix != "" {
		bin = filepath.Join(prefix, "bin", "vpp")
		info, err := os.Stat(bin)
		return bin, err == nil && info.Mode().IsRegular()
	}
	bin, err := exec.LookPath("vpp")
	return bin, err == nil
}

// Start runs an instance until the end of the test. It skips the test if there is no VPP.
func Start(t testing.TB, opts Options) *VPP {
	t.Helper()
	v, err := Launch(t.Context(), opts)
	if errors.Is(err, ErrNoVPP) || errors.Is(err, errNoPlugin) {
		t.Skip(err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("VPP's log:\n%s", v.Log())
		}
		v.Stop()
	})
	return v
}

// Launch runs an instance until Stop.
func Launch(ctx context.Context, opts Options) (*VPP, error) {
	bin, ok := Find()
	if !ok {
		return nil, fmt.Errorf("%w: real-VPP tests need an installed VPP 25.10", ErrNoVPP)
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("%w: found %s, but running it needs root", ErrNoVPP, bin)
	}
	reap()
	opts.setDefaults()
	v := &VPP{opts: opts, bin: bin, dir: opts.Dir}
	if v.dir == "" {
		dir, err := os.MkdirTemp("/tmp", "vpp-")
		if err != nil {
			return nil, fmt.Errorf("directory for VPP: %w", err)
		}
		v.dir, v.ownDir = dir, true
	}
	v.prefix = segmentPrefix(os.Getpid(), v.dir)
	err := v.prepare(ctx)
	if err == nil {
		err = v.Run(ctx)
	}
	if err != nil {
		v.Stop()
		return nil, err
	}
	return v, nil
}

func (o *Options) setDefaults() {
	def := func(n *int, to int) {
		if *n <= 0 {
			*n = to
		}
	}
	def(&o.HeapMB, 256)
	def(&o.Buffers, 4096)
	if o.StartTimeout <= 0 {
		o.StartTimeout = time.Minute
	}
}

func (v *VPP) prepare(ctx context.Context) error {
	var err error
	if v.preload, err = v.preloads(ctx); err != nil {
		return err
	}
	if v.opts.Plugin {
		if v.plugin, err = Plugin(ctx, v.opts.Sanitize); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(v.dir, 0o755); err != nil {
		return fmt.Errorf("directory for VPP: %w", err)
	}
	if err := os.WriteFile(v.path("startup.conf"), []byte(v.config()), 0o644); err != nil {
		return fmt.Errorf("startup.conf: %w", err)
	}
	return nil
}

func (v *VPP) path(name string) string { return filepath.Join(v.dir, name) }

// Socket returns the path of the API socket.
func (v *VPP) Socket() string { return v.path("api.sock") }

// StatsSocket returns the path of the socket of the statistics segment.
func (v *VPP) StatsSocket() string { return v.path("stats.sock") }

// CLISocket returns the path of the socket for vppctl.
func (v *VPP) CLISocket() string { return v.path("cli.sock") }

// Dir returns the instance's directory.
func (v *VPP) Dir() string { return v.dir }

// PID returns the process ID, or 0 if no process runs.
func (v *VPP) PID() int {
	if v.proc == nil {
		return 0
	}
	return v.proc.Pid
}

// Running reports whether the process runs. It returns false when the process has ended by itself, for example by a
// crash.
func (v *VPP) Running() bool {
	if v.proc == nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", v.proc.Pid))
	state := strings.TrimSpace(string(stat[strings.LastIndexByte(string(stat), ')')+1:])) // the state follows the name
	return err == nil && !strings.HasPrefix(state, "Z")                                   // Z: ended, but not waited for yet
}

// Log returns the output and the log of the process.
func (v *VPP) Log() string {
	var all strings.Builder
	for _, name := range []string{"out.log", "vpp.log"} {
		data, err := os.ReadFile(v.path(name))
		if err == nil {
			all.Write(data)
		}
	}
	return all.String()
}

// Run starts the process after Kill or Term and waits for its API.
func (v *VPP) Run(ctx context.Context) error {
	if v.proc != nil {
		return errors.New("VPP runs already")
	}
	for tries := 1; ; tries++ {
		if err := v.run(ctx); err != nil {
			return err
		}
		measuring, cancel := context.WithTimeout(ctx, clockMaxWait)
		rate, err := vppclock.Measure(measuring, v.CLISocket(), clockPause)
		cancel()
		if (err != nil || rate.Wrong()) && tries < clockTries && ctx.Err() == nil {
			v.Kill() // same as the supervisor: this VPP's clock is wrong, or VPP is too slow to measure it
			continue
		}
		return nil
	}
}

const (
	clockPause   = 20 * time.Millisecond
	clockMaxWait = 10 * time.Second
	clockTries   = 10
)

func (v *VPP) run(ctx context.Context) error {
	v.clean()
	out, err := os.OpenFile(v.path("out.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("VPP's log: %w", err)
	}
	defer out.Close()
	cmd := v.command()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start VPP: %w", err)
	}
	v.proc = cmd.Process
	err = v.claim()
	if err == nil {
		err = v.await(ctx)
	}
	if err != nil {
		log := v.Log()
		v.Kill()
		return fmt.Errorf("start VPP: %w\n%s", err, log)
	}
	return nil
}

func (v *VPP) command() *exec.Cmd {
	args := []string{v.bin, "-c", v.path("startup.conf")}
	if v.preload != "" {
		args = append([]string{"env", "LD_PRELOAD=" + v.preload}, args...)
	}
	if v.opts.Sanitize != "" { // VPP does not free its memory at exit, and its headers have pointers that are not aligned
		asan := "ASAN_OPTIONS=detect_leaks=0:abort_on_error=1"
		if v.opts.QuarantineMB > 0 {
			asan += fmt.Sprintf(":quarantine_size_mb=%d", v.opts.QuarantineMB)
		}
		args = append([]string{"env", asan, "UBSAN_OPTIONS=halt_on_error=0"}, args...)
	}
	if v.opts.Netns != "" {
		args = append([]string{"ip", "netns", "exec", v.opts.Netns}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = v.dir
	// The terminal's signals are for the test only. The test then stops VPP itself.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// Kill ends the process immediately (SIGKILL), like a crash: sockets and shared memory are left behind.
func (v *VPP) Kill() { v.signal(syscall.SIGKILL) }

// Term ends the process with an orderly shutdown (SIGTERM).
func (v *VPP) Term() { v.signal(syscall.SIGTERM) }

func (v *VPP) signal(s syscall.Signal) {
	if v.proc == nil {
		return
	}
	_ = v.proc.Signal(syscall.SIGCONT) // a stopped process (Freeze) must continue
	_ = v.proc.Signal(s)
	_, _ = v.proc.Wait() // the exit status is that of the signal
	v.proc = nil
}

// Freeze pauses the process without ending it (SIGSTOP).
func (v *VPP) Freeze() error { return v.proc.Signal(syscall.SIGSTOP) }

// Thaw resumes a process that Freeze has paused.
func (v *VPP) Thaw() error { return v.proc.Signal(syscall.SIGCONT) }

// Restart kills the process and starts a new one.
func (v *VPP) Restart(ctx context.Context) error {
	v.Kill()
	return v.Run(ctx)
}

// Stop ends the process and removes everything that it leaves behind.
func (v *VPP) Stop() {
	v.Kill()
	v.clean()
	if v.ownDir {
		_ = os.RemoveAll(v.dir) // a leftover in /tmp is not a reason to fail
	}
}

// clean removes the sockets and the shared memory that a killed VPP leaves behind.
func (v *VPP) clean() {
	leftovers := []string{v.Socket(), v.StatsSocket(), v.CLISocket(), v.path("cli.pid")}
	shm, _ := filepath.Glob("/dev/shm/" + v.prefix + "*") // the pattern is valid
	for _, path := range append(leftovers, shm...) {
		_ = os.Remove(path) // may not exist
	}
}

// CLI runs a debug command and returns what it prints.
func (v *VPP) CLI(command string) (string, error) {
	vppctl := filepath.Join(filepath.Dir(v.bin), "vppctl")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, vppctl, "-s", v.CLISocket(), command).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("vppctl %s: %w: %s", command, err, out)
	}
	return strings.ReplaceAll(string(out), "\r", ""), nil
}
