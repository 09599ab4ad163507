package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

const (
	// nodeLockName is an abstract socket, of which there is one per network namespace: it goes with the process that has it.
	nodeLockName = "@contiv-agent/dataplane"
	// takeOver is how long an agent that is about to stop is waited for.
	takeOver   = 10 * time.Second
	retryEvery = 50 * time.Millisecond
)

// nodeLock is the right to program the network namespace that the agent is in. A second agent, with another run-dir, would know
// nothing of the pods of the first one and remove them.
type nodeLock struct{ listener net.Listener }

// lockNode waits for the agent before. What moves no packets needs no lock.
func lockNode(ctx context.Context, dataplane, name string, patience time.Duration) (*nodeLock, error) {
	if dataplane == dataplaneFake {
		return &nodeLock{}, nil
	}
	giveUp := time.Now().Add(patience)
	for {
		listener, err := net.Listen("unix", name)
		switch {
		case err == nil:
			return &nodeLock{listener}, nil
		case !errors.Is(err, syscall.EADDRINUSE):
			return nil, fmt.Errorf("lock %s: %w", name, err)
		case time.Now().After(giveUp):
			return nil, errors.New("another contiv-agent programs the network of this node: stop it first (ss -xlp shows which " +
				"process has " + name + ")")
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(retryEvery):
		}
	}
}

// release lets the next agent have the node.
func (l *nodeLock) release() error {
	if l.listener == nil {
		return nil
	}
	return l.listener.Close()
}
