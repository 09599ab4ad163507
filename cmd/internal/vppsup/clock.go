package vppsup

import (
	"context"
	"fmt"
	"log/slog"
	"syscall"
	"time"

	"contiv.dev/vswitch/internal/vppclock"
)

const (
	clockPause   = 200 * time.Millisecond
	clockTimeout = time.Minute
	// clockTries is the number of consecutive starts with a wrong clock after which VPP is not restarted any more.
	clockTries = 4
)

// clockCheck measures the clock of each VPP that was started, in its own job.
type clockCheck struct {
	queried chan int // process ID
	found   chan clockFound
	wrong   int // consecutive starts with a wrong clock; used by the loop only
}

type clockFound struct {
	pid  int
	rate vppclock.Rate
}

func newClockCheck() clockCheck {
	return clockCheck{queried: make(chan int, 1), found: make(chan clockFound)}
}

// query requests a measurement of a process's clock. It replaces a previous request that has not been started.
func (c *clockCheck) query(pid int) {
	select {
	case <-c.queried:
	default:
	}
	c.queried <- pid
}

func (c *clockCheck) run(ctx context.Context, cli string, log *slog.Logger) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case pid := <-c.queried:
			measuring, cancel := context.WithTimeout(ctx, clockTimeout)
			rate, err := vppclock.Measure(measuring, cli, clockPause)
			cancel()
			if err != nil {
				log.Debug("VPP's clock is not known", "pid", pid, "error", err)
				continue
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case c.found <- clockFound{pid, rate}:
			}
		}
	}
}

// clockMeasured kills a VPP whose clock is wrong, because only a restart corrects it.
func (s *Supervisor) clockMeasured(f clockFound) {
	switch {
	case f.pid != s.pid || s.stopping:
	case !f.rate.Wrong():
		s.clock.wrong = 0
	case s.clock.wrong+1 >= clockTries:
		s.log.Error("VPP's clock is wrong after every start, so VPP is not restarted again; its timeouts are wrong by this factor",
			"pid", s.pid, "rate", f.rate)
	default:
		s.clock.wrong++
		s.killed = true
		s.signal(syscall.SIGKILL, fmt.Sprintf("its clock counts %s seconds per second: VPP was preempted while it measured the clock rate", f.rate))
	}
}
