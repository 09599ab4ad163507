package main

import (
	"strings"
	"testing"
)

// TestUnknownVariable: variables that look like ours but are not are rejected by all commands, except by the one that becomes the agent,
// because it passes the agent's variables on.
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
