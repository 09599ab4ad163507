package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestOneAgentPerNode: a second agent, whatever its directories, does not get at the dataplane before the first has let go.
func TestOneAgentPerNode(t *testing.T) {
	name := fmt.Sprintf("@contiv-agent/test-%d", os.Getpid())
	first, err := lockNode(t.Context(), dataplaneLinux, name, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockNode(t.Context(), dataplaneVPP, name, 0); err == nil || !strings.Contains(err.Error(), "stop it first") {
		t.Errorf("second agent: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lockNode(ended, dataplaneVPP, name, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("told to end while it waits: %v", err)
	}
	if fake, err := lockNode(t.Context(), dataplaneFake, name, 0); err != nil || fake.release() != nil {
		t.Errorf("a fake moves no packets and needs no lock: %v", err)
	}
	time.AfterFunc(10*time.Millisecond, func() { _ = first.release() })
	second, err := lockNode(t.Context(), dataplaneLinux, name, time.Minute)
	if err != nil {
		t.Fatalf("after the first has stopped: %v", err)
	}
	if err := second.release(); err != nil {
		t.Error(err)
	}
}
