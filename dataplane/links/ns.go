package links

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/nb/linux/namespace"
)

// nsID identifies a network namespace, whatever path leads to it.
type nsID struct {
	dev, ino uint64
}

// nsHandle is an open network namespace and a socket inside it.
type nsHandle struct {
	path string // "" is the agent's own
	fd   netns.NsHandle
	id   nsID
	sock *sock
}

func (h *nsHandle) String() string {
	if h.path == "" {
		return "the agent's namespace"
	}
	return "namespace " + h.path
}

// nsPath is the file that stands for the namespace ref, or "" for the agent's own.
func (b *Backend) nsPath(ref *linux_namespace.NetNamespace) string {
	switch ref.GetType() {
	case linux_namespace.NetNamespace_NSID:
		return filepath.Join(b.netnsDir, ref.GetReference())
	case linux_namespace.NetNamespace_PID:
		return filepath.Join(b.procDir, ref.GetReference(), "ns/net")
	case linux_namespace.NetNamespace_FD:
		return filepath.Clean(ref.GetReference())
	}
	return ""
}

// enter gives the handle of the namespace at path, opening it unless this flush already did.
func (b *Backend) enter(path string) (*nsHandle, error) {
	if h := b.open[path]; h != nil {
		return h, nil
	}
	h, err := b.openNS(path)
	if err != nil {
		return nil, err
	}
	b.open[path] = h
	return h, nil
}

func (b *Backend) openNS(path string) (*nsHandle, error) {
	if path == "" {
		return b.openHost()
	}
	fd, err := openNSFile(path)
	if err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOTDIR) {
			return nil, fmt.Errorf("%s: %w", path, ErrNamespaceGone)
		}
		return nil, fmt.Errorf("open network namespace %s: %w", path, err)
	}
	h := &nsHandle{path: path, fd: netns.NsHandle(fd)}
	if h.id, err = identify(fd); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	host, err := b.enter("")
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	if h.id == host.id {
		unix.Close(fd)
		return host, nil
	}
	err = b.inNS(h, func() (err error) {
		h.sock, err = newSock(b.timeout, b.rbuf)
		return err
	})
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("open a netlink socket in %s: %w", path, err)
	}
	return h, nil
}

// openNSFile opens the file of a namespace and nothing else: to open a FIFO waits for its other end, to open a device may do
// something.
func openNSFile(path string) (int, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return -1, err
	}
	if fs.Type != unix.NSFS_MAGIC {
		return -1, fmt.Errorf("not a namespace: %w", ErrNamespaceGone)
	}
	return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
}

// openHost opens the namespace the agent runs in.
func (b *Backend) openHost() (*nsHandle, error) {
	fd, err := netns.Get()
	if err != nil {
		return nil, fmt.Errorf("open the agent's network namespace: %w", err)
	}
	h := &nsHandle{fd: fd}
	if h.id, err = identify(int(fd)); err == nil {
		h.sock, err = newSock(b.timeout, b.rbuf)
	}
	if err != nil {
		unix.Close(int(fd))
		return nil, fmt.Errorf("open a netlink socket in the agent's network namespace: %w", err)
	}
	return h, nil
}

// identify gives the identity of an open namespace. A file that is not a namespace is one whose namespace was unmounted.
func identify(fd int) (nsID, error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return nsID{}, fmt.Errorf("fstatfs: %w", err)
	}
	if fs.Type != unix.NSFS_MAGIC {
		return nsID{}, fmt.Errorf("not a namespace: %w", ErrNamespaceGone)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nsID{}, fmt.Errorf("fstat: %w", err)
	}
	return nsID{st.Dev, st.Ino}, nil
}

// inNS runs f, which must not start goroutines or block for long, on a thread inside h. It is needed for what belongs to
// the namespace of the calling thread: new sockets and /proc/sys/net.
func (b *Backend) inNS(h *nsHandle, f func() error) error {
	host, err := b.enter("")
	if err != nil {
		return err
	}
	if h == host {
		return f()
	}
	runtime.LockOSThread()
	if err := unix.Setns(int(h.fd), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter %s: %w", h, err)
	}
	err = f()
	if back := unix.Setns(int(host.fd), unix.CLONE_NEWNET); back != nil {
		// The thread stays locked: going on here would configure the pod instead of the host.
		panic(fmt.Sprintf("netlink: cannot leave %s: %v", h, back))
	}
	runtime.UnlockOSThread()
	return err
}

// leaveAll closes all namespaces but the agent's own.
func (b *Backend) leaveAll() {
	host := b.open[""]
	for path, h := range b.open {
		if path == "" {
			continue
		}
		if h != host {
			h.close()
		}
		delete(b.open, path)
	}
}

func (h *nsHandle) close() {
	h.sock.close()
	unix.Close(int(h.fd))
}
