package e2e

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTooFewFiles checks that an agent with a too low limit of open files reports this and exits; before, it hung in etcd and
// ignored SIGTERM.
func TestTooFewFiles(t *testing.T) {
	needs(t, fake)
	r := newNode(t, fake)
	ctx, cancel := context.WithTimeout(r.ctx, 15*time.Second)
	defer cancel()
	dir := t.TempDir()
	cmd := r.Command(ctx, "sh", "-c", "ulimit -n 24; exec "+filepath.Join(binDir, "contiv-agent")+
		" --node-name=a --dataplane=fake --run-dir="+filepath.Join(dir, "run")+" --data-dir="+filepath.Join(dir, "data"))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if ctx.Err() != nil || !errors.As(err, &exit) || !strings.Contains(string(out), "limit of open files is 24") {
		t.Errorf("with 24 files: %v (%v)\n%s", err, ctx.Err(), out)
	}
}
