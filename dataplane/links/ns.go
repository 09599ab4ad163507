package links

import (
	"fmt"
	"path/filepath"

	"contiv.dev/vswitch/dataplane/nb/linux/namespace"
	"contiv.dev/vswitch/internal/nsdo"
)

// nsHandle is an open network namespace and a socket inside it.
type nsHandle struct {
	*nsdo.Namespace
	path string // "" is the agent's own
	sock *sock
}

// nsPath returns the file that represents the namespace ref, or "" for the agent's own.
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

// enter returns the handle of the namespace at path. It opens the namespace unless this flush has already done so.
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
	ns, err := nsdo.Open(path)
	if err != nil {
		return nil, err
	}
	host, err := b.enter("")
	if err != nil {
		ns.Close()
		return nil, err
	}
	if ns.ID() == host.ID() {
		ns.Close()
		return host, nil
	}
	h := &nsHandle{Namespace: ns, path: path}
	if h.sock, err = newSock(ns, b.timeout, b.rbuf); err != nil {
		ns.Close()
		return nil, err
	}
	return h, nil
}

// openHost opens the agent's own namespace.
func (b *Backend) openHost() (*nsHandle, error) {
	ns, err := nsdo.Current()
	if err != nil {
		return nil, err
	}
	h := &nsHandle{Namespace: ns}
	if h.sock, err = newSock(nil, b.timeout, b.rbuf); err != nil {
		ns.Close()
		return nil, fmt.Errorf("open a netlink socket in %s: %w", ns, err)
	}
	return h, nil
}

// inNS runs f, which must not start goroutines or block for long, on a thread inside h. It is needed for objects of the calling thread's
// namespace: new sockets and /proc/sys/net.
func (b *Backend) inNS(h *nsHandle, f func() error) error { return h.inside().Do(f) }

// inside returns nil for the agent's own namespace, in which the caller already runs.
func (h *nsHandle) inside() *nsdo.Namespace {
	if h.path == "" {
		return nil
	}
	return h.Namespace
}

// leaveAll closes all namespaces except the agent's own.
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
	h.Namespace.Close()
}
