package nsdo

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Namespace is an open network namespace. The nil Namespace is the process's own. Safe for concurrent use.
type Namespace struct {
	path string
	fd   int
}

// Open opens the namespace that path (/run/netns/…, /proc/…/ns/net) stands for; "" gives the process's own, nil.
func Open(path string) (*Namespace, error) {
	if path == "" {
		return nil, nil
	}
	// What is no namespace, a FIFO for example, must not be waited for.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open network namespace %s: %w", path, err)
	}
	return &Namespace{path: path, fd: fd}, nil
}

// Close lets go of the namespace; the namespace itself stays.
func (n *Namespace) Close() error {
	if n == nil {
		return nil
	}
	return unix.Close(n.fd)
}

// String names the namespace in messages.
func (n *Namespace) String() string {
	if n == nil {
		return "the agent's network namespace"
	}
	return "network namespace " + n.path
}

// Do runs f on a thread inside the namespace and waits for it. f must not start goroutines that need the namespace. A child
// process that f starts lives in the namespace.
func (n *Namespace) Do(f func() error) error {
	if n == nil {
		return f()
	}
	runtime.LockOSThread()
	own, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
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
		// The thread stays locked and dies with its goroutine: going on here would configure the wrong namespace.
		return fmt.Errorf("leave %s: %w", n, back)
	}
	runtime.UnlockOSThread()
	return err
}
