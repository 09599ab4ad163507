package castest

import (
	"io"
	"net"
	"sync"
)

// proxy forwards TCP connections. While it is cut it closes the existing connections and accepts no
// others.
type proxy struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	cut    bool
	closed bool
}

func newProxy(target string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, target: target, conns: map[net.Conn]bool{}}
	p.wg.Go(p.accept)
	return p, nil
}

// Endpoint returns the address to which clients connect.
func (p *proxy) Endpoint() string { return p.listener.Addr().String() }

// Cut cuts the link, or opens it again.
func (p *proxy) Cut(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	if cut {
		p.drop()
	}
}

func (p *proxy) drop() {
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
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
	if p.cut || p.closed {
		_ = server.Close()
		return false
	}
	p.conns[client], p.conns[server] = true, true
	return true
}

func (p *proxy) pass(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	_, _ = from.Close(), to.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, from)
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.drop()
	p.mu.Unlock()
	p.wg.Wait()
}
