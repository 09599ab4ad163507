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

// openHost opens the namespace the agent runs in.
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

// inNS runs f, which must not start goroutines or block for long, on a thread inside h. It is needed for what belongs to
// the namespace of the calling thread: new sockets and /proc/sys/net.
func (b *Backend) inNS(h *nsHandle, f func() error) error { return h.inside().Do(f) }

// inside is nil for the agent's own namespace, where the caller is already.
func (h *nsHandle) inside() *nsdo.Namespace {
	if h.path == "" {
		return nil
	}
	return h.Namespace
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
	h.Namespace.Close()
}
