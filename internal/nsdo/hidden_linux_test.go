package nsdo

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// hiddenEnv makes TestHiddenProcess run in the child process.
const hiddenEnv = "NSDO_TEST_HIDDEN"

// TestHiddenProcess: where /proc is mounted with hidepid, a process that exists is distinguished from one that has ended. It runs in a child process
// with mounts of its own and without CAP_SYS_PTRACE; the parent is the process that is not visible.
func TestHiddenProcess(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: mounts /proc")
	}
	if os.Getenv(hiddenEnv) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestHiddenProcess$", "-test.v")
		cmd.Env = append(os.Environ(), hiddenEnv+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	ended := exec.Command("/bin/true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // the rights are those of the thread, which ends
	if err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("proc", "/proc", "proc", 0, "hidepid=2,gid=65534"),
		dropPtrace(),
	); err != nil {
		t.Fatal(err)
	}
	path := func(pid int) string { return fmt.Sprintf("/proc/%d/ns/net", pid) }
	n, err := Open(path(os.Getppid()))
	if err == nil || errors.Is(err, ErrGone) || !strings.Contains(err.Error(), "hidepid") || !strings.Contains(err.Error(), "CAP_SYS_PTRACE") {
		t.Errorf("a hidden process: %v, %v", n, err)
	}
	for what, pid := range map[string]int{"a process that has ended": ended.Process.Pid, "no process": 1 << 30} {
		if n, err := Open(path(pid)); !errors.Is(err, ErrGone) {
			t.Errorf("%s: %v, %v, want ErrGone", what, n, err)
		}
	}
	n, err = Open(path(os.Getpid()))
	if err != nil {
		t.Fatal("the test itself:", err)
	}
	defer n.Close()
	for p, want := range map[string]bool{path(os.Getppid()): true, path(os.Getpid()): false, path(ended.Process.Pid): false, "/proc/self/ns/net": false,
		"/run/netns/x": false} {
		if Hidden(p) != want {
			t.Errorf("%s is hidden: %t", p, !want)
		}
	}
}

// dropPtrace takes CAP_SYS_PTRACE from the calling thread.
func dropPtrace() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	data[0].Effective &^= 1 << unix.CAP_SYS_PTRACE
	data[0].Permitted &^= 1 << unix.CAP_SYS_PTRACE
	return unix.Capset(&header, &data[0])
}
