package vppsup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// spawn starts VPP. The caller's thread must live as long as VPP: the kernel kills VPP when the thread ends, so that VPP never runs without
// its supervisor.
func (s *Supervisor) spawn() (pid int, err error) {
	if err := s.alone(); err != nil {
		return 0, err
	}
	if err := s.clean(); err != nil {
		return 0, err
	}
	env := make([]string, 0, len(os.Environ())+1)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LD_PRELOAD=") {
			env = append(env, v)
		}
	}
	if len(s.cfg.Preload) > 0 {
		env = append(env, "LD_PRELOAD="+strings.Join(s.cfg.Preload, ":"))
	}
	p, err := os.StartProcess(s.cfg.Bin, []string{s.cfg.Bin, "-c", s.startupConf()}, &os.ProcAttr{
		Dir: s.cfg.Settings.RunDir, Env: env, Files: []*os.File{nil, os.Stdout, os.Stderr},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return 0, fmt.Errorf("start VPP: %w", err)
	}
	pid = p.Pid
	return pid, p.Release() // reap waits for all children
}

// startupConf returns the path of VPP's configuration.
func (s *Supervisor) startupConf() string {
	return filepath.Join(s.cfg.Settings.RunDir, "startup.conf")
}

// aloneTimeout is how long another VPP may take to answer.
const aloneTimeout = time.Second

// alone returns an error if another VPP that runs uses the sockets: the host's own, or that of a pod that has not ended yet.
func (s *Supervisor) alone() error {
	socket := s.cfg.Settings.APISocket()
	if greet(socket, aloneTimeout) != nil {
		return nil // no VPP, or the sockets of one that was killed
	}
	return fmt.Errorf("another VPP responds at %s; stop it (systemctl disable --now vpp), or take another --run-dir", socket)
}

// clean removes the files of a VPP that was killed.
func (s *Supervisor) clean() error {
	leftovers := s.cfg.Settings.sockets()
	segments := []string{"/dev/shm/global_vm", "/dev/shm/vpe-api"}
	if p := s.cfg.Settings.Prefix; p != "" {
		segments = []string{"/dev/shm/" + p + "-global_vm", "/dev/shm/" + p + "-vpe-api"}
	}
	for _, path := range append(leftovers, segments...) {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove the files of an earlier VPP: %w", err)
		}
	}
	return nil
}

// exit is the end of a child process.
type exit struct {
	pid    int
	status syscall.WaitStatus
}

// reap waits for all children that have ended: VPP, and orphans that became our children because this is process 1 or their subreaper.
func reap() []exit {
	var all []exit
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return all
		}
		all = append(all, exit{pid, status})
	}
}

// adoptOrphans makes this process the parent of orphans among its descendants, even if it is not process 1.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the subreaper of orphaned processes: %w", err)
	}
	return nil
}

// describe returns how a process ended, for the log.
func describe(w syscall.WaitStatus) string {
	switch {
	case w.Signaled() && w.CoreDump():
		return fmt.Sprintf("killed by %s, core dumped", unix.SignalName(w.Signal()))
	case w.Signaled():
		return "killed by " + unix.SignalName(w.Signal())
	case w.Exited():
		return fmt.Sprintf("exit status %d", w.ExitStatus())
	}
	return fmt.Sprintf("wait status %#x", uint32(w))
}
