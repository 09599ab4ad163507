package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/poll"
)

// process is a program inside a node. It ends with the node at the latest.
type process struct {
	name string
	pid  int // of the program itself, in this machine's PID namespace
	log  string
}

// enter returns a command that runs in all the node's namespaces.
func (n *node) enter(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{
		"-t", strconv.Itoa(n.init), "-m", "-p", "-n", "-u", "--", name}, args...)...)
	cmd.Env = append(testbed.ProductEnv(), "PATH="+filepath.Join(cacheDir(), "bin")+":"+os.Getenv("PATH"))
	return cmd
}

// sh runs a shell command in the node.
func (n *node) sh(ctx context.Context, command string) (string, error) {
	out, err := n.enter(ctx, "sh", "-c", command).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %s: %w: %s", n.name, command, err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// start runs a program in the node; its output is appended to the node's log directory.
func (n *node) start(name string, env []string, argv ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(n.dir, "log", name+".log")}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := n.enter(context.Background(), argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s in %s: %w", name, n.name, err)
	}
	go func() { _ = cmd.Wait() }() //lint:allow go: reaps nsenter, which ends with the program
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err = poll.Until(ctx, 2*time.Millisecond, func() error {
		p.pid, err = onlyChild(cmd.Process.Pid)
		return err
	})
	return p, err
}

// onlyChild returns the process that nsenter has started.
func onlyChild(parent int) (int, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(data)))
}

func (p *process) running() bool { return alive(p.pid) }

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, ok := strings.Cut(string(data), ") ")
	return ok && !strings.HasPrefix(state, "Z")
}

// end sends a signal and waits until the program has ended.
func (p *process) end(sig syscall.Signal) error { return endProcess(p.pid, p.name, sig) }

func endProcess(pid int, name string, sig syscall.Signal) error {
	if err := syscall.Kill(pid, sig); err != nil {
		return fmt.Errorf("signal %s: %w", name, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	return poll.Until(ctx, time.Millisecond, func() error {
		if alive(pid) {
			return fmt.Errorf("%s has not ended after %s", name, sig)
		}
		return nil
	})
}

// tail returns the end of a log file.
func tail(file string, lines int) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	for i, line := range all {
		all[i] = line[:min(len(line), 400)]
	}
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// commandLine returns the command line of a process.
func commandLine(pid int) ([]string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return nil, errors.New("the process has ended")
	}
	return strings.Split(strings.TrimRight(string(data), "\x00"), "\x00"), nil
}

// linesWith returns the lines of a text that contain one of the words.
func linesWith(text string, words ...string) (found []string) {
	for line := range strings.Lines(text) {
		for _, word := range words {
			if strings.Contains(line, word) {
				found = append(found, strings.TrimSpace(line))
				break
			}
		}
	}
	return found
}
