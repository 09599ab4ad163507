package ownns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
)

// insideEnv has the name of the namespace in the process that runs the tests. It does not have the product's prefix, because
// programs under test inherit it.
const insideEnv = "TEST_OWNNS"

// Run runs m.Run in a namespace whose name begins with the prefix: it starts the test binary again in that namespace, with the
// /sys of the namespace. Without root it runs m.Run in the current namespace.
func Run(m *testing.M, prefix string) int {
	if os.Geteuid() != 0 || os.Getenv(insideEnv) != "" {
		return m.Run()
	}
	name := fmt.Sprintf("%s%d", prefix, os.Getpid())
	if err := run(exec.Command("sh", "-ec", `ip netns add "$0" && ip -n "$0" link set lo up`, name)); err != nil {
		fmt.Fprintln(os.Stderr, "a namespace for the tests:", err)
		return 1
	}
	defer func() { _ = exec.Command("ip", "netns", "del", name).Run() }() // a process that still runs in it keeps it
	runtime.LockOSThread()                                                // the child is killed when the thread that started it ends
	cmd := exec.Command("ip", append([]string{"netns", "exec", name, os.Args[0]}, os.Args[1:]...)...)
	cmd.Env = append(os.Environ(), insideEnv+"="+name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := run(cmd)
	var failed *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &failed) && failed.ExitCode() > 0:
		return failed.ExitCode()
	}
	fmt.Fprintf(os.Stderr, "tests in the namespace %s: %v\n", name, err)
	return 1
}

func run(cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
