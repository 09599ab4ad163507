package clusterdb

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
)

func TestValidate(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.pem")
	if err := os.WriteFile(garbage, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	remote := []string{"https://etcd-1:2379"}
	for _, tc := range []struct {
		conf Config
		want string // "" means valid
	}{
		{Config{Embedded: EmbeddedConfig{DataDir: dir}}, ""},
		{Config{Embedded: EmbeddedConfig{DataDir: dir, Listen: "127.0.0.1:0"}}, ""},
		{Config{Embedded: EmbeddedConfig{DataDir: dir, Listen: "[::1]:2379"}}, ""},
		{Config{}, "--data-dir: is missing"},
		{Config{Embedded: EmbeddedConfig{DataDir: dir, Listen: "0.0.0.0:2379"}}, `etcd listen: "0.0.0.0:2379" is not a loopback address`},
		{Config{Embedded: EmbeddedConfig{DataDir: dir, Listen: "localhost"}}, `etcd listen: "localhost" is not host:port`},
		{Config{Embedded: EmbeddedConfig{DataDir: "/" + strings.Repeat("d", 120)}}, "--data-dir: the path of the socket"},
		{Config{Embedded: EmbeddedConfig{DataDir: dir}, CAFile: garbage}, "--etcd-endpoints: TLS files are set, but no --etcd-endpoints"},
		{Config{Endpoints: remote}, ""},
		{Config{Endpoints: []string{"127.0.0.1:2379", "http://localhost:2379", "unix:///run/etcd.sock"}}, ""},
		{Config{Endpoints: []string{"etcd-1:2379"}}, `--etcd-endpoints: "etcd-1:2379" is not encrypted`},
		{Config{Endpoints: []string{"etcd-1:2379"}, InsecureTransport: true}, ""},
		{Config{Endpoints: []string{"etcd-1"}, InsecureTransport: true}, `--etcd-endpoints: "etcd-1" is not host:port`},
		{Config{Endpoints: []string{"ftp://etcd-1:21"}}, "has the scheme ftp; use https"},
		{Config{Endpoints: []string{"http://etcd-1:2379"}, CAFile: garbage}, "is http although TLS files are set"},
		{Config{Endpoints: remote, CertFile: garbage}, "--etcd-cert: --etcd-cert and --etcd-key go together"},
		{Config{Endpoints: remote, CAFile: garbage}, "--etcd-ca: " + garbage + " has no certificate"},
		{Config{Endpoints: remote, CAFile: dir + "/absent"}, "--etcd-ca: open " + dir + "/absent"},
		{Config{Endpoints: remote, CertFile: garbage, KeyFile: garbage}, "--etcd-cert ("},
		{Config{Endpoints: remote, OperationTimeout: -1}, "etcd operation-timeout: "},
		{Config{Endpoints: remote, ProbeInterval: -1}, "etcd probe-interval: "},
		{Config{Endpoints: remote, ProbeTimeout: -1}, "etcd probe-timeout: "},
	} {
		err := tc.conf.Validate()
		if (err == nil) != (tc.want == "") || (err != nil && !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%+v\n  error %v\n  want  %q", tc.conf, err, tc.want)
		}
	}
	err := Config{Endpoints: []string{"a", "b"}, CAFile: garbage}.Validate()
	if n := len(strings.Split(err.Error(), "\n")); n != 3 {
		t.Errorf("%d faults reported at once, want 3: %v", n, err)
	}
}

// TestMutualTLS connects to an etcd that requires client certificates.
func TestMutualTLS(t *testing.T) {
	dir := t.TempDir()
	ca, cert, key := newCertificates(t, dir)
	listen := url.URL{Scheme: "https", Host: "127.0.0.1:0"}
	conf := embeddedConfig(filepath.Join(dir, "etcd"), listen, newZap(quiet(), new(atomic.Bool)))
	conf.ClientTLSInfo = transport.TLSInfo{TrustedCAFile: ca, CertFile: cert, KeyFile: key, ClientCertAuth: true}
	e, err := embed.StartEtcd(conf)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	<-e.Server.ReadyNotify()

	client := testConf()
	client.Endpoints = []string{e.Clients[0].Addr().String()} // the files imply https
	client.CAFile, client.CertFile, client.KeyFile = ca, cert, key
	db := open(t, client)
	put(t, db, 1, "a")

	client.CertFile, client.KeyFile = "", ""
	client.OperationTimeout = 300 * time.Millisecond
	foreign := open(t, client)
	if _, err := foreign.PutIfNotExists("/k", nil); err == nil {
		t.Error("a client without a certificate was served")
	}
}

// newCertificates writes a self-signed certificate for 127.0.0.1.
func newCertificates(t *testing.T, dir string) (ca, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, cert, key
}
