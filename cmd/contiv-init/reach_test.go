package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
)

// TestPeerPortIsBlocked: a member is not added while it does not reach the others' ports for peers, because it would cost the quorum.
func TestPeerPortIsBlocked(t *testing.T) {
	var open, added atomic.Bool
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !open.Load() || r.URL.Path != "/members" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer peer.Close()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/add") {
			added.Store(true)
		}
		_, _ = io.WriteString(w, `{"members":[{"ID":"1","name":"etcd-0","peerURLs":["`+peer.URL+`"]}]}`)
	}))
	defer gateway.Close()
	p := &pods{}
	p.add("etcd-0", machine{address: "192.0.2.1", client: gateway.URL, peer: peer.URL})
	j := p.joiner("etcd-1", 3, "http://peer")
	_, port, err := net.SplitHostPort(peer.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.step(t.Context()); err == nil || added.Load() || !strings.Contains(err.Error(), "TCP port "+port) {
		t.Errorf("added: %v, error: %v", added.Load(), err)
	}
	open.Store(true)
	if _, err := j.step(t.Context()); err != nil || !added.Load() {
		t.Errorf("with an open port: added: %v, error: %v", added.Load(), err)
	}
}

// TestPeerWithTLS: a member of etcd with the certificates of contiv-init responds to a member that is to be added.
func TestPeerWithTLS(t *testing.T) {
	m, conf := certified(t)
	n := newMachine(t, "127.0.0.1")
	n.peer = strings.Replace(n.peer, "http:", "https:", 1)
	file := func(name string) string { return filepath.Join(m.tlsDir, name) }
	e, _ := startMember(t, n, "etcd-1", n.dir, []string{"--initial-cluster=etcd-1=" + n.peer}, func(c *embed.Config) {
		c.PeerTLSInfo = transport.TLSInfo{
			CertFile: file(tlsCert), KeyFile: file(tlsKey), TrustedCAFile: file(caCert), ClientCertAuth: true,
			AllowedCNs: []string{etcdMember}, SkipClientSANVerify: true,
		}
	})
	awaitReady(t, e)
	list := []etcdPeer{{Name: "etcd-1", PeerURLs: []string{n.peer}}}
	j := &joiner{http: &http.Client{Transport: &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true}}}
	if err := j.reach(t.Context(), list); err != nil {
		t.Error(err)
	}
	_, other := certified(t)
	j.http = &http.Client{Transport: &http.Transport{TLSClientConfig: other, DisableKeepAlives: true}}
	if err := j.reach(t.Context(), list); err == nil {
		t.Error("a member with a certificate of another CA is added")
	}
}
