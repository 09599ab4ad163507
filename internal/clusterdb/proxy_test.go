package clusterdb

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy forwards connections between two unix sockets, until it closes them all.
type proxy struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup
	hold     sync.RWMutex // while a test holds it, no data passes

	mu     sync.Mutex
	conns  []net.Conn
	closed bool
}

func newProxy(t *testing.T, path, target string) *proxy {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: target}
	p.wg.Go(p.accept)
	return p
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", p.target)
		if err != nil || !p.add(client, server) {
			_ = client.Close()
			continue
		}
		p.wg.Go(func() { p.pass(client, server) })
		p.wg.Go(func() { p.pass(server, client) })
	}
}

func (p *proxy) add(client, server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = server.Close()
		return false
	}
	p.conns = append(p.conns, client, server)
	return true
}

func (p *proxy) pass(from, to net.Conn) {
	_, _ = io.Copy(heldWriter{p, to}, from)
	_, _ = from.Close(), to.Close()
}

// heldWriter waits while the proxy is held.
type heldWriter struct {
	p  *proxy
	to io.Writer
}

func (w heldWriter) Write(data []byte) (int, error) {
	w.p.hold.RLock()
	defer w.p.hold.RUnlock()
	return w.to.Write(data)
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}
