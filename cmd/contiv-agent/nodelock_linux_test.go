package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestOneAgentPerNode: a second agent, whatever its directories, cannot use the dataplane before the first one has released the lock.
func TestOneAgentPerNode(t *testing.T) {
	name := filepath.Join(t.TempDir(), "run", "dataplane.lock")
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
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock file is left: %v", err)
	}
}

// TestLockIsRootsOwn: another user of the node cannot block the start of the agent, as was possible with a lock name that any user can take.
func TestLockIsRootsOwn(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root to become another user")
	}
	otherHolder, err := net.Listen("unix", "@contiv-agent/dataplane") // the former name of the lock
	if err == nil {
		defer otherHolder.Close()
	}
	base := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(base), 0o755), os.Chmod(base, 0o755)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(base, "run", "dataplane.lock")
	lock, err := lockNode(t.Context(), dataplaneLinux, path, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"flock -n " + path + " true", "flock -n " + filepath.Dir(path) + "/other true",
		"ln -s /etc/passwd " + filepath.Dir(path) + "/x"} {
		cmd := exec.Command("sh", "-c", command)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("user 65534 can: %s: %s", command, out)
		}
	}
	if err := lock.release(); err != nil {
		t.Error(err)
	}
	open := filepath.Join(base, "open")
	if err := errors.Join(os.Mkdir(open, 0o755), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	if _, err := lockNode(t.Context(), dataplaneLinux, filepath.Join(open, "l"), 0); err == nil ||
		!strings.Contains(err.Error(), "mode 0755") {
		t.Errorf("a directory that all users can write to: %v", err)
	}
	link := filepath.Join(base, "run", "link")
	if err := os.Symlink("/etc/hostname", link); err != nil {
		t.Fatal(err)
	}
	if _, err := lockNode(t.Context(), dataplaneLinux, link, 0); err == nil {
		t.Error("a link was followed")
	}
}
