package nsdo

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrGone reports that a network namespace does not exist (any more). A retry does not help.
var ErrGone = errors.New("network namespace is gone")

// Namespace is an open network namespace. The nil Namespace is the process's own. Safe for concurrent use.
type Namespace struct {
	path string // "": see Current
	fd   int
	id   ID
}

// ID identifies a network namespace independently of its path.
type ID struct {
	dev, ino uint64
}

// Open opens the namespace at path (/run/netns/…, /proc/…/ns/net); "" returns nil, the process's own. The error is ErrGone if no namespace
// exists there (any more): when a namespace is unmounted, an ordinary file remains.
func Open(path string) (*Namespace, error) {
	if path == "" {
		return nil, nil
	}
	// Files that are not namespaces are not opened: opening a FIFO could block until its other end is opened, and opening a device could
	// have side effects.
	var fs unix.Statfs_t
	err := unix.Statfs(path, &fs)
	if err == nil && fs.Type != unix.NSFS_MAGIC {
		return nil, fmt.Errorf("open %s: not a namespace: %w", path, ErrGone)
	}
	n := &Namespace{path: path}
	if err == nil {
		n.fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	}
	if errors.Is(err, unix.ENOENT) && Hidden(path) {
		return nil, fmt.Errorf("open network namespace %s: the process exists but is not visible to the agent, because /proc is mounted with hidepid: "+
			"give the agent CAP_SYS_PTRACE, or mount /proc without hidepid", path)
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOTDIR) {
		return nil, fmt.Errorf("open %s: %w (%w)", path, ErrGone, err)
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return nil, fmt.Errorf("open network namespace %s: %w; give the agent CAP_SYS_PTRACE", path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open network namespace %s: %w", path, err)
	}
	return n.identified()
}

// Hidden reports whether a path in /proc belongs to a process that exists but is not visible, because /proc is mounted with hidepid: for such a
// path the kernel returns the same error as for a process that does not exist.
func Hidden(path string) bool {
	rest, ok := strings.CutPrefix(filepath.Clean(path), "/proc/")
	if !ok {
		return false
	}
	process, _, _ := strings.Cut(rest, "/")
	pid, err := strconv.Atoi(process)
	if err != nil || pid <= 0 {
		return false
	}
	var st unix.Stat_t
	if unix.Lstat("/proc/"+process, &st) == nil {
		return false
	}
	return !errors.Is(unix.Kill(pid, 0), unix.ESRCH) // signal 0 only checks that there is such a process
}

// Current opens the namespace of the calling thread.
func Current() (*Namespace, error) {
	fd, err := unix.Open(threadNS, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the agent's network namespace: %w", err)
	}
	return (&Namespace{fd: fd}).identified()
}

const threadNS = "/proc/thread-self/ns/net"

// identified returns n with its identity. It closes n if n is not a namespace.
func (n *Namespace) identified() (*Namespace, error) {
	var (
		fs unix.Statfs_t
		st unix.Stat_t
	)
	err := errors.Join(unix.Fstatfs(n.fd, &fs), unix.Fstat(n.fd, &st))
	if err == nil && fs.Type != unix.NSFS_MAGIC { // it was unmounted after Statfs
		err = fmt.Errorf("not a namespace: %w", ErrGone)
	}
	if err != nil {
		unix.Close(n.fd)
		return nil, fmt.Errorf("%s: %w", n, err)
	}
	n.id = ID{st.Dev, st.Ino}
	return n, nil
}

// Close closes the handle. The namespace itself stays.
func (n *Namespace) Close() error {
	if n == nil {
		return nil
	}
	return unix.Close(n.fd)
}

// ID returns the identity of an open namespace. The nil Namespace has none.
func (n *Namespace) ID() ID { return n.id }

// FD returns the file descriptor of an open namespace, for requests that refer to a namespace by descriptor. The nil Namespace has none.
func (n *Namespace) FD() int { return n.fd }

// String returns the name of the namespace in messages.
func (n *Namespace) String() string {
	if n == nil || n.path == "" {
		return "the agent's network namespace"
	}
	return "network namespace " + n.path
}

// Do runs f on a thread inside the namespace and waits for it. f must not start goroutines that need the namespace. A child process that f
// starts runs in the namespace.
func (n *Namespace) Do(f func() error) error {
	if n == nil {
		return f()
	}
	err := errors.New("the function ended its goroutine")
	onOwnThread(func() { err = n.onThread(f) })
	return err
}

// onOwnThread runs f on a locked thread and waits for it. If f does not unlock the thread, the thread ends, so that the caller's thread is never in
// the wrong namespace.
//
// It is not the first thread of the process. The first thread stands for the process: kubectl exec and nsenter look up its namespaces, and it cannot
// end while the process runs.
func onOwnThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		defer runtime.UnlockOSThread()
		onOwnThread(f) // the first thread is locked, so this is another one
	}()
	<-done
}

// onThread runs f in the namespace. The thread stays locked if it cannot leave the namespace.
func (n *Namespace) onThread(f func() error) error {
	own, err := unix.Open(threadNS, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("open the thread's network namespace: %w", err)
	}
	defer unix.Close(own)
	if err := unix.Setns(n.fd, unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter %s: %w", n, err)
	}
	err = f()
	if back := unix.Setns(own, unix.CLONE_NEWNET); back != nil {
		return errors.Join(err, fmt.Errorf("leave %s: %w", n, back))
	}
	runtime.UnlockOSThread()
	return err
}
