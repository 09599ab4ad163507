package vppsup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"contiv.dev/vswitch/internal/lifecycle"
)

// Config holds the settings of a Supervisor.
type Config struct {
	Bin       string   // VPP's executable
	Preload   []string // libraries to preload into VPP
	Settings  Settings
	Hugepages string        // HugepagesAuto, …
	Socket    string        // health socket
	Frozen    time.Duration // a VPP that does not respond for this long is killed; 0: never
	Grace     time.Duration // time for VPP to end after a signal
}

// The intervals of the probe: short while the state is changing, else a second.
const (
	probeBusy    = 20 * time.Millisecond
	probeCalm    = time.Second
	probeTimeout = 5 * time.Second
	maxDoublings = 4 // limit of the doublings of the time that a start may take
)

// Supervisor runs VPP. All methods except Status must be called from one goroutine that is locked to its thread.
type Supervisor struct {
	cfg   Config
	log   *slog.Logger
	board board

	pid      int // 0: VPP does not run
	started  time.Time
	ended    time.Time // of the previous process
	answered time.Time // when the API last answered
	backoff  backoff
	stopping bool
	wake     chan struct{} // wakes the probe: VPP was started
	killed   bool          // because it was frozen, or its clock was wrong
	unheard  int           // starts that were killed before VPP answered, since the last start that was quick
	clock    clockCheck
}

// New returns a Supervisor after it has checked the configuration.
func New(cfg Config, log *slog.Logger) (*Supervisor, error) {
	if err := cfg.Settings.Validate(); err != nil {
		return nil, err
	}
	huge, err := chooseHugepages(cfg.Hugepages, "/", cfg.Settings)
	if err != nil {
		return nil, err
	}
	cfg.Settings.Hugepages = huge
	if why := shortOfMemory("/", cfg.Settings); why != "" {
		log.Warn("VPP will run out of memory", "reason", why)
	}
	return &Supervisor{cfg: cfg, log: log, wake: make(chan struct{}, 1), clock: newClockCheck(),
		board: board{s: Status{State: Waiting, Since: time.Now()}}}, nil
}

// Status returns the answer of the health socket.
func (s *Supervisor) Status() Status { return s.board.get() }

// StartupConf returns VPP's configuration.
func (s *Supervisor) StartupConf() string { return s.cfg.Settings.Render() }

// Run runs VPP until it receives a signal other than SIGCHLD, which it passes on to VPP. signals must include SIGCHLD. The caller has locked
// its goroutine to its thread.
func (s *Supervisor) Run(ctx context.Context, signals <-chan os.Signal) error {
	if err := s.prepare(); err != nil {
		return err
	}
	jobs := lifecycle.NewGroup(ctx, s.log)
	defer func() {
		if err := jobs.Stop(probeTimeout + time.Second); err != nil {
			s.log.Warn("background jobs did not stop in time", "error", err)
		}
	}()
	if err := serveHealth(jobs, s.cfg.Socket, s.Status); err != nil {
		return err
	}
	probes := make(chan error)
	jobs.Go("probe", func(ctx context.Context) error { return s.probe(ctx, probes) })
	jobs.Go("clock", func(ctx context.Context) error { return s.clock.run(ctx, s.cfg.Settings.CLISocket(), s.log) })
	return s.loop(signals, probes, jobs.Failed())
}

// prepare writes VPP's configuration.
func (s *Supervisor) prepare() error {
	if err := adoptOrphans(); err != nil {
		return err
	}
	if err := os.MkdirAll(s.cfg.Settings.RunDir, 0o755); err != nil {
		return fmt.Errorf("directory of VPP's sockets: %w", err)
	}
	if err := os.WriteFile(s.startupConf(), []byte(s.StartupConf()), 0o644); err != nil {
		return fmt.Errorf("startup.conf: %w", err)
	}
	s.log.Info("start-up configuration written", "path", s.startupConf(), "hugepages", s.cfg.Settings.Hugepages,
		"nics", s.cfg.Settings.NICs)
	return nil
}

func (s *Supervisor) loop(signals <-chan os.Signal, probes <-chan error, failed <-chan error) error {
	next := time.NewTimer(0) // the time to start VPP or, when stopping, to kill it
	defer next.Stop()
	for {
		select {
		case sig := <-signals:
			if sig == syscall.SIGCHLD {
				if done := s.children(next); done {
					return nil
				}
			} else if done := s.stop(sig, next); done {
				return nil
			}
		case <-next.C:
			if s.stopping {
				s.signal(syscall.SIGKILL, "it did not end in time")
			} else if s.pid == 0 {
				s.start(next)
			}
		case err := <-probes:
			s.probed(err, time.Now())
		case found := <-s.clock.found:
			s.clockMeasured(found)
		case err := <-failed:
			s.signal(syscall.SIGKILL, "the supervisor cannot continue")
			return fmt.Errorf("the supervisor cannot continue: %w", err)
		}
	}
}

// start starts VPP; if that fails, it schedules a retry.
func (s *Supervisor) start(next *time.Timer) {
	s.started = time.Now()
	pid, err := s.spawn()
	if err != nil {
		delay := s.backoff.next(0)
		s.log.Error("VPP does not start", "error", err, "retryIn", delay)
		next.Reset(max(delay, minDelay))
		return
	}
	s.pid, s.answered, s.killed = pid, time.Time{}, false
	s.board.change(func(b *Status) { b.State, b.PID, b.Since, b.Starts = Starting, pid, s.started, b.Starts+1 })
	s.log.Info("VPP started", "pid", pid)
	select {
	case s.wake <- struct{}{}:
	default: // the probe has not processed the last start yet
	}
}

// children handles the end of children. It returns true if VPP has ended after a stop.
func (s *Supervisor) children(next *time.Timer) (done bool) {
	for _, e := range reap() {
		if e.pid != s.pid {
			s.log.Debug("orphan reaped", "pid", e.pid)
			continue
		}
		s.pid, s.ended = 0, time.Now()
		lived, how := s.ended.Sub(s.started), describe(e.status)
		if s.stopping {
			s.board.change(func(b *Status) { b.State, b.PID, b.Since, b.LastExit = Stopped, 0, s.ended, how })
			s.log.Info("VPP ended", "reason", how)
			done = true
			continue
		}
		delay := s.backoff.next(lived)
		s.board.change(func(b *Status) { b.State, b.PID, b.Since, b.LastExit = Waiting, 0, s.ended, how })
		s.log.Error("VPP crashed", "pid", e.pid, "reason", how, "ran", lived.Round(time.Millisecond), "retryIn", delay)
		next.Reset(delay)
	}
	return done
}

// stop passes the signal on. It returns true if VPP does not run.
func (s *Supervisor) stop(sig os.Signal, next *time.Timer) (done bool) {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return false
	}
	s.stopping = true
	if s.pid == 0 {
		return true
	}
	s.signal(number, "asked to end")
	next.Reset(s.cfg.Grace)
	return false
}

// signal sends VPP a signal. The process is our child and not reaped yet, so its process ID cannot have been reused.
func (s *Supervisor) signal(sig syscall.Signal, why string) {
	if s.pid == 0 {
		return
	}
	s.log.Info("sending a signal to VPP", "signal", sig, "reason", why)
	if err := syscall.Kill(s.pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		s.log.Error("VPP did not get the signal", "error", err)
	}
}

// probe connects to VPP's API periodically.
func (s *Supervisor) probe(ctx context.Context, results chan<- error) error {
	timer := time.NewTimer(probeBusy)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		case <-s.wake:
		}
		err := greet(s.cfg.Settings.APISocket(), probeTimeout)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case results <- err:
		}
		if err == nil {
			timer.Reset(probeCalm)
		} else {
			timer.Reset(probeBusy)
		}
	}
}

// probed handles the result of a probe.
func (s *Supervisor) probed(err error, now time.Time) {
	if s.pid == 0 || s.stopping {
		return
	}
	state := s.Status().State
	if err == nil {
		s.answered = now
		if state != Up {
			s.up(state, now)
		}
		return
	}
	since := s.started
	if !s.answered.IsZero() {
		since = s.answered
		if state == Up {
			s.board.change(func(b *Status) { b.State, b.Since = Silent, now })
			s.log.Warn("VPP does not respond", "pid", s.pid, "error", err)
		}
	}
	if s.cfg.Frozen > 0 && now.Sub(since) > s.limit() && !s.killed {
		s.killed = true
		if s.answered.IsZero() {
			s.unheard++
		}
		s.signal(syscall.SIGKILL, fmt.Sprintf("frozen: no reply for %s", now.Sub(since).Round(time.Second)))
	}
}

// limit returns how long VPP may not answer. The limit for a VPP that is starting doubles after each start that was killed: on a machine with
// busy processors a start may need more than Frozen, and VPP would be killed repeatedly.
func (s *Supervisor) limit() time.Duration {
	if !s.answered.IsZero() {
		return s.cfg.Frozen
	}
	return s.cfg.Frozen << min(s.unheard, maxDoublings)
}

func (s *Supervisor) up(was State, now time.Time) {
	outage := time.Duration(0)
	if was == Starting && !s.ended.IsZero() {
		outage = now.Sub(s.ended)
	}
	s.board.change(func(b *Status) {
		b.State, b.Since = Up, now
		if outage > 0 {
			b.LastOutage = outage
		}
	})
	if now.Sub(s.started) < s.cfg.Frozen/2 {
		s.unheard = 0
	}
	if was == Starting {
		s.clock.query(s.pid)
	}
	s.log.Info("VPP is up", "pid", s.pid, "took", now.Sub(s.started).Round(time.Millisecond),
		"outage", outage.Round(time.Millisecond))
}
