package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Process is a running program whose output is written to a file.
type Process struct {
	Name    string
	LogFile string
	cmd     *exec.Cmd
	exited  chan error
}

// Start runs a command, for example one of Namespace.Command; its output is appended to dir/name.log.
func Start(cmd *exec.Cmd, dir, name string) (*Process, error) {
	p := &Process{Name: name, LogFile: filepath.Join(dir, name+".log"), cmd: cmd, exited: make(chan error, 1)}
	log, err := os.OpenFile(p.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", name, err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	waitFor(p)
	return p, nil
}

// waitFor reaps the process; its goroutine ends with the process.
func waitFor(p *Process) {
	go func() { p.exited <- p.cmd.Wait() }() //lint:allow go: bound to the child process, joined by Kill and Stop
}

// PID returns the process's ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill sends SIGKILL and waits until the process has ended.
func (p *Process) Kill() error { return p.end(syscall.SIGKILL, 30*time.Second) }

// Stop sends SIGTERM and waits; a process that does not end within the timeout is killed, which is an error.
func (p *Process) Stop(timeout time.Duration) error { return p.end(syscall.SIGTERM, timeout) }

func (p *Process) end(sig syscall.Signal, timeout time.Duration) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.Name, err)
	}
	select {
	case <-p.exited:
		p.exited <- nil
		return nil
	case <-time.After(timeout):
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
	p.exited <- nil
	return fmt.Errorf("%s did not end within %s of %s; see %s", p.Name, timeout, sig, p.LogFile)
}

// Running returns false once the process has ended by itself.
func (p *Process) Running() bool {
	select {
	case err := <-p.exited:
		p.exited <- err
		return false
	default:
		return true
	}
}
