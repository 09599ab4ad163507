package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// takeOver is how long an agent that is about to stop is waited for.
	takeOver   = 10 * time.Second
	retryEvery = 50 * time.Millisecond
)

// errLocked says that another process has the lock.
var errLocked = errors.New("another process has it")

// nodeLock is the right to program the network namespace that the agent is in. A second agent, with another run-dir, would know
// nothing of the pods of the first one and remove them. The lock is on a file that only root can open, and goes with the process.
type nodeLock struct{ file *os.File }

// lockNode waits for the agent before. What moves no packets needs no lock.
func lockNode(ctx context.Context, dataplane, path string, timeout time.Duration) (*nodeLock, error) {
	if dataplane == dataplaneFake {
		return &nodeLock{}, nil
	}
	if err := privateDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("lock of the dataplane: %w", err)
	}
	giveUp := time.Now().Add(timeout)
	for {
		file, err := tryLock(path)
		switch {
		case err == nil:
			return &nodeLock{file}, nil
		case !errors.Is(err, errLocked):
			return nil, fmt.Errorf("lock %s: %w", path, err)
		case time.Now().After(giveUp):
			return nil, fmt.Errorf("another contiv-agent programs the network of this node: stop it first (process %s; it has %s "+
				"locked)", holder(path), path)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(retryEvery):
		}
	}
}

// holder is the process that has the lock, by its own word.
func holder(path string) string {
	text, err := os.ReadFile(path)
	if pid := strings.TrimSpace(string(text)); err == nil && pid != "" {
		return pid
	}
	return "unknown"
}
