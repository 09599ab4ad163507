package vpptest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// claim records the process IDs of VPP and of its owner, for reap.
func (v *VPP) claim() error {
	note := fmt.Sprintf("%d %d\n", os.Getpid(), v.proc.Pid)
	if err := os.WriteFile(v.path("owner"), []byte(note), 0o644); err != nil {
		return fmt.Errorf("note VPP's owner: %w", err)
	}
	return nil
}

// reap ends the instances of test processes that ended without Stop (a test timeout, a kill), and removes their
// directories. It kills a process only if the command line still contains the directory.
func reap() {
	notes, _ := filepath.Glob("/tmp/vpp-*/owner") // the pattern is valid
	for _, note := range notes {
		data, err := os.ReadFile(note)
		if err != nil {
			continue
		}
		var owner, vpp int
		if n, _ := fmt.Sscan(string(data), &owner, &vpp); n != 2 || syscall.Kill(owner, 0) == nil {
			continue
		}
		dir := filepath.Dir(note)
		cmdline, err := os.ReadFile("/proc/" + strconv.Itoa(vpp) + "/cmdline")
		if err == nil && bytes.Contains(cmdline, []byte(filepath.Join(dir, "startup.conf"))) {
			_ = syscall.Kill(vpp, syscall.SIGKILL) // the process may have ended in the meantime
		}
		shm, _ := filepath.Glob("/dev/shm/" + segmentPrefix(owner, dir) + "*")
		for _, path := range shm {
			_ = os.Remove(path) // another program may be reaping the same instance
		}
		if strings.HasPrefix(dir, "/tmp/vpp-") {
			_ = os.RemoveAll(dir)
		}
	}
}

// segmentPrefix returns the prefix of the names of an instance's shared memory.
func segmentPrefix(owner int, dir string) string {
	return "vpptest-" + strconv.Itoa(owner) + "-" + filepath.Base(dir)
}
