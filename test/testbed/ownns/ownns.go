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

// insideEnv names the namespace in the process that tests. It is no name of the product's: programs under test inherit it.
const insideEnv = "TEST_OWNNS"

// Run is m.Run in a namespace whose name begins with the prefix: it starts the test binary once more, in there, with /sys as it
// is seen from there. Without root it is m.Run here.
func Run(m *testing.M, prefix string) int {
	if os.Geteuid() != 0 || os.Getenv(insideEnv) != "" {
		return m.Run()
	}
	name := fmt.Sprintf("%s%d", prefix, os.Getpid())
	if err := run(exec.Command("sh", "-ec", `ip netns add "$0" && ip -n "$0" link set lo up`, name)); err != nil {
		fmt.Fprintln(os.Stderr, "a namespace for the tests:", err)
		return 1
	}
	defer func() { _ = exec.Command("ip", "netns", "del", name).Run() }() // what still runs in it keeps it
	runtime.LockOSThread()                                                // the child ends with the thread that started it
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
