package iptables

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// errLocked means that another program holds iptables' lock for too long.
var errLocked = errors.New("another program holds the iptables lock")

// lockArgs returns the arguments that make iptables-restore itself wait for the lock.
func (e *env) lockArgs() []string {
	if !e.tools.version.atLeast(restoreLocks) {
		return nil
	}
	timeout := e.cfg.LockTimeout
	if timeout <= 0 {
		timeout = defaultLockTimeout
	}
	seconds := int((timeout + time.Second - 1) / time.Second)
	return []string{
		"--wait", strconv.Itoa(seconds),
		"--wait-interval", strconv.FormatInt(e.cfg.LockProbeInterval.Microseconds(), 10),
	}
}

// lockEnv returns the variable with the lock's path, if it is not the default.
func (e *env) lockEnv() []string {
	if e.cfg.LockFilePath == defaultLockFile {
		return nil
	}
	return []string{"XTABLES_LOCKFILE=" + e.cfg.LockFilePath}
}

// lock takes the lock for a version of iptables-restore that does not take it itself. The returned function releases it.
func (e *env) lock(ctx context.Context) (release func(), err error) {
	if e.tools.version.atLeast(restoreLocks) || e.cfg.LockTimeout <= 0 {
		return func() {}, nil
	}
	start := e.cfg.Clock.Now()
	if err := os.MkdirAll(filepath.Dir(e.cfg.LockFilePath), 0o755); err != nil {
		return nil, fmt.Errorf("iptables lock: %w", err)
	}
	fd, err := unix.Open(e.cfg.LockFilePath, unix.O_CREAT|unix.O_RDONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open iptables lock %s: %w", e.cfg.LockFilePath, err)
	}
	for {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		waited := e.cfg.Clock.Now().Sub(start)
		switch {
		case err == nil:
			e.metrics.lockSeconds.Observe(waited.Seconds())
			return func() { unix.Close(fd) }, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			unix.Close(fd)
			return nil, fmt.Errorf("take iptables lock %s: %w", e.cfg.LockFilePath, err)
		case waited >= e.cfg.LockTimeout:
			unix.Close(fd)
			return nil, fmt.Errorf("%w %s for more than %v; find it with `fuser %[2]s`",
				errLocked, e.cfg.LockFilePath, e.cfg.LockTimeout)
		}
		e.metrics.lockRetries.Inc()
		if err := e.cfg.Clock.Sleep(ctx, e.cfg.LockProbeInterval); err != nil {
			unix.Close(fd)
			return nil, fmt.Errorf("iptables lock: %w", err)
		}
	}
}
