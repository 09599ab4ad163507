package k8s

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed/poll"
)

// machine is a network namespace with a directory, in which programs run until the end of the test.
type machine struct {
	t     *testing.T
	dir   string
	netns string
}

func newMachine(t *testing.T, prefix string) *machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for a network namespace")
	}
	m := &machine{t: t, dir: t.TempDir(), netns: fmt.Sprintf("%s%d", prefix, os.Getpid())}
	m.run("ip", "netns", "add", m.netns)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", m.netns).Run() })
	m.inside("ip", "link", "set", "lo", "up")
	return m
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, name) }

func (m *machine) write(name string, data []byte) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.path(name)), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.path(name), data, 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) run(args ...string) {
	m.t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		m.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (m *machine) command(args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", m.netns}, args...)...)
}

func (m *machine) inside(args ...string) {
	m.t.Helper()
	m.run(append([]string{"ip", "netns", "exec", m.netns}, args...)...)
}

// program starts a program, given its path.
func (m *machine) program(program string, args ...string) {
	m.t.Helper()
	cmd, name, t := m.command(append([]string{program}, args...)...), filepath.Base(program), m.t
	log, err := os.CreateTemp(m.dir, name+".*.log")
	if err != nil {
		m.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, m.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name()) // the log is only for a failure message
			t.Logf("%s: …%s", name, text[max(0, len(text)-1500):])
		}
	})
}

func (m *machine) eventually(what string, ok func() bool) {
	m.t.Helper()
	poll.Await(m.t, what, time.Minute, ok)
}
