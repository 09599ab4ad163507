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

// The lives of certificates. That of the CA is that of the cluster; a member's is renewed when it restarts.
const (
	caLife   = 30 * 365 * 24 * time.Hour
	leafLife = 10 * 365 * 24 * time.Hour
	// clockSkew is by how much the clocks of nodes may differ.
	clockSkew = time.Hour
)

// Pair is a certificate with its key, both PEM.
type Pair struct{ Cert, Key []byte }

// NewCA is a new authority.
func NewCA(name string) (Pair, error) {
	template, err := newTemplate(name, caLife)
	if err != nil {
		return Pair{}, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	return sign(template, nil, nil)
}

// Leaf is what a certificate is to be for.
type Leaf struct {
	Name    string
	Servers []string     // DNS names under which it serves
	Addrs   []netip.Addr // and addresses
	Client  bool         // it authenticates to servers
}

// Issue makes a certificate.
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
		return Pair{}, fmt.Errorf("certificate %s: it would be for nothing", l.Name)
	}
	return sign(template, parent.Leaf, parent.PrivateKey)
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

// sign makes a key and has it certified, by itself without a parent.
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
