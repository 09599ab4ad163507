package etcdpki

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"
)

func must(t *testing.T) func(Pair, error) Pair {
	return func(p Pair, err error) Pair {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
}

// handshake returns the errors of a handshake between client and server under the address, or nil for a side that trusts
// the other.
func handshake(t *testing.T, ca, server, client Pair, name string) (clientErr, serverErr error) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Cert)
	pair := func(p Pair) []tls.Certificate {
		c, err := tls.X509KeyPair(p.Cert, p.Key)
		if err != nil {
			t.Fatal(err)
		}
		return []tls.Certificate{c}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	a, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{a, b} {
		if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	s := tls.Server(a, &tls.Config{Certificates: pair(server), ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert})
	c := tls.Client(b, &tls.Config{Certificates: pair(client), RootCAs: roots, ServerName: name})
	done := make(chan error, 1)
	go func() {
		err := s.Handshake()
		_ = a.Close()
		done <- err
	}()
	clientErr = c.Handshake()
	_, _ = io.ReadAll(c) // until the server has finished its check
	return clientErr, <-done
}

// TestTrust checks that agents and members trust each other; certificates of another CA, for another address or for
// another use are rejected.
func TestTrust(t *testing.T) {
	ca, other := must(t)(NewCA("contiv-etcd")), must(t)(NewCA("contiv-etcd"))
	addr := netip.MustParseAddr("192.0.2.1")
	member := must(t)(ca.Issue(Leaf{Name: "m", Addrs: []netip.Addr{addr}, Servers: []string{"localhost"}, Client: true}))
	agent := must(t)(ca.Issue(Leaf{Name: "agent", Client: true}))
	foreign := must(t)(other.Issue(Leaf{Name: "agent", Client: true}))
	for _, tc := range []struct {
		name           string
		server, client Pair
		addr           string
		ok             bool
	}{
		{"agent to member", member, agent, "192.0.2.1", true},
		{"member to member", member, member, "192.0.2.1", true},
		{"to another address", member, agent, "192.0.2.2", false},
		{"client of another CA", member, foreign, "192.0.2.1", false},
		{"an agent that poses as a member", agent, agent, "192.0.2.1", false},
	} {
		c, s := handshake(t, ca, tc.server, tc.client, tc.addr)
		if ok := c == nil && s == nil; ok != tc.ok {
			t.Errorf("%s: client says %v, server %v", tc.name, c, s)
		}
	}
	if _, err := ca.Issue(Leaf{Name: "x"}); err == nil {
		t.Error("a certificate for nothing was issued")
	}
}
