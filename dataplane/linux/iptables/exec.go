package iptables

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/nsdo"
)

// runner runs programs and reads files of the system. Tests use one that injects faults.
type runner interface {
	// has reports whether a program of this name exists.
	has(program string) bool
	// run runs a program until it ends. An exit code other than 0 is an *exitError.
	run(ctx context.Context, c command) error
	// procNet reads a file of the network namespace's /proc/net.
	procNet(name string) ([]byte, error)
	// nftTables returns the names of a family's tables in nf_tables.
	nftTables(f table.Family) ([]string, error)
}

// command is one run of a program.
type command struct {
	program string
	args    []string
	env     []string // in addition to the agent's own
	input   []byte
	line    func([]byte) // called for each line of output; the line is valid until it returns
}

// exitError is the failure of a program.
type exitError struct {
	program string
	code    int
	stderr  string
}

func (e *exitError) Error() string {
	return fmt.Sprintf("%s ended with code %d: %s", e.program, e.code, strings.Join(strings.Fields(e.stderr), " "))
}

// system is the runner for a network namespace of the real system.
type system struct{ ns *nsdo.Namespace }

func (s system) has(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

func (s system) procNet(name string) (out []byte, err error) {
	err = s.ns.Do(func() (err error) {
		out, err = os.ReadFile(filepath.Join("/proc/thread-self/net", name))
		return err
	})
	return out, err
}

func (s system) nftTables(f table.Family) ([]string, error) {
	c, err := wire.Dial(s.ns)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	proto := uint8(unix.NFPROTO_IPV4)
	if f == table.IPv6 {
		proto = unix.NFPROTO_IPV6
	}
	return wire.Tables(c, proto)
}

const (
	maxStderr = 16 << 10
	maxLine   = 1 << 20
)

func (s system) run(ctx context.Context, c command) error {
	cmd := exec.CommandContext(ctx, c.program, c.args...)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.WaitDelay = time.Second
	if c.input != nil {
		cmd.Stdin = bytes.NewReader(c.input)
	}
	stderr := &bounded{}
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("run %s: %w", c.program, err)
	}
	// The child process runs in the namespace of the thread that starts it.
	if err := s.ns.Do(cmd.Start); err != nil {
		return fmt.Errorf("run %s in %s: %w", c.program, s.ns, err)
	}
	read := eachLine(stdout, c.line)
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("run %s: %w", c.program, ctx.Err())
	case errors.As(err, &exit):
		return &exitError{program: c.program, code: exit.ExitCode(), stderr: stderr.String()}
	case err != nil:
		return fmt.Errorf("run %s: %w", c.program, err)
	case read != nil:
		return fmt.Errorf("read from %s: %w", c.program, read)
	}
	return nil
}

func eachLine(r interface{ Read([]byte) (int, error) }, each func([]byte)) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 64<<10), maxLine)
	for sc.Scan() {
		if each != nil {
			each(sc.Bytes())
		}
	}
	return sc.Err()
}

// bounded stores the first maxStderr bytes written to it.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, maxStderr-b.Len()))])
	return len(p), nil
}
