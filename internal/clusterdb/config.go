package clusterdb

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The defaults of Config.
const (
	defaultOpTimeout     = 5 * time.Second
	defaultProbeInterval = 3 * time.Second
	defaultProbeTimeout  = 2 * time.Second
	// maxSocketPath is the maximum length that the kernel accepts for the path of a unix socket, without the final zero.
	maxSocketPath = 107
)

// Config selects the database and its parameters. Errors name the flag of a field if it has one.
type Config struct {
	// Endpoints are the addresses of the operator's etcd, "host:port" or URLs. Without endpoints the agent runs its own etcd, see
	// Embedded.
	Endpoints []string
	// Service is the service of Kubernetes that lists the members of a managed etcd, NAMESPACE/NAME:PORT; FollowMembers gets their addresses. Empty:
	// the addresses do not change.
	Service string
	// CAFile, CertFile and KeyFile are PEM files: the trusted CAs, and the client certificate and its key. CertFile and KeyFile need
	// each other.
	CAFile, CertFile, KeyFile string
	// InsecureTransport must be set to use an etcd on other machines without TLS.
	InsecureTransport bool
	// OperationTimeout bounds each call; 5 s when zero.
	OperationTimeout time.Duration
	// ProbeInterval is the interval between checks of the connection; 3 s when zero.
	ProbeInterval time.Duration
	// ProbeTimeout bounds a check; after a longer one the database does not count as connected until it answers. 2 s when zero.
	ProbeTimeout time.Duration

	Embedded EmbeddedConfig
}

// EmbeddedConfig configures the etcd in the agent's own process.
type EmbeddedConfig struct {
	// DataDir is the folder of the database; it survives restarts.
	DataDir string
	// Listen is the loopback address for clients, e.g. "127.0.0.1:2379", with port 0 for a free one. When it is empty, clients
	// use the socket DataDir/etcd.sock, which only root can reach.
	Listen string
}

// UsesEmbedded reports whether the agent is to run its own etcd.
func (c Config) UsesEmbedded() bool { return len(c.Endpoints) == 0 }

// private reports whether the database cannot be on another machine.
func (c Config) private() bool {
	for _, e := range c.Endpoints {
		if !strings.HasPrefix(e, "unix:") {
			return false
		}
	}
	return true
}

// withDefaults fills in the fields that are not set.
func (c Config) withDefaults() Config {
	if c.OperationTimeout == 0 {
		c.OperationTimeout = defaultOpTimeout
	}
	if c.ProbeInterval == 0 {
		c.ProbeInterval = defaultProbeInterval
	}
	if c.ProbeTimeout == 0 {
		c.ProbeTimeout = defaultProbeTimeout
	}
	return c
}

// Validate reports all faults, each with the name of its field.
func (c Config) Validate() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf(field+": "+format, args...))
	}
	if c.OperationTimeout < 0 {
		bad("etcd operation-timeout", "%s is negative; use a few seconds", c.OperationTimeout)
	}
	if c.ProbeInterval < 0 {
		bad("etcd probe-interval", "%s is negative; use a few seconds", c.ProbeInterval)
	}
	if c.ProbeTimeout < 0 {
		bad("etcd probe-timeout", "%s is negative; use a few seconds", c.ProbeTimeout)
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		bad("--etcd-cert", "--etcd-cert and --etcd-key go together; set both or none")
	}
	if c.UsesEmbedded() {
		c.validateEmbedded(bad)
	} else {
		for _, e := range c.Endpoints {
			c.validateEndpoint(e, bad)
		}
		if _, err := c.tlsConfig(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (c Config) validateEmbedded(bad func(field, format string, args ...any)) {
	if c.CAFile != "" || c.CertFile != "" {
		bad("--etcd-endpoints", "TLS files are set, but no --etcd-endpoints; set them, or remove the files to use the embedded etcd")
	}
	if c.Embedded.DataDir == "" {
		bad("--data-dir", "is missing; set the directory of the embedded etcd, or set --etcd-endpoints to use an etcd of yours")
		return
	}
	if c.Embedded.Listen == "" {
		if path := c.socketPath(); len(path) > maxSocketPath {
			bad("--data-dir", "the path of the socket %s is too long (%d of %d characters); use a shorter directory or set the listen "+
				"address 127.0.0.1:0", path, len(path), maxSocketPath)
		}
		return
	}
	host, _, err := net.SplitHostPort(c.Embedded.Listen)
	if err != nil {
		bad("etcd listen", "%q is not host:port; write it like 127.0.0.1:0", c.Embedded.Listen)
	} else if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		bad("etcd listen", "%q is not a loopback address, and the embedded etcd has no authentication; use 127.0.0.1", c.Embedded.Listen)
	}
}

func (c Config) socketPath() string {
	path := filepath.Join(c.Embedded.DataDir, "etcd.sock")
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func (c Config) validateEndpoint(endpoint string, bad func(field, format string, args ...any)) {
	u, err := c.parseEndpoint(endpoint)
	switch {
	case err != nil || (u.Scheme != "unix" && (u.Hostname() == "" || u.Port() == "")):
		bad("--etcd-endpoints", "%q is not host:port or a URL; write it like https://etcd-1:2379", endpoint)
	case u.Scheme == "unix":
	case u.Scheme != "http" && u.Scheme != "https":
		bad("--etcd-endpoints", "%q has the scheme %s; use https or http", endpoint, u.Scheme)
	case u.Scheme == "http" && c.usesTLSFiles():
		bad("--etcd-endpoints", "%q is http although TLS files are set; use https", endpoint)
	case u.Scheme == "http" && !c.InsecureTransport && !isLoopback(u.Hostname()):
		bad("--etcd-endpoints", "%q is not encrypted, so any machine on the path could reconfigure the cluster; set --etcd-ca, --etcd-cert "+
			"and --etcd-key, or --etcd-insecure-transport if that is what you want", endpoint)
	}
}

// parseEndpoint parses an endpoint, and adds the scheme if it has none.
func (c Config) parseEndpoint(endpoint string) (*url.URL, error) {
	if !strings.Contains(endpoint, "://") {
		endpoint = c.scheme() + "://" + endpoint
	}
	return url.Parse(endpoint)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

func (c Config) usesTLSFiles() bool { return c.CAFile != "" || c.CertFile != "" || c.KeyFile != "" }

// scheme returns the scheme of endpoints that have none.
func (c Config) scheme() string {
	if c.usesTLSFiles() {
		return "https"
	}
	return "http"
}

// tlsConfig returns nil when no endpoint is encrypted.
func (c Config) tlsConfig() (*tls.Config, error) {
	encrypted := c.usesTLSFiles()
	for _, e := range c.Endpoints {
		encrypted = encrypted || strings.HasPrefix(e, "https://")
	}
	if !encrypted {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	var errs []error
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		pool := x509.NewCertPool()
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("--etcd-ca: %w", err))
		case !pool.AppendCertsFromPEM(pem):
			errs = append(errs, fmt.Errorf("--etcd-ca: %s has no certificate in PEM form", c.CAFile))
		}
		out.RootCAs = pool
	}
	if c.CertFile != "" && c.KeyFile != "" {
		cert, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			errs = append(errs, fmt.Errorf("--etcd-cert (%s) or --etcd-key (%s): %w", c.CertFile, c.KeyFile, err))
		}
		out.Certificates = []tls.Certificate{cert}
	}
	return out, errors.Join(errs...)
}
