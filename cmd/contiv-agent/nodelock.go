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
	// takeOver is how long an agent waits for the previous one, which may be about to stop.
	takeOver   = 10 * time.Second
	retryEvery = 50 * time.Millisecond
)

// errLocked means that another process holds the lock.
var errLocked = errors.New("another process has it")

// nodeLock is the right to program the network namespace of the agent. A second agent, with another run-dir, would not have the records of the
// first one's pods and would remove them. The lock is on a file that only root can open, and is released when the process ends.
type nodeLock struct{ file *os.File }

// lockNode waits for the previous agent to release the lock. A dataplane that moves no packets needs no lock.
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

// holder returns the process ID that the lock's holder has written into the file.
func holder(path string) string {
	text, err := os.ReadFile(path)
	if pid := strings.TrimSpace(string(text)); err == nil && pid != "" {
		return pid
	}
	return "unknown"
}
