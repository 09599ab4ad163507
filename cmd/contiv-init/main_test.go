package main

import (
	"strings"
	"testing"
)

// TestUnknownVariable: variables that look like ours and are not are refused by all commands but that which becomes the agent, whose
// variables it passes on.
func TestUnknownVariable(t *testing.T) {
	t.Setenv("CONTIV_NODENAME", "a")
	cmd := newCommand()
	cmd.SetArgs([]string{"preflight"})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "did you mean CONTIV_NODE_NAME?") {
		t.Errorf("error %v", err)
	}
	cmd = newCommand()
	cmd.SetArgs([]string{"agent", "--kubeconfig=/does/not/exist", "--", "/does/not/exist"})
	if err := cmd.ExecuteContext(t.Context()); err == nil || strings.Contains(err.Error(), "CONTIV_NODENAME") {
		t.Errorf("error %v", err)
	}
}
