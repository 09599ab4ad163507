package clusterdb

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// answerWait is the time within which etcd can still refuse a connection whose handshake it has finished: with TLS 1.3 the server checks
// the client's certificate after the handshake.
const answerWait = 500 * time.Millisecond

// diagnose dials each endpoint itself, because etcd's client reports every fault as an expired deadline. It returns the first fault, with
// the endpoint, the cause and the flag to check. It returns otherwise if the connections have no fault.
func (c Config) diagnose(ctx context.Context, otherwise error) error {
	tlsConf, err := c.tlsConfig()
	if err != nil {
		return err
	}
	for _, endpoint := range c.Endpoints {
		u, err := c.parseEndpoint(endpoint)
		if err != nil {
			return fmt.Errorf("etcd at %s: %w; check --etcd-endpoints", endpoint, err)
		}
		if err := c.dial(ctx, u, tlsConf); err != nil {
			return fmt.Errorf("etcd at %s: %w", endpoint, err)
		}
	}
	if len(c.Endpoints) == 0 {
		return fmt.Errorf("embedded etcd in %s: %w", c.Embedded.DataDir, otherwise)
	}
	return fmt.Errorf("etcd at %s: connected, but a read failed: %w; check the health and the log of etcd",
		strings.Join(c.Endpoints, ", "), otherwise)
}

var (
	errClosed = errors.New("the connection was closed")
	errPlain  = errors.New("it does not use TLS, but the endpoint is https; write http:// in --etcd-endpoints and leave out --etcd-ca, " +
		"--etcd-cert and --etcd-key, or give etcd a certificate")
)

// dial connects to an endpoint and returns nil if that works.
func (c Config) dial(ctx context.Context, u *url.URL, tlsConf *tls.Config) error {
	network, address := "tcp", u.Host
	if u.Scheme == "unix" {
		network, address = "unix", u.Host+u.Path
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return fmt.Errorf("%w; check --etcd-endpoints, that etcd runs, and that no firewall blocks its port", rootCause(err))
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline) // a connection without deadlines fails at the next step
	}
	switch {
	case u.Scheme == "https":
		conf := tlsConf.Clone()
		conf.ServerName, conf.NextProtos = u.Hostname(), []string{"h2"}
		err := c.handshake(ctx, tls.Client(conn, conf))
		if errors.Is(err, errClosed) && servesPlain(ctx, network, address) {
			return errPlain
		}
		return err
	case speaksTLS(ctx, conn):
		return errors.New("it expects TLS, but the endpoint is not https; write https:// in --etcd-endpoints, and set --etcd-ca, " +
			"--etcd-cert and --etcd-key")
	}
	return nil
}

// speaksTLS reports whether a server that does not serve plain text answers a handshake.
func speaksTLS(ctx context.Context, conn net.Conn) bool {
	//nolint:gosec // nothing is sent by this connection: the question is only whether the other side speaks TLS
	probe := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12})
	err := probe.HandshakeContext(ctx)
	var alert tls.AlertError
	return err == nil || errors.As(err, &alert) || strings.HasPrefix(err.Error(), "remote error: tls:")
}

// servesPlain reports whether a server that closes the connection during a handshake answers a request in plain text.
func servesPlain(ctx context.Context, network, address string) bool {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return false
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline) // as above
	}
	answer := make([]byte, len("HTTP/"))
	if _, err := io.WriteString(conn, "GET /version HTTP/1.0\r\n\r\n"); err != nil {
		return false
	}
	_, err = io.ReadFull(conn, answer)
	return err == nil && string(answer) == "HTTP/"
}

// handshake describes what is wrong with TLS between this process and etcd.
func (c Config) handshake(ctx context.Context, conn *tls.Conn) error {
	err := conn.HandshakeContext(ctx)
	if err == nil {
		_ = conn.SetReadDeadline(time.Now().Add(answerWait)) // as above
		_, err = conn.Read(make([]byte, 1))
	}
	var record tls.RecordHeaderError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var timeout net.Error
	switch {
	case err == nil, errors.As(err, &timeout) && timeout.Timeout() && conn.ConnectionState().HandshakeComplete:
		return nil
	case errors.As(err, &record):
		return errPlain
	case errors.As(err, &authority):
		return fmt.Errorf("%w; --etcd-ca (%s) must be the CA of etcd's server certificate", authority, orNone(c.CAFile))
	case errors.As(err, &name):
		return fmt.Errorf("%w; write a name or address of the certificate in --etcd-endpoints, or issue etcd's certificate for %s",
			name, name.Host)
	case errors.As(err, &invalid):
		return fmt.Errorf("etcd's server certificate: %w; renew it, and check the clocks of both machines", invalid)
	case strings.HasPrefix(rootCause(err).Error(), "tls: "):
		return c.refused(rootCause(err))
	}
	return fmt.Errorf("TLS: %w; check --etcd-endpoints, and the log of etcd", rootCause(err))
}

// refused describes the alert with which etcd ends a connection because it does not accept the client certificate.
func (c Config) refused(alert error) error {
	if c.CertFile == "" {
		return fmt.Errorf("it requires a client certificate (%w); set --etcd-cert and --etcd-key", alert)
	}
	if pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile); err == nil && pair.Leaf != nil && time.Now().After(pair.Leaf.NotAfter) {
		return fmt.Errorf("it rejects our client certificate, which expired at %s (%w); renew --etcd-cert (%s)",
			pair.Leaf.NotAfter.UTC().Format(time.RFC3339), alert, c.CertFile)
	}
	return fmt.Errorf("it rejects our client certificate (%w); --etcd-cert (%s) must be issued by etcd's --trusted-ca-file, for client "+
		"authentication", alert, c.CertFile)
}

func orNone(file string) string {
	if file == "" {
		return "not set: the system's CAs"
	}
	return file
}

// rootCause returns the innermost error, without the addresses that net adds.
func rootCause(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	if errors.Is(err, io.EOF) {
		return errClosed
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}
