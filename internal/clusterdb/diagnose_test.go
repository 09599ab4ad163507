package clusterdb

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"

	"contiv.dev/vswitch/internal/etcdpki"
)

// pki is a certificate authority, and files of certificates that it has issued.
type pki struct {
	t   *testing.T
	dir string
	ca  etcdpki.Pair
}

func newPKI(t *testing.T, name string) *pki {
	t.Helper()
	ca, err := etcdpki.NewCA(name)
	if err != nil {
		t.Fatal(err)
	}
	p := &pki{t: t, dir: t.TempDir(), ca: ca}
	p.write("ca.pem", ca.Cert)
	return p
}

func (p *pki) write(name string, data []byte) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

func (p *pki) caFile() string { return filepath.Join(p.dir, "ca.pem") }

// leaf describes a certificate for clients and servers.
type leaf struct {
	name    string
	servers []string
	life    time.Duration // negative: it has expired
}

func (p *pki) issue(l leaf) (cert, key string) {
	p.t.Helper()
	parent, err := tls.X509KeyPair(p.ca.Cert, p.ca.Key)
	if err != nil {
		p.t.Fatal(err)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: l.name}, DNSNames: l.servers,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(l.life), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, s := range l.servers {
		if ip := net.ParseIP(s); ip != nil {
			template.IPAddresses, template.DNSNames = append(template.IPAddresses, ip), nil
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent.Leaf, private.Public(), parent.PrivateKey)
	if err != nil {
		p.t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.write(l.name+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		p.write(l.name+".key", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))
}

// etcdFor starts an etcd that serves clients with a certificate of p and requires client certificates; without p, it serves plain text.
func etcdFor(t *testing.T, p *pki, server leaf) (address string) {
	t.Helper()
	listen := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	if p != nil {
		listen.Scheme = "https"
	}
	conf := embeddedConfig(filepath.Join(t.TempDir(), "etcd"), listen, newZap(quiet(), new(atomic.Bool)))
	if p != nil {
		cert, key := p.issue(server)
		conf.ClientTLSInfo = transport.TLSInfo{TrustedCAFile: p.caFile(), CertFile: cert, KeyFile: key, ClientCertAuth: true}
	}
	e, err := embed.StartEtcd(conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	<-e.Server.ReadyNotify()
	return e.Clients[0].Addr().String()
}

// TestDiagnose checks that each fault of the connection to a real etcd is reported with the endpoint, the cause and the flag, by Cause
// and once in the log.
func TestDiagnose(t *testing.T) {
	ours, other := newPKI(t, "ours"), newPKI(t, "other")
	local := []string{"127.0.0.1"}
	encrypted := etcdFor(t, ours, leaf{"server", local, time.Hour})
	misnamed := etcdFor(t, ours, leaf{"misnamed", []string{"etcd-1.example.org"}, time.Hour})
	plain := etcdFor(t, nil, leaf{})
	client := func(p *pki, name string, life time.Duration) Config {
		cert, key := p.issue(leaf{name, nil, life})
		return Config{CAFile: ours.caFile(), CertFile: cert, KeyFile: key}
	}
	good := client(ours, "client", time.Hour)
	wrongCA := good
	wrongCA.CAFile = other.caFile()
	for name, tc := range map[string]struct {
		conf     Config
		endpoint string
		want     []string // none: the connection works
	}{
		"works":             {good, "https://" + encrypted, nil},
		"works plain":       {Config{}, "http://" + plain, nil},
		"wrong CA":          {wrongCA, "https://" + encrypted, []string{"unknown authority", "--etcd-ca (" + other.caFile() + ")"}},
		"no client cert":    {Config{CAFile: ours.caFile()}, "https://" + encrypted, []string{"requires a client certificate", "set --etcd-cert and --etcd-key"}},
		"expired":           {client(ours, "old", -time.Hour), "https://" + encrypted, []string{"expired at", "renew --etcd-cert (", "old.crt"}},
		"of another CA":     {client(other, "foreign", time.Hour), "https://" + encrypted, []string{"rejects our client certificate", "--etcd-cert (", "foreign.crt"}},
		"another name":      {good, "https://" + misnamed, []string{"127.0.0.1", "a name or address of the certificate in --etcd-endpoints"}},
		"http to https":     {Config{}, "http://" + encrypted, []string{"it expects TLS", "write https:// in --etcd-endpoints"}},
		"https to http":     {good, "https://" + plain, []string{"it does not use TLS", "write http:// in --etcd-endpoints"}},
		"nothing listens":   {Config{}, "http://127.0.0.1:1", []string{"connection refused", "check --etcd-endpoints"}},
		"no socket":         {Config{}, "unix:///nothing/etcd.sock", []string{"no such file", "check --etcd-endpoints"}},
		"name not resolved": {Config{InsecureTransport: true}, "http://etcd.invalid:2379", []string{"etcd.invalid", "check --etcd-endpoints"}},
	} {
		t.Run(name, func(t *testing.T) {
			conf := testConf()
			conf.ProbeTimeout = 5 * time.Second // long enough for a busy machine
			conf.CAFile, conf.CertFile, conf.KeyFile = tc.conf.CAFile, tc.conf.CertFile, tc.conf.KeyFile
			conf.InsecureTransport, conf.Endpoints = tc.conf.InsecureTransport, []string{tc.endpoint}
			if tc.want == nil {
				db := open(t, conf)
				until(t, "connection", db.Connected)
				if err := db.Cause(); err != nil {
					t.Errorf("connected, but %v", err)
				}
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			err := conf.diagnose(ctx, context.DeadlineExceeded)
			for _, want := range append(tc.want, "etcd at "+tc.endpoint) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nlacks %q", err, want)
				}
			}
		})
	}
}

// TestCauseIsReportedOnce checks that Cause returns the cause until the database answers, and that the log has it once.
func TestCauseIsReportedOnce(t *testing.T) {
	s := newServer(t)
	s.start()
	s.stop()
	var log strings.Builder
	var mu sync.Mutex
	conf := testConf()
	conf.Endpoints = []string{"unix://" + s.address()}
	db, err := Open(t.Context(), conf, slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	until(t, "cause", func() bool { return db.Cause() != nil })
	first := db.Cause()
	s.start()
	until(t, "connection", db.Connected)
	if err := db.Cause(); err != nil {
		t.Errorf("connected, but %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if n := strings.Count(log.String(), "etcd does not respond"); n != 1 || !strings.Contains(log.String(), s.address()) {
		t.Errorf("%d lines of %v in the log, want 1:\n%s", n, first, log.String())
	}
}

// lockedWriter is the target of a log that several goroutines write.
type lockedWriter struct {
	mu *sync.Mutex
	to *strings.Builder
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}
