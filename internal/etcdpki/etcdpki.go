package etcdpki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"time"
)

// The validity of certificates. The CA is valid for the life of the cluster; the certificate of a member is
// renewed when the member restarts.
const (
	caLife   = 30 * 365 * 24 * time.Hour
	leafLife = 10 * 365 * 24 * time.Hour
	// clockSkew is the maximum difference between the clocks of nodes.
	clockSkew = time.Hour
)

// Pair is a certificate with its key, both PEM.
type Pair struct{ Cert, Key []byte }

// NewCA returns a new certificate authority.
func NewCA(name string) (Pair, error) {
	template, err := newTemplate(name, caLife)
	if err != nil {
		return Pair{}, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	return sign(template, nil, nil)
}

// Leaf describes the certificate to issue.
type Leaf struct {
	Name    string
	Servers []string     // DNS names under which it serves
	Addrs   []netip.Addr // addresses under which it serves
	Client  bool         // it authenticates to servers
}

// Issue returns a new certificate that is signed by the CA.
func (ca Pair) Issue(l Leaf) (Pair, error) {
	parent, err := tls.X509KeyPair(ca.Cert, ca.Key)
	if err != nil {
		return Pair{}, fmt.Errorf("etcd CA: %w", err)
	}
	template, err := newTemplate(l.Name, leafLife)
	if err != nil {
		return Pair{}, err
	}
	template.KeyUsage, template.DNSNames = x509.KeyUsageDigitalSignature, l.Servers
	for _, a := range l.Addrs {
		template.IPAddresses = append(template.IPAddresses, a.AsSlice())
	}
	if len(l.Servers)+len(l.Addrs) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if l.Client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	if len(template.ExtKeyUsage) == 0 {
		return Pair{}, fmt.Errorf("certificate %s: neither a server name nor an address nor client use is set", l.Name)
	}
	return sign(template, parent.Leaf, parent.PrivateKey)
}

// Check returns an error unless the CA has its own key and has signed the client certificate, and the holder of the certificate trusts the CA.
// trusted has the certificates that the holder trusts, in PEM form.
func (ca Pair) Check(client Pair, trusted []byte) error {
	parent, err := tls.X509KeyPair(ca.Cert, ca.Key)
	if err != nil {
		return fmt.Errorf("etcd CA: %w", err)
	}
	leaf, err := tls.X509KeyPair(client.Cert, client.Key)
	if err != nil {
		return fmt.Errorf("client certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parent.Leaf)
	between := x509.NewCertPool()
	for _, der := range leaf.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(c)
		}
	}
	if _, err := leaf.Leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return fmt.Errorf("the CA has not signed the client certificate: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(trusted)
	if _, err := parent.Leaf.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return fmt.Errorf("the client does not trust the CA: %w", err)
	}
	return nil
}

func newTemplate(name string, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-clockSkew), NotAfter: now.Add(life),
	}, nil
}

// sign creates a key and a certificate signed by the parent; without a parent the certificate is
// self-signed.
func sign(template, parent *x509.Certificate, by crypto.PrivateKey) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("key: %w", err)
	}
	if parent == nil {
		parent, by = template, key
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		return Pair{}, fmt.Errorf("certificate %s: %w", template.Subject.CommonName, err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, errors.Join(errors.New("encode a key"), err)
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
	}, nil
}
